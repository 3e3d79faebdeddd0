package coredump

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// undumpable also blocks debuggers. The attribute is not inherited through exec.
func undumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("coredump: attribute: %w", err)
	}
	return nil
}
