// Package coredump keeps the memory of this process, which holds secrets, out of files and from other processes of the
// same user.
package coredump

import (
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"
)

// Off switches core dumps of this process off for good, and of the processes that it starts: none of any size is written
// (RLIMIT_CORE, the hard limit too). On Linux nobody but the superuser can then attach to it or read its memory either,
// and a kernel that pipes dumps to a program, to which the limit does not apply, makes none (PR_SET_DUMPABLE). Both are
// tried, whichever fails.
func Off() error {
	var limit error
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		limit = fmt.Errorf("coredump: limit: %w", err)
	}
	return errors.Join(limit, undumpable())
}

// OffOrWarn is Off for a process that serves all the same when it fails, and says so in its log.
func OffOrWarn(log *slog.Logger) { warn(log, Off()) }

func warn(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("core dumps are not switched off: a crash may write secrets to a file", "error", err)
	}
}
