// Command lodge runs every part of Lodge: parties, the coordinator, the demonstration, the checker of exported shares and
// the registry of parameter sets. It holds flags, wiring and exit codes; nothing else.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lodge:", err)
		os.Exit(1)
	}
}

// rootCommand is `lodge` with all of its subcommands. A command that fails returns an error, which main prints once.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "lodge",
		Short:         "Make and serve authenticated triples for secure multiparty computation",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		paramsCommand(),
		verifyCommand(),
		auditCommand(),
		exportCommand(),
		storeCommand(),
		initCommand(),
		partyCommand(),
		coordinatorCommand(),
		demoCommand(),
		devCommand(),
		jobsCommand(),
		stockCommand(),
		reserveCommand(),
		reservationsCommand(),
		releaseCommand(),
		fetchCommand(),
		batchesCommand(),
		macKeysCommand(),
		revokeCommand(),
		epochsCommand(),
		statusCommand(),
		doctorCommand(),
		benchCommand(),
	)
	return root
}

// version is the module version that Go recorded, with the commit where there is one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v += " " + s.Value
		}
	}
	return v
}
