package main

import "github.com/spf13/cobra"

// Titles of the groups in which `lodge --help` lists the commands, in the order of the list.
const (
	groupTry      = "To try it:"
	groupRun      = "To run it:"
	groupMake     = "To make keys and tuples:"
	groupUse      = "To use tuples:"
	groupDecrypt  = "To have ciphertexts decrypted:"
	groupCompute  = "To compute on what nobody else sees:"
	groupLookOver = "To look after what a party holds:"
	groupFurther  = "Further:"
)

// addGroups adds the groups to root.
func addGroups(root *cobra.Command) {
	for _, title := range []string{groupTry, groupRun, groupMake, groupUse, groupDecrypt, groupCompute, groupLookOver, groupFurther} {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
	}
	root.SetHelpCommandGroupID(groupFurther)
	root.SetCompletionCommandGroupID(groupFurther)
}

// addCommands adds commands to a group of root.
func addCommands(root *cobra.Command, group string, list ...*cobra.Command) {
	for _, c := range list {
		c.GroupID = group
		root.AddCommand(c)
	}
}
