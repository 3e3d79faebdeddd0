//go:build unix

package secretfile

import (
	"io/fs"
	"os"
	"syscall"
)

// rootOwns reports whether a file belongs to root and this process is not root. The files of a root
// process need no group access.
func rootOwns(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid == 0 && os.Geteuid() != 0
}
