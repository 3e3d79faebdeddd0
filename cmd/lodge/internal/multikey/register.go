// Package multikey holds the commands for ciphertexts under several parties' own keys.
package multikey

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupCompute, mkCommand())
}
