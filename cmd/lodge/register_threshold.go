package main

import "github.com/spf13/cobra"

// registerThreshold adds the commands of this room to root.
func registerThreshold(root *cobra.Command) {
	addCommands(root, groupDecrypt, ciphertextsCommand(), decryptCommand())
}
