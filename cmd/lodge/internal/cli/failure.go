package cli

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault"
)

// Misconfigured is the error of a configuration of a process.
func Misconfigured(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name the configuration with --config, such as CLUSTER/p0/party.yaml; where it is there, a file that it names is not",
			"%v", err)
	}
	return Invalid("mend the configuration: docs/operations/operate.md says what stands in it", "%v", err)
}

// Codes of failures that no server makes, beside those of package rpc.
const (
	CheckFailed          = rpc.CheckFailed // all could be looked at, and something is wrong
	BadShares   rpc.Code = "bad_shares"    // a directory or stream of shares is not what it says it is
)

// ErrInterrupted is the error of a command that a signal ended.
var ErrInterrupted = rpc.Errorf(rpc.Cancelled, "", "interrupted")

// Execute runs a command line. What a command fails with is written to standard output too if --json is there: as the
// member "error" of the record that the command holds back, or of an object of its own.
func Execute(ctx context.Context, root *cobra.Command, args []string) error {
	out := &Output{W: root.OutOrStdout()}
	root.SetOut(out)
	root.SetArgs(args)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			Strict(cmd)
		}
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return out.release()
	}
	err = &finding{Typed(err), err}
	asked := slices.Contains(args, "--json") // where reading flags is what failed
	if f := cmd.Flags().Lookup("json"); f != nil && f.Value.String() == "true" {
		asked = true
	}
	if asked {
		return errors.Join(err, out.Fail(err))
	}
	return errors.Join(err, out.release())
}

// finding is the error that a command ended with, and what made it.
type finding struct {
	said  *rpc.Error
	cause error
}

func (f *finding) Error() string { return f.said.Error() }

// Unwrap gives both.
func (f *finding) Unwrap() []error { return []error{f.said, f.cause} }

// kinds are the errors of packages that know no codes, and what to do about them.
var kinds = []struct {
	is   error
	code rpc.Code
	next string
}{
	{context.DeadlineExceeded, rpc.TimedOut, ""},
	{context.Canceled, rpc.Cancelled, ""},
	{mpspdz.ErrNoKey, rpc.Conflict, "while the lease lasts, fetch the reservation again with `lodge fetch --with-mac-key` to a new directory, and remove this one"},
	{mpspdz.ErrPooled, rpc.Conflict, "tuples that were checked with everybody's shares are not for use: reserve and fetch others"},
	{mpspdz.ErrExported, rpc.Conflict, "use that, or fetch other tuples: used twice, they reveal inputs; --force is for when nothing has read any of that"},
	{mpspdz.ErrExists, rpc.Conflict, "name another --out or --suffix, or overwrite with --force"},
	{mpspdz.ErrSources, rpc.Invalid, "export the shares of one party and one epoch of keys, every batch once"},
	{mpspdz.ErrOptions, rpc.Invalid, "see `lodge export mp-spdz --help`"},
	{mpspdz.ErrKind, rpc.Invalid, "docs/guides/mp-spdz.md says what MP-SPDZ reads"},
	{mpspdz.ErrPrime, rpc.Invalid, "docs/guides/mp-spdz.md says what MP-SPDZ reads"},
	{tuplefile.ErrManifest, BadShares, "name directories that `lodge fetch` or `lodge demo --out` wrote"},
	{tuplefile.ErrTruncated, BadShares, "the file was changed after it was fetched: its tuples are lost"},
	{tuplefile.ErrTrailing, BadShares, "the file was changed after it was fetched: its tuples are lost"},
	{tuplefile.ErrDigest, BadShares, "the file was changed after it was fetched: its tuples are lost"},
	{verify.ErrRoster, rpc.Invalid, "name one directory of shares for each party"},
	{verify.ErrInconsistent, BadShares, "name the directories of one batch"},
	{verify.ErrKey, BadShares, "draw each party's share of the key with `lodge mac-keys draw --pool --into DIR`"},
	{verify.ErrOnlineKey, rpc.Invalid, "draw it with `lodge mac-keys draw --pool --into DIR`, or write --retired if every party has retired the epoch"},
	{verify.ErrModulus, BadShares, ""},
	{verify.ErrNotCanonical, BadShares, ""},
	{vault.ErrBackup, rpc.Invalid, "name a file that `lodge store backup` wrote"},
	{vault.ErrWrongKey, rpc.Invalid, "name the key that seals this"},
	{vault.ErrCorrupt, CheckFailed, "`lodge store check` says what is wrong; restore a backup"},
	{vault.ErrExists, rpc.Conflict, ""},
	{vault.ErrState, rpc.Conflict, ""},
	{vault.ErrQuarantine, rpc.Quarantined, "see `lodge store quarantine`"},
	{store.ErrDamaged, CheckFailed, "keep a copy of the store as it is, check its disk, and follow \"A damaged store\" in docs/operations/disaster-recovery.md"},
	{store.ErrInUse, rpc.Conflict, "stop the party first"},
	{params.ErrUse, rpc.Invalid, "`lodge params show` says what fits"},
	{syscall.ENOSPC, rpc.Unavailable, "make room on the disk"},
	{fs.ErrNotExist, rpc.NotFound, "name one that is there"},
	{fs.ErrExist, rpc.Conflict, "name another"},
	{syscall.ENOTDIR, rpc.Invalid, "a file stands where a directory should: name another"},
	{fs.ErrPermission, rpc.Invalid, "see who owns it, or name another"},
}

// Typed is the error that a command ends with. One that has a code keeps it, and what was said before it.
func Typed(err error) *rpc.Error {
	err = FromClient(err)
	if e := (*rpc.Error)(nil); errors.As(err, &e) {
		out := *e
		out.What = strings.Replace(err.Error(), e.Error(), e.What, 1)
		return &out
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return rpc.Errorf(k.code, k.next, "%s", err.Error())
		}
	}
	if broken := (*audit.BrokenError)(nil); errors.As(err, &broken) {
		return rpc.Errorf(CheckFailed, "keep the log as it is, and put back the one that belongs to this store: `lodge audit verify` says more", "%s", err.Error())
	}
	if unknown := (*params.UnknownError)(nil); errors.As(err, &unknown) {
		return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(unknown.Known, ", ")+"; `lodge params list --all` names all sets", "unknown %s %q",
			unknown.What, unknown.Name)
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return rpc.Errorf(rpc.Invalid, "name another", "%s", err.Error())
	}
	return rpc.FromError(err)
}

// Invalid is the error of a flag or an argument.
func Invalid(next, format string, args ...any) error {
	return rpc.Errorf(rpc.Invalid, next, format, args...)
}

// Strict makes a command and those below it fail, with a code and a next step, for words and flags that they do not know.
// One that has subcommands names those that are like the word, and shows its help when there is none.
func Strict(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		Strict(sub)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Invalid("see `"+cmd.CommandPath()+" --help`", "%v", err)
	})
	check := cmd.Args
	switch {
	case cmd.HasSubCommands() && cmd.Annotations[TakesArguments] == "":
		check = unknownCommand
		if !cmd.Runnable() {
			cmd.RunE = showHelp
			cmd.DisableFlagsInUseLine = true
			cmd.Annotations = map[string]string{OnlyHelp: ""}
		}
	case cmd.Name() == "help":
		check = func(cmd *cobra.Command, args []string) error {
			if of, rest, err := cmd.Root().Find(args); err != nil || of.HasSubCommands() && len(rest) > 0 {
				return unknownCommand(of, rest)
			}
			return nil
		}
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check != nil {
			if err := check(cmd, args); errors.As(err, new(*rpc.Error)) {
				return err
			} else if err != nil {
				return Invalid("write `"+cmd.UseLine()+"`", "%v", err)
			}
		}
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return Invalid("see `"+cmd.CommandPath()+" --help`", "%v", err)
		}
		return nil
	}
}

// OnlyHelp annotates commands that show their help when they stand alone, and takesArguments those whose words need not
// be subcommands.
const (
	OnlyHelp       = "only-help"
	TakesArguments = "takes-arguments"
)

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// unknownCommand refuses a word where a subcommand should stand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	next := "see `" + cmd.CommandPath() + " --help`"
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		next = "did you mean `" + cmd.CommandPath() + " " + strings.Join(like, "` or `"+cmd.CommandPath()+" ") + "`?"
	}
	return Invalid(next, "unknown command %q for %q", args[0], cmd.CommandPath())
}

// ErrUnverified is the error of `lodge verify` when the shares could be read and something in them is wrong.
var ErrUnverified = rpc.Errorf(CheckFailed, "do not use these tuples", "verification failed")
