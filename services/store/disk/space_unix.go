//go:build linux || darwin

package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// SpaceOf returns the space on the file system of a directory that this process may use.
func SpaceOf(dir string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Space{}, fmt.Errorf("disk: %w", err)
	}
	size := uint64(s.Bsize)
	return Space{Free: s.Bavail * size, Total: s.Blocks * size}, nil
}
