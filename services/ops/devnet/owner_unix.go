//go:build unix

package devnet

import (
	"os"
	"syscall"
)

// ownerOf returns the owner of a file or directory, or this process's if it is unknown.
func ownerOf(path string) owner {
	if info, err := os.Stat(path); err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			return owner{int(s.Uid), int(s.Gid)}
		}
	}
	return self()
}
