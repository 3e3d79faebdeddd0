//go:build !linux

package coredump

// undumpable does nothing, because only Linux has this attribute.
func undumpable() error { return nil }
