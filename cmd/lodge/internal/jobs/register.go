// Package jobs holds the commands for jobs and for the stock that they refill.
package jobs

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupMake, jobsCommand(), stockCommand())
}
