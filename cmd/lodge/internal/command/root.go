// Package command assembles the commands of the other packages in cmd/lodge/internal.
package command

import (
	"embed"
	"strings"

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

//go:embed help/*.md
var help embed.FS

// pages returns all help pages.
func pages() string {
	var all strings.Builder
	files, _ := help.ReadDir("help") // embedded files can always be read
	for _, f := range files {
		text, _ := help.ReadFile("help/" + f.Name())
		all.Write(append(text, '\n'))
	}
	return all.String()
}

// Root returns `lodge` with all commands. A command that fails returns an error, which
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
	cli.Describe(root, pages())
	cli.Strict(root)
	return root
}
