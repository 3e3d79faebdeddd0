// Command lodge runs every part of Lodge: parties, the coordinator, clients of both, and tools for their files. The rooms
// under internal hold the commands; this package assembles them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// revision is the commit that the linker sets where Go records none: in the image, which has no git.
var revision string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	defer stop()
	builtFrom = revision
	if err := execute(ctx, newRoot(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lodge:", err)
		os.Exit(exitCode(err))
	}
}

// exitCode returns 2 if the user must run another program, and otherwise 1.
func exitCode(err error) int {
	if errors.Is(err, errMoved) {
		return 2
	}
	return 1
}
