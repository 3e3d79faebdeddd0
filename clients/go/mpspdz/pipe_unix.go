//go:build unix

package mpspdz

import (
	"os"
	"syscall"
)

// mkfifo creates a named pipe that only its owner can use.
func mkfifo(path string) error {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	return nil
}
