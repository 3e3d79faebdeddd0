//go:build !unix

package secretfile

import "io/fs"

// rootOwns is false: files have no owners by number.
func rootOwns(fs.FileInfo) bool { return false }
