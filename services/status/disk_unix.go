//go:build linux || darwin

package status

import "golang.org/x/sys/unix"

// Disk is the room on a file system, in bytes.
type Disk struct{ Free, Total uint64 }

// DiskOf gives the room on the file system of a directory, as far as this process may use it.
func DiskOf(dir string) (Disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Disk{}, err
	}
	size := uint64(s.Bsize)
	return Disk{Free: s.Bavail * size, Total: s.Blocks * size}, nil
}
