// Package conduct holds the commands for the evidence that a party holds against others.
package conduct

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupLookOver, accusationsCommand())
}
