// Command lodge-bench measures Lodge on this machine: kernels, operations of the engine, and whole
// protocols between processes. It links the libraries that Lodge is compared with, which the lodge
// command does not need.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	defer stop()
	if err := rootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lodge-bench:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode returns 2 for wrong usage, and otherwise 1.
func exitCode(err error) int {
	if e := (*rpc.Error)(nil); errors.As(err, &e) && e.Code == rpc.Invalid {
		return 2
	}
	return 1
}

// rootCommand returns lodge-bench with its subcommands, including the processes of measured
// clusters.
func rootCommand() *cobra.Command {
	cmd := benchCommand()
	for _, role := range []string{"party", "coordinator"} {
		var file string
		child := &cobra.Command{
			Use: role, Hidden: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cluster.Serve(cmd.Context(), role, file, version(), cmd.ErrOrStderr())
			},
		}
		child.Flags().StringVar(&file, "config", role+".yaml", "configuration of the "+role)
		cmd.AddCommand(child)
	}
	return cmd
}

// version returns the version of the module. Processes of a cluster compare it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// invalid returns an error for wrong usage.
func invalid(next, format string, args ...any) error {
	return rpc.Errorf(rpc.Invalid, next, format, args...)
}

// complete offers words for a flag.
func complete(cmd *cobra.Command, flag string, words []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag exists
	}
}
