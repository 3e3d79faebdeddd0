package main

import "github.com/spf13/cobra"

// registerConduct adds the commands of this room to root.
func registerConduct(root *cobra.Command) {
	addCommands(root, groupLookOver, accusationsCommand())
}
