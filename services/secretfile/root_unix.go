//go:build unix

package secretfile

import (
	"io/fs"
	"os"
	"syscall"
)

// rootOwns says whether a file is root's and this process is not root, whose own files no group needs to read.
func rootOwns(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid == 0 && os.Geteuid() != 0
}
