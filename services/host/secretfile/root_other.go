//go:build !unix

package secretfile

import "io/fs"

// rootOwns returns false: files have no numeric owners here.
func rootOwns(fs.FileInfo) bool { return false }
