// Package keys holds the commands for epochs of keys, MAC keys, threshold keys and parameter sets.
package keys

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupMake, paramsCommand(), keysCommand(), formerEpochsCommand())
	cli.AddCommands(root, cli.GroupLookOver, macKeysCommand())
}
