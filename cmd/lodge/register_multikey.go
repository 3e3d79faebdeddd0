package main

import "github.com/spf13/cobra"

// registerMultikey adds the commands of this room to root.
func registerMultikey(root *cobra.Command) {
	addCommands(root, groupCompute, mkCommand())
}
