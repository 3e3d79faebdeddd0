// Package try holds the commands for trying Lodge on one machine: demonstrations and a development
// cluster.
package try

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupTry, DemoCommand(), devCommand(), quickstartCommand())
	cli.AddCommands(root, cli.GroupFurther, benchCommand())
}
