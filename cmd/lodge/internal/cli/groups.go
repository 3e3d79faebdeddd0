// Package cli is what the commands of lodge share: connections to the processes of a cluster, typed errors and exit codes,
// JSON and tables, progress, completion, and the flags that several commands have.
package cli

import (
	"github.com/spf13/cobra"
)

// Titles of the groups in which `lodge --help` lists the commands, in the order of the list.
const (
	GroupTry      = "To try it:"
	GroupRun      = "To run it:"
	GroupMake     = "To make keys and tuples:"
	GroupUse      = "To use tuples:"
	GroupDecrypt  = "To have ciphertexts decrypted:"
	GroupCompute  = "To compute on what nobody else sees:"
	GroupLookOver = "To look after what a party holds:"
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
