// Command lodge runs every part of Lodge: parties, the coordinator, the demonstration, the checker of exported shares and
// the registry of parameter sets. It holds flags, wiring and exit codes; nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	defer stop()
	if err := execute(ctx, rootCommand(), os.Args[1:]); err != nil {
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

// rootCommand is `lodge` with all of its subcommands. A command that fails returns an error, which main prints once.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "lodge",
		Short:         "Make and serve authenticated triples for secure multiparty computation",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	for _, g := range []struct {
		title string
		list  []*cobra.Command
	}{
		{"To try it:", []*cobra.Command{demoCommand(), devCommand()}},
		{"To run it:", []*cobra.Command{
			initCommand(), composeCommand(), enrolCommand(), rosterCommand(), configCommand(), coordinatorCommand(), partyCommand(),
			evaluatorCommand(), storeCommand(), auditCommand(), healthCommand(), statusCommand(), doctorCommand(), logLevelCommand(),
		}},
		{"To make keys and tuples:", []*cobra.Command{paramsCommand(), keysCommand(), jobsCommand(), stockCommand(), epochsCommand()}},
		{"To use tuples:", []*cobra.Command{reserveCommand(), reservationsCommand(), releaseCommand(), fetchCommand(), exportCommand(), verifyCommand()}},
		{"To have ciphertexts decrypted:", []*cobra.Command{ciphertextsCommand(), decryptCommand()}},
		{"To compute on what nobody else sees:", []*cobra.Command{linearCommand(), mkCommand()}},
		{"To look after what a party holds:", []*cobra.Command{batchesCommand(), macKeysCommand(), revokeCommand(), accusationsCommand()}},
		{"Further:", []*cobra.Command{benchCommand(), versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.list {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("Further:")
	root.SetCompletionCommandGroupID("Further:")
	exemplify(root)
	strict(root)
	return root
}
