package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// ProgressOf returns the progress line of a command, which is silent if the result is JSON.
func ProgressOf(cmd *cobra.Command, asJSON bool) *terminal.Progress {
	if asJSON {
		return terminal.NewProgress(io.Discard)
	}
	return terminal.NewProgress(cmd.ErrOrStderr())
}

// Size formats a number of bytes.
func Size(bytes float64) string { return terminal.Amount(bytes) }
