package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

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

// Codes of failures that no server makes, beside those of package rpc.
const (
	checkFailed          = rpc.CheckFailed // all could be looked at, and something is wrong
	badShares   rpc.Code = "bad_shares"    // a directory or stream of shares is not what it says it is
)

// errInterrupted is the error of a command that a signal ended.
var errInterrupted = rpc.Errorf(rpc.Cancelled, "", "interrupted")

// execute runs a command line. What a command fails with is written to standard output too if --json is there: as the
// member "error" of the record that the command holds back, or of an object of its own.
func execute(ctx context.Context, root *cobra.Command, args []string) error {
	out := &output{w: root.OutOrStdout()}
	root.SetOut(out)
	root.SetArgs(args)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			strict(cmd)
		}
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return out.release()
	}
	err = &finding{typed(err), err}
	asked := slices.Contains(args, "--json") // where reading flags is what failed
	if f := cmd.Flags().Lookup("json"); f != nil && f.Value.String() == "true" {
		asked = true
	}
	if asked {
		return errors.Join(err, out.fail(err))
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

// output is standard output. It holds back the record of a command that may fail.
type output struct {
	w    io.Writer
	held bool
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	if o.held {
		return o.text.Write(b)
	}
	return o.w.Write(b)
}

// hold says that what a command writes from here on is one record, to which a failure is added.
func hold(cmd *cobra.Command) {
	if o, ok := cmd.OutOrStdout().(*output); ok {
		o.held = true
	}
}

func (o *output) release() error {
	o.held = false
	_, err := o.text.WriteTo(o.w)
	return err
}

// fail writes what was held back, with the failure in it.
func (o *output) fail(err error) error {
	e := rpc.FromError(err)
	record := struct {
		Error failure `json:"error"`
	}{failure{e.Code, oneLine(e.What), oneLine(e.Next)}}
	held, isRecord := bytes.CutSuffix(bytes.TrimSpace(o.text.Bytes()), []byte("}"))
	if !isRecord {
		return errors.Join(o.release(), writeLine(o.w, record))
	}
	member, err := json.Marshal(record)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.Write(held)
	if !bytes.HasSuffix(bytes.TrimSpace(held), []byte("{")) {
		text.WriteByte(',')
	}
	text.Write(member[1:])
	o.text.Reset()
	if !bytes.Contains(held, []byte("\n")) { // the last of a list of lines
		text.WriteByte('\n')
		_, err := text.WriteTo(o.w)
		return err
	}
	if err := json.Indent(&o.text, text.Bytes(), "", "  "); err != nil {
		return err
	}
	o.text.WriteByte('\n')
	return o.release()
}

// failure is what --json says of an error: a code for programs, what happened, and what to do about it, or nothing.
type failure struct {
	Code rpc.Code `json:"code"`
	What string   `json:"what"`
	Next string   `json:"next"`
}

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
	{tuplefile.ErrManifest, badShares, "name directories that `lodge fetch` or `lodge demo --out` wrote"},
	{tuplefile.ErrTruncated, badShares, "the file was changed after it was fetched: its tuples are lost"},
	{tuplefile.ErrTrailing, badShares, "the file was changed after it was fetched: its tuples are lost"},
	{tuplefile.ErrDigest, badShares, "the file was changed after it was fetched: its tuples are lost"},
	{verify.ErrRoster, rpc.Invalid, "name one directory of shares for each party"},
	{verify.ErrInconsistent, badShares, "name the directories of one batch"},
	{verify.ErrKey, badShares, "draw each party's share of the key with `lodge mac-keys draw --pool --into DIR`"},
	{verify.ErrOnlineKey, rpc.Invalid, "draw it with `lodge mac-keys draw --pool --into DIR`, or write --retired if every party has retired the epoch"},
	{verify.ErrModulus, badShares, ""},
	{verify.ErrNotCanonical, badShares, ""},
	{vaulterr.ErrBackup, rpc.Invalid, "name a file that `lodge store backup` wrote"},
	{vaulterr.ErrWrongKey, rpc.Invalid, "name the key that seals this"},
	{vaulterr.ErrCorrupt, checkFailed, "`lodge store check` says what is wrong; restore a backup"},
	{vaulterr.ErrExists, rpc.Conflict, ""},
	{vaulterr.ErrState, rpc.Conflict, ""},
	{vaulterr.ErrQuarantine, rpc.Quarantined, "see `lodge store quarantine`"},
	{store.ErrDamaged, checkFailed, "keep a copy of the store as it is, check its disk, and follow \"A damaged store\" in docs/operations/disaster-recovery.md"},
	{store.ErrInUse, rpc.Conflict, "stop the party first"},
	{params.ErrUse, rpc.Invalid, "`lodge params show` says what fits"},
	{syscall.ENOSPC, rpc.Unavailable, "make room on the disk"},
	{fs.ErrNotExist, rpc.NotFound, "name one that is there"},
	{fs.ErrExist, rpc.Conflict, "name another"},
	{syscall.ENOTDIR, rpc.Invalid, "a file stands where a directory should: name another"},
	{fs.ErrPermission, rpc.Invalid, "see who owns it, or name another"},
}

// typed is the error that a command ends with. One that has a code keeps it, and what was said before it.
func typed(err error) *rpc.Error {
	err = plain(err)
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
		return rpc.Errorf(checkFailed, "keep the log as it is, and put back the one that belongs to this store: `lodge audit verify` says more", "%s", err.Error())
	}
	if unknown := (*keyset.UnknownError)(nil); errors.As(err, &unknown) {
		return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(unknown.Known, ", ")+"; `lodge params list --all` names all sets", "unknown %s %q",
			unknown.What, unknown.Name)
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return rpc.Errorf(rpc.Invalid, "name another", "%s", err.Error())
	}
	return rpc.FromError(err)
}

// invalid is the error of a flag or an argument.
func invalid(next, format string, args ...any) error {
	return rpc.Errorf(rpc.Invalid, next, format, args...)
}

// strict makes a command and those below it fail, with a code and a next step, for words and flags that they do not know.
// One that has subcommands names those that are like the word, and shows its help when there is none.
func strict(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return invalid("see `"+cmd.CommandPath()+" --help`", "%v", err)
	})
	check := cmd.Args
	switch {
	case cmd.HasSubCommands() && cmd.Annotations[takesArguments] == "":
		check = unknownCommand
		if !cmd.Runnable() {
			cmd.RunE = showHelp
			cmd.DisableFlagsInUseLine = true
			cmd.Annotations = map[string]string{onlyHelp: ""}
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
				return invalid("write `"+cmd.UseLine()+"`", "%v", err)
			}
		}
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return invalid("see `"+cmd.CommandPath()+" --help`", "%v", err)
		}
		return nil
	}
}

// onlyHelp annotates commands that show their help when they stand alone, and takesArguments those whose words need not
// be subcommands.
const (
	onlyHelp       = "only-help"
	takesArguments = "takes-arguments"
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
	return invalid(next, "unknown command %q for %q", args[0], cmd.CommandPath())
}
