//go:build !linux

package doctor

// machineMemory is not known on this system.
func machineMemory() uint64 { return 0 }
