package audit

import (
	"errors"
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
