// Package secretfile says whether others can read a file that holds a secret.
package secretfile

import "io/fs"

// Exposed says whether others than its owner can read or change a file. One of root's may be read by a group, which is how
// an orchestrator gives a file to a process that runs as nobody in particular: only root can choose that group.
func Exposed(info fs.FileInfo) bool { return exposed(info.Mode().Perm(), rootOwns(info)) }

func exposed(mode fs.FileMode, root bool) bool {
	if root {
		return mode&0o037 != 0
	}
	return mode&0o077 != 0
}
