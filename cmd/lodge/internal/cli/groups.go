// Package cli is what the commands of lodge share: connections to the processes of a cluster, typed
// errors and exit codes, JSON and tables, progress, completion, and the flags that several commands
// have.
package cli

import (
	"github.com/spf13/cobra"
)

// Titles of the groups of commands in `lodge --help`, in this order.
const (
	GroupTry      = "To try it:"
	GroupRun      = "To run it:"
	GroupMake     = "Make keys and tuples:"
	GroupUse      = "Use tuples:"
	GroupDecrypt  = "Decrypt ciphertexts:"
	GroupCompute  = "Compute on encrypted and shared data:"
	GroupLookOver = "Manage the data of one party:"
	GroupFurther  = "Further:"
)

// AddGroups adds the groups to root.
func AddGroups(root *cobra.Command) {
	for _, title := range []string{GroupTry, GroupRun, GroupMake, GroupUse, GroupDecrypt, GroupCompute, GroupLookOver, GroupFurther} {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
	}
	root.SetHelpCommandGroupID(GroupFurther)
	root.SetCompletionCommandGroupID(GroupFurther)
}

// AddCommands adds commands to a group of root.
func AddCommands(root *cobra.Command, group string, list ...*cobra.Command) {
	for _, c := range list {
		c.GroupID = group
		root.AddCommand(c)
	}
}
