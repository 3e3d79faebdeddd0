//go:build !linux

package coredump

// undumpable does nothing: only Linux has such an attribute.
func undumpable() error { return nil }
