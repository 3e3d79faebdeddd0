package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// progressOf returns the progress line of a command, which is silent if the result is JSON.
func progressOf(cmd *cobra.Command, asJSON bool) *terminal.Progress {
	if asJSON {
		return terminal.NewProgress(io.Discard)
	}
	return terminal.NewProgress(cmd.ErrOrStderr())
}

// amount formats a number of bytes.
func amount(bytes float64) string { return terminal.Amount(bytes) }
