package audit

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allocate reserves blocks for n bytes from an offset on, without changing the file's size. It
// returns errors.ErrUnsupported if the file system cannot do this.
func allocate(f *os.File, offset, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, n)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
			return errors.ErrUnsupported
		default:
			return err
		}
	}
}

// free returns an error unless the file system has at least n free bytes.
func free(dir string, n uint64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if s.Bavail*uint64(s.Bsize) < n {
		return noSpace(dir)
	}
	return nil
}
