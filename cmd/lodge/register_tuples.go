package main

import "github.com/spf13/cobra"

// registerTuples adds the commands of this room to root.
func registerTuples(root *cobra.Command) {
	addCommands(root, groupUse, reserveCommand(), reservationsCommand(), releaseCommand(), fetchCommand(), exportCommand(), verifyCommand())
	addCommands(root, groupLookOver, batchesCommand(), revokeCommand())
}
