package main

import "github.com/spf13/cobra"

// registerLinear adds the commands of this room to root.
func registerLinear(root *cobra.Command) {
	addCommands(root, groupCompute, linearCommand())
}
