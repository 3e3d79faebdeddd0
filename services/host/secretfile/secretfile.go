// Package secretfile checks whether other users can read a file with a secret.
package secretfile

import "io/fs"

// Exposed reports whether users other than its owner can read or change a file. A file of root may
// be readable by a group: orchestrators pass files this way to processes with an arbitrary user id,
// and only root can choose the group.
func Exposed(info fs.FileInfo) bool { return exposed(info.Mode().Perm(), rootOwns(info)) }

func exposed(mode fs.FileMode, root bool) bool {
	if root {
		return mode&0o037 != 0
	}
	return mode&0o077 != 0
}
