package main

import "github.com/spf13/cobra"

// registerJobs adds the commands of this room to root.
func registerJobs(root *cobra.Command) {
	addCommands(root, groupMake, jobsCommand(), stockCommand())
}
