package process

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
)

// writeStore writes a report as JSON or as text.
func writeStore[R any](o *storeFlags, cmd *cobra.Command, r R, print func(io.Writer, R)) error {
	return cli.Write(cmd, r, func(w io.Writer) error {
		t := cli.NewTable(w)
		print(t, r)
		return t.Flush()
	})
}

func printCheck(w io.Writer, r checkReport) {
	for _, f := range r.List {
		mark := ""
		if f.Mended {
			mark = " (the next start completes it)"
		}
		fmt.Fprintf(w, "%s: %s%s\n", f.Where, f.What, mark)
	}
	fmt.Fprintf(w, "%d records and %d blobs", r.Records, r.Blobs)
	if r.Audit != nil {
		fmt.Fprintf(w, ", and %d entries of the audit log,", r.Audit.Entries)
	}
	if r.Deep {
		fmt.Fprintf(w, " with %d segments of tuples read", r.Segments)
	}
	if r.OK {
		fmt.Fprintln(w, ": sound")
	} else {
		fmt.Fprintf(w, ": %d findings\n", r.Findings)
	}
}

// counts formats a map of states in order, such as "3 active, 1 burnt".
func counts[S ~string](m map[S]int) string {
	var all []string
	for _, state := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%d %s", m[state], state))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// className describes a class in one word.
func className(c stock.Class) string {
	name := c.Kind
	if s := wire.ShapeOf(c.Shape()); s != nil {
		name += " " + cli.ShapeText(s)
	}
	if kind.Of(c.Kind).Owned() {
		name += fmt.Sprintf(" of party %d", c.InputParty)
	}
	if c.NoSacrifice {
		name += " (no sacrifice)"
	}
	return name
}

func printStats(w io.Writer, s *upkeep.Stats) {
	if len(s.Classes) > 0 {
		fmt.Fprintln(w, "TENANT\tTUPLES\tPARAMS\tFIELD\tFREE\tRESERVED\tCONSUMED\tLOST\tLOCKED\tDROPPED\tMB")
		for _, c := range s.Classes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\n", c.Tenant, className(c.Class), c.Params, c.Field,
				c.Free, c.Reserved, c.Consumed, c.Lost, c.Locked, c.Dropped, float64(c.Bytes)/1e6)
		}
		fmt.Fprintln(w)
	}
	if len(s.Masks) > 0 {
		fmt.Fprintln(w, "EPOCH\tQUORUM\tMASKS\tFREE\tSPENT\tLOST\tLOCKED\tMB")
		for _, m := range s.Masks {
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%d\t%d\t%.1f\n", m.Epoch, strings.Trim(fmt.Sprint(m.Quorum), "[]"), m.Form, m.Free,
				m.Spent, m.Lost, m.Locked, float64(m.Bytes)/1e6)
		}
		fmt.Fprintln(w)
	}
	if len(s.Epochs) > 0 {
		fmt.Fprintln(w, "EPOCH\tPURPOSE\tSTATE\tDECRYPTED\tOF\tWITH MASKS")
		for _, e := range s.Epochs {
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%d\n", e.ID, e.Purpose, e.State, e.Decrypted, e.Limit, e.Answered)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "batches\t%s\n", counts(s.Batches))
	fmt.Fprintf(w, "reservations\t%s\n", counts(s.Reservations))
	fmt.Fprintf(w, "MAC keys\t%s\n", counts(s.MACKeys))
	fmt.Fprintf(w, "decryptions\t%d\n", s.Decryptions)
	if s.Approvals > 0 {
		fmt.Fprintf(w, "approvals\t%d requests have or await approval\n", s.Approvals)
	}
	fmt.Fprintf(w, "stored\t%d records, %d blobs of %.1f MB\n", s.Records, s.Blobs, float64(s.BlobBytes)/1e6)
	fmt.Fprintf(w, "store\t%s, made %s, generation %d\n", s.Store, s.Created.Format(time.RFC3339), s.Generation)
	if s.Quarantine != "" {
		fmt.Fprintf(w, "QUARANTINE\t%s\n", s.Quarantine)
	}
}

func printBackup(w io.Writer, r backupReport) {
	fmt.Fprintf(w, "%s: %.1f MB with %d records and %d blobs of store %s at generation %d, read back\n", r.File,
		float64(r.FileBytes)/1e6, r.Records, r.Blobs, r.Store, r.Generation)
}

func printRestore(w io.Writer, r restoreReport) {
	did := "restored"
	if r.DryRun {
		did = "would restore"
	}
	fmt.Fprintf(w, "%s %d records and %d blobs, backed up %s from store %s at generation %d\n", did, r.Records, r.Blobs,
		r.Taken.Format(time.RFC3339), r.Store, r.Generation)
	if r.KeepDecryption {
		fmt.Fprintln(w, "Epochs for tuples are retired, and epochs for decryption drain. Destroy again the epochs that were destroyed after the backup.")
	} else {
		fmt.Fprintln(w, "All epochs are retired.")
	}
	fmt.Fprintln(w, "The store is in quarantine. When you know why the old one was lost, run: lodge store quarantine --leave")
}

func printRotate(config string) func(io.Writer, rotateReport) {
	return func(w io.Writer, r rotateReport) {
		switch {
		case r.DryRun && r.Made:
			fmt.Fprintf(w, "would create %s and encrypt the store under it\n", r.KeyFile)
		case r.DryRun:
			fmt.Fprintf(w, "would encrypt the store under %s\n", r.KeyFile)
		default:
			fmt.Fprintf(w, "the store is encrypted under %s: name it as vault.key_file in %s, and start the party\n", r.KeyFile, config)
		}
	}
}

func printQuarantine(leave bool) func(io.Writer, quarantineReport) {
	return func(w io.Writer, r quarantineReport) {
		switch {
		case r.Reason == "":
			fmt.Fprintln(w, "the store is not in quarantine")
		case r.Left:
			fmt.Fprintf(w, "quarantine ended: %s\n", r.Reason)
		case leave:
			fmt.Fprintf(w, "would end the quarantine: %s\n", r.Reason)
		default:
			fmt.Fprintf(w, "in quarantine: %s\n", r.Reason)
		}
	}
}
