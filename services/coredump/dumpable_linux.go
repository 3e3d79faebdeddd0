package coredump

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// undumpable also denies debuggers. It is not inherited through exec.
func undumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("coredump: attribute: %w", err)
	}
	return nil
}
