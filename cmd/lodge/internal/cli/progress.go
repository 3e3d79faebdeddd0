package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// ProgressOf returns the progress line of a command, which is silent with --json.
func ProgressOf(cmd *cobra.Command) *terminal.Progress {
	if JSON(cmd) {
		return terminal.NewProgress(io.Discard)
	}
	return terminal.NewProgress(cmd.ErrOrStderr())
}

// Size formats a number of bytes.
func Size(bytes float64) string { return terminal.Amount(bytes) }
