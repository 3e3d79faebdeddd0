package main

import "github.com/spf13/cobra"

// registerKeys adds the commands of this room to root.
func registerKeys(root *cobra.Command) {
	addCommands(root, groupMake, paramsCommand(), keysCommand(), epochsCommand())
	addCommands(root, groupLookOver, macKeysCommand())
}
