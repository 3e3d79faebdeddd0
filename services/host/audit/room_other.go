//go:build !linux

package audit

import (
	"errors"
	"fmt"
	"os"

	"github.com/lodge-mpc/lodge/services/store/disk"
)

func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }

// free returns an error unless the file system has at least n free bytes.
func free(dir string, n uint64) error {
	s, err := disk.SpaceOf(dir)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if s.Free < n {
		return noSpace(dir)
	}
	return nil
}
