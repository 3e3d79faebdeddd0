// Package process holds the commands that run processes and look after them: configuration,
// enrolment, health, status, logs and stores.
package process

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// Register adds the commands of this package to root.
func Register(root *cobra.Command) {
	cli.AddCommands(root, cli.GroupRun, initCommand(), processCommand("coordinator", runCoordinator), processCommand("party", runParty),
		processCommand("evaluator", runEvaluator), composeCommand(), enrolCommand(), rosterCommand(), configCommand(), storeCommand(),
		auditCommand(), healthCommand(), statusCommand(), doctorCommand(), logLevelCommand())
	cli.AddCommands(root, cli.GroupFurther, versionCommand())
}
