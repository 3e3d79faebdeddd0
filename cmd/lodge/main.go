// Command lodge runs every part of Lodge: parties, the coordinator, clients of both, and tools for
// their files. The packages under internal hold the commands; this package runs them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // for an image without the system's roots

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/command"
)

// revision is the commit that the linker sets where Go records none: in the image, which has no
// git.
var revision string

// release is the version of a release, which the linker sets.
var release string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	defer stop()
	cli.Revision, cli.Release = revision, release
	if err := cli.Execute(ctx, command.Root(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lodge:", err)
		os.Exit(cli.ExitCode(err))
	}
}
