//go:build unix

package devnet

import (
	"os"
	"syscall"
)

// ownerOf is whose a file or directory is; this process's where that is not known.
func ownerOf(path string) owner {
	if info, err := os.Stat(path); err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			return owner{int(s.Uid), int(s.Gid)}
		}
	}
	return self()
}
