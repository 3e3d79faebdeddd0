//go:build !linux

package audit

import (
	"errors"
	"fmt"
	"os"

	"github.com/lodge-mpc/lodge/services/store/disk"
)

func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
