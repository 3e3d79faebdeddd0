// Package tuples holds the commands for batches of tuples: reserve, fetch, export, verify and
// revoke.
package tuples

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupUse, reserveCommand(), reservationsCommand(), releaseCommand(), fetchCommand(), exportCommand(), verifyCommand())
	cli.AddCommands(root, cli.GroupLookOver, batchesCommand(), revokeCommand())
}
