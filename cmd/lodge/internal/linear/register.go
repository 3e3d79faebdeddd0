// Package linear holds the commands for products of encrypted or shared matrices.
package linear

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupCompute, linearCommand())
}
