// Package coredump prevents core dumps of this process, whose memory has secrets, and access to its
// memory by other processes of the same user.
package coredump

import (
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sys/unix"
)

// Off permanently disables core dumps of any size for this process and its child processes
// (RLIMIT_CORE, including the hard limit). On Linux it also sets PR_SET_DUMPABLE. Then only the
// superuser can attach to the process or read its memory, and a kernel that pipes dumps to a
// program, to which the limit does not apply, makes no dump. Off tries both even if one fails.
func Off() error {
	var limit error
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		limit = fmt.Errorf("coredump: limit: %w", err)
	}
	return errors.Join(limit, undumpable())
}

// OffOrWarn calls Off and logs a warning if it fails, for a process that then continues to serve.
func OffOrWarn(log *slog.Logger) { warn(log, Off()) }

func warn(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("core dumps could not be disabled: a crash may write secrets to a file", "error", err)
	}
}
