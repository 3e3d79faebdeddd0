// Package command assembles the commands of all rooms.
package command

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/conduct"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/console"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/keys"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/linear"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/process"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/try"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/tuples"
)

// Root returns `lodge` with the commands of all rooms. A command that fails returns an error, which
// main prints once.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:           "lodge",
		Short:         "Make and serve authenticated triples for secure multiparty computation",
		Version:       cli.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cli.AddGroups(root)
	cli.AddCommands(root, cli.GroupFurther, cli.ExitCodesCommand())
	for _, register := range []func(*cobra.Command){
		try.Register, process.Register, jobs.Register, keys.Register, tuples.Register, threshold.Register, multikey.Register, linear.Register, conduct.Register, console.Register,
	} {
		register(root)
	}
	cli.AddExamples(root)
	cli.Strict(root)
	return root
}
