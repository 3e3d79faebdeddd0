// Package threshold holds the commands that encrypt values with proofs and decrypt ciphertexts.
package threshold

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupDecrypt, ciphertextsCommand(), decryptCommand())
}
