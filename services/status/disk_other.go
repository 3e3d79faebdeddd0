//go:build !linux && !darwin

package status

import "errors"

// Disk is the room on a file system, in bytes.
type Disk struct{ Free, Total uint64 }

// DiskOf fails: there is no way to ask this operating system.
func DiskOf(string) (Disk, error) {
	return Disk{}, errors.New("status: the room on disks is not known on this system")
}
