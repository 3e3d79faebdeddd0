package main

import "github.com/spf13/cobra"

// registerProcess adds the commands of this room to root.
func registerProcess(root *cobra.Command) {
	addCommands(root, groupRun, initCommand(), coordinatorCommand(), partyCommand(), evaluatorCommand(), composeCommand(), enrolCommand(), rosterCommand(), configCommand(), storeCommand(), auditCommand(), healthCommand(),
		statusCommand(), doctorCommand(), logLevelCommand())
	addCommands(root, groupFurther, versionCommand())
}
