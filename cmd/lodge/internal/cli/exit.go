package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Exit codes of lodge. They are part of its interface: a script can distinguish its own mistakes
// from failures.
const (
	ExitSuccess     = 0
	ExitFailure     = 1
	ExitUsage       = 2   // the command line or a file that it names is invalid
	ExitFault       = 3   // a check was completed and found a fault
	ExitInterrupted = 130 // as a shell reports a command that SIGINT ended
)

// exitCodes describes the exit codes for `lodge help exit-codes` and docs/reference/exit-codes.md.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{ExitSuccess, "the command succeeded"},
	{ExitFailure, "the command failed: a process is unreachable, a request was rejected, a job failed"},
	{ExitUsage, "the request is invalid: an unknown flag, a wrong value, an unusable configuration or file (code invalid_request)"},
	{ExitFault, "a check was completed and found a fault: lodge verify, accusations verify, audit verify, doctor, store check (codes check_failed and bad_shares)"},
	{ExitInterrupted, "a signal interrupted the command"},
}

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	if err == nil {
		return ExitSuccess
	}
	if errors.Is(err, ErrInterrupted) {
		return ExitInterrupted
	}
	switch Typed(err).Code {
	case rpc.Invalid:
		return ExitUsage
	case CheckFailed, BadShares:
		return ExitFault
	}
	return ExitFailure
}

// ExitCodesCommand returns the help topic `lodge help exit-codes`.
func ExitCodesCommand() *cobra.Command {
	var list strings.Builder
	for _, x := range exitCodes {
		fmt.Fprintf(&list, "  %-4d %s\n", x.code, x.meaning)
	}
	return &cobra.Command{
		Use:         "exit-codes",
		Short:       "Exit codes of all commands",
		Long:        "Every command exits with one of these codes:\n\n" + list.String() + "\nWith --json the member \"error\" has a more precise code, the text, and the next step.",
		Annotations: map[string]string{OnlyHelp: ""},
	}
}
