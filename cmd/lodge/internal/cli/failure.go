package cli

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Misconfigured returns the typed error for a process whose configuration cannot be loaded.
func Misconfigured(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name the configuration with --config, such as CLUSTER/p0/party.yaml; if that file exists, a file that it refers to is missing",
			"%v", err)
	}
	return Invalid("correct the configuration as docs/operations/operate.md describes", "%v", err)
}

// Codes of failures that are detected in this process, in addition to the codes of package rpc.
const (
	CheckFailed          = rpc.CheckFailed // the check was completed and found a fault
	BadShares   rpc.Code = "bad_shares"    // a directory or stream of shares is invalid
)

// ErrInterrupted is the error of a command that a signal ended.
var ErrInterrupted = rpc.Errorf(rpc.Cancelled, "", "interrupted")

// Execute runs a command line. With --json it also writes the error to standard output: as the
// member "error" of the record that the command held back, or as an object.
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
	if slices.Contains(args, "--json") || JSON(cmd) { // the flags may not have been parsed
		return errors.Join(err, out.Fail(err))
	}
	return errors.Join(err, out.release())
}

// finding is the error of a command together with its cause.
type finding struct {
	said  *rpc.Error
	cause error
}

func (f *finding) Error() string { return f.said.Error() }

// Unwrap returns the typed error and the cause.
func (f *finding) Unwrap() []error { return []error{f.said, f.cause} }

// kinds maps errors of packages that do not use codes to a code and a next step.
var kinds = []struct {
	is   error
	code rpc.Code
	next string
}{
	{context.DeadlineExceeded, rpc.TimedOut, ""},
	{context.Canceled, rpc.Cancelled, ""},
	{mpspdz.ErrNoKey, rpc.Conflict, "while the lease lasts, fetch the reservation again with `lodge fetch --with-mac-key` to a new directory, and remove this one"},
	{mpspdz.ErrPooled, rpc.Conflict, "all parties' shares of these tuples were collected for a check, so they must not be used: reserve and fetch others"},
	{mpspdz.ErrExported, rpc.Conflict, "use the exported files, or fetch other tuples: tuples that are used twice reveal inputs; add --force only if no program has read the exported files"},
	{mpspdz.ErrExists, rpc.Conflict, "name another --out or --suffix, or overwrite with --force"},
	{mpspdz.ErrSources, rpc.Invalid, "export the shares of one party and one epoch of keys, and each batch once"},
	{mpspdz.ErrOptions, rpc.Invalid, "see `lodge export mp-spdz --help`"},
	{mpspdz.ErrKind, rpc.Invalid, "docs/guides/mp-spdz.md lists the supported kinds and fields"},
	{mpspdz.ErrPrime, rpc.Invalid, "docs/guides/mp-spdz.md lists the supported kinds and fields"},
	{tuplefile.ErrManifest, BadShares, "name directories that `lodge fetch` or `lodge demo --out` wrote"},
	{tuplefile.ErrTruncated, BadShares, "the file was changed after the download: its tuples are lost"},
	{tuplefile.ErrTrailing, BadShares, "the file was changed after the download: its tuples are lost"},
	{tuplefile.ErrDigest, BadShares, "the file was changed after the download: its tuples are lost"},
	{verify.ErrRoster, rpc.Invalid, "name one directory of shares for each party"},
	{verify.ErrInconsistent, BadShares, "name the directories of one batch"},
	{verify.ErrKey, BadShares, "obtain each party's share of the key with `lodge mac-keys draw --pool --into DIR`"},
	{verify.ErrOnlineKey, rpc.Invalid, "obtain it with `lodge mac-keys draw --pool --into DIR`, or add --retired if every party has retired the epoch"},
	{verify.ErrModulus, BadShares, ""},
	{verify.ErrNotCanonical, BadShares, ""},
	{vaulterr.ErrBackup, rpc.Invalid, "name a file that `lodge store backup` wrote"},
	{vaulterr.ErrWrongKey, rpc.Invalid, "name the key that encrypts this file"},
	{vaulterr.ErrCorrupt, CheckFailed, "run `lodge store check` for details, or restore a backup"},
	{vaulterr.ErrExists, rpc.Conflict, ""},
	{vaulterr.ErrState, rpc.Conflict, ""},
	{vaulterr.ErrQuarantine, rpc.Quarantined, "see `lodge store quarantine`"},
	{store.ErrDamaged, CheckFailed, "keep a copy of the store as it is, check its disk, and follow \"A damaged store\" in docs/operations/disaster-recovery.md"},
	{store.ErrInUse, rpc.Conflict, "stop the party first"},
	{params.ErrUse, rpc.Invalid, "see `lodge params show` for supported values"},
	{syscall.ENOSPC, rpc.Unavailable, "free space on the disk"},
	{fs.ErrNotExist, rpc.NotFound, "name a file that exists"},
	{fs.ErrExist, rpc.Conflict, "name another file"},
	{syscall.ENOTDIR, rpc.Invalid, "name another path: this one needs a directory where a file exists"},
	{fs.ErrPermission, rpc.Invalid, "check the owner of the file, or name another"},
}

// Typed converts the error of a command to an *rpc.Error. An error that wraps an *rpc.Error keeps
// its code, and the text before it.
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
		return rpc.Errorf(CheckFailed, "keep the log unchanged and restore the one that belongs to this store; `lodge audit verify` prints details", "%s", err.Error())
	}
	if unknown := (*keyset.UnknownError)(nil); errors.As(err, &unknown) {
		return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(unknown.Known, ", ")+"; `lodge params list --all` names all sets", "unknown %s %q",
			unknown.What, unknown.Name)
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return rpc.Errorf(rpc.Invalid, "name another file", "%s", err.Error())
	}
	return rpc.FromError(err)
}

// Invalid returns the error of an invalid flag or argument. next says how to correct it.
func Invalid(next, format string, args ...any) error {
	return rpc.Errorf(rpc.Invalid, next, format, args...)
}

// Strict makes cmd and its subcommands fail with a code and a next step for unknown words and
// flags. A command with subcommands suggests similar words, and without a word it prints its help.
func Strict(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		Strict(sub)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return flagError(cmd, err)
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

// flagError explains why the flags of a command are invalid. A flag after a misspelt command is
// unknown because the command is.
func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); len(words) > 0 && cmd.HasSubCommands() && cmd.Annotations[TakesArguments] == "" {
		return unknownCommand(cmd, words)
	}
	next := "see `" + cmd.CommandPath() + " --help`"
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return Invalid(next, "%v", err)
	}
	flag := bad.GetFlag()
	for prefix, wants := range map[string]string{
		"uint": "a whole number that is not negative, such as 1000", "int": "a whole number, such as 3", "float": "a number, such as 0.5",
		"duration": "a duration, such as 30s or 10m", "bool": "true or false, after an equals sign",
	} {
		if kind := strings.TrimRight(flag.Value.Type(), "0123456789"); kind == prefix {
			return Invalid("write "+wants+"; "+next, "--%s %s", flag.Name, OneLine(bad.GetValue()))
		}
	}
	return Invalid(next, "--%s %s: %v", flag.Name, OneLine(bad.GetValue()), errors.Unwrap(err))
}

// OnlyHelp annotates commands that print their help if they have no subcommand. TakesArguments
// annotates commands with subcommands that accept other arguments too.
const (
	OnlyHelp       = "only-help"
	TakesArguments = "takes-arguments"
)

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// unknownCommand rejects an argument that is not a subcommand.
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

// ErrUnverified is the error of `lodge verify` if the shares are readable and some tuples are
// wrong.
var ErrUnverified = rpc.Errorf(CheckFailed, "do not use these tuples", "verification failed")
