package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// maxTail is the largest number of entries that `lodge audit show` prints.
const maxTail = 100_000

// auditReport is the JSON outcome of `lodge audit verify`.
type auditReport struct {
	audit.Summary
	OK bool `json:"ok"`
}

// auditCommand returns `lodge audit`, which reads a party's audit log. It works while the party
// runs.
func auditCommand() *cobra.Command {
	cmd := cli.Command("audit", nil)
	cmd.AddCommand(auditVerifyCommand(), auditShowCommand())
	return cmd
}

func auditVerifyCommand() *cobra.Command {
	var heads []string
	cmd := cli.Command("verify", func(cmd *cobra.Command, args []string) error {
		var known []audit.Hash
		for _, text := range heads {
			h, err := audit.ParseHash(text)
			if err != nil {
				return rpc.Errorf(rpc.Invalid, "write 64 hexadecimal digits, as `lodge audit verify` prints them", "--head %q", text)
			}
			known = append(known, h)
		}
		sum, err := audit.Verify(args[0], known...)
		w := cmd.OutOrStdout()
		if err != nil && !errors.As(err, new(*fs.PathError)) {
			err = rpc.Errorf(cli.CheckFailed, "keep this log unchanged, and compare it with a backup", "%v", err)
		}
		if cli.Hold(cmd); cli.JSON(cmd) {
			r := auditReport{Summary: sum, OK: err == nil}
			if werr := cli.WriteJSON(w, r); werr != nil {
				return werr
			}
			return err
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%d entries in %d files are unbroken; the last is %d with the hash %s\n", sum.Entries, sum.Files, sum.Head.Seq, sum.Head.Hash)
		return err
	})
	cmd.Flags().StringSliceVar(&heads, "head", nil, "hash of an entry that must be in the log; may be repeated")
	cmd.Flags().Bool("json", false, "write the result as JSON")
	return cmd
}

func auditShowCommand() *cobra.Command {
	var tail int
	cmd := cli.Command("show", func(cmd *cobra.Command, args []string) error {
		if tail < 1 || tail > maxTail {
			return rpc.Errorf(rpc.Invalid, fmt.Sprintf("write 1 to %d", maxTail), "--tail %d", tail)
		}
		entries, err := audit.Tail(args[0], tail)
		if err != nil {
			return err
		}
		if !cli.JSON(cmd) {
			return printEntries(cmd.OutOrStdout(), entries)
		}
		for _, e := range entries {
			if err := cli.WriteJSONLine(cmd.OutOrStdout(), e); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().IntVar(&tail, "tail", 20, "how many")
	cmd.Flags().Bool("json", false, "write every entry as one line of JSON")
	return cmd
}

// printEntries writes entries as a table.
func printEntries(w io.Writer, entries []audit.Entry) error {
	return cli.PrintTable(w, "", "SEQ\tTIME\tEVENT\tACTOR\tTENANT\tCOUNT\tOBJECTS\tNOTE", entries, func(e audit.Entry) []any {
		actor, count := cli.OrDash(e.Actor), "-"
		if e.Auth != "" {
			actor += " (" + string(e.Auth) + ")"
		}
		if e.Count > 0 {
			count = fmt.Sprint(e.Count)
		}
		return []any{e.Seq, e.Time.Format(time.RFC3339), e.Event, actor, e.Tenant, count, strings.Join(e.Objects, " "), e.Note}
	})
}
