package main

import "github.com/spf13/cobra"

// registerTry adds the commands of this room to root.
func registerTry(root *cobra.Command) {
	addCommands(root, groupTry, demoCommand(), devCommand())
	addCommands(root, groupFurther, benchCommand())
}
