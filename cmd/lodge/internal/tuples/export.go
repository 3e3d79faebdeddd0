package tuples

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// exportReport is the JSON outcome of `lodge export mp-spdz`. It is also written after a failure if
// shares have left through pipes.
type exportReport struct {
	*mpspdz.Report
	Seconds float64 `json:"seconds"`
}

func exportCommand() *cobra.Command {
	cmd := cli.Command("export", nil)
	cmd.AddCommand(exportMPSPDZCommand())
	return cmd
}

func exportMPSPDZCommand() *cobra.Command {
	var o mpspdz.ExportOptions
	at := &cli.Operator{}
	var from, reservations []string
	var out string
	cmd := cli.Command("mp-spdz", func(cmd *cobra.Command, args []string) error {
		from := append(from, args...)
		switch {
		case len(from) > 0 && len(reservations) > 0:
			return cli.Invalid("remove one of the two flags", "both --from and --reservation")
		case len(from)+len(reservations) == 0:
			return cli.Invalid("name directories of shares with --from, or reservations of a party with --reservation", "nothing to export")
		}
		p, start := cli.ProgressOf(cmd), time.Now()
		var t *terminal.Transfer
		o.Progress = func(done, total int64) {
			if t == nil {
				t = terminal.NewTransfer(p, 0, total)
			}
			t.At(done)
		}
		export := func() (*mpspdz.Report, error) { return mpspdz.Export(cmd.Context(), from, out, o) }
		if len(reservations) > 0 {
			export = func() (*mpspdz.Report, error) { return exportReservations(at, cmd, reservations, out, o) }
		}
		report, err := export()
		p.Done()
		if err != nil && cmd.Context().Err() != nil {
			err = cli.ErrInterrupted
		}
		if report != nil {
			warnTogether(cmd.ErrOrStderr(), report)
		}
		if cli.Hold(cmd); cli.JSON(cmd) && report != nil {
			return errors.Join(err, cli.WriteJSON(cmd.OutOrStdout(), exportReport{Report: report, Seconds: time.Since(start).Seconds()}))
		}
		if report != nil {
			consumed := "The exported tuples are consumed: do not use the source directories again."
			if len(reservations) > 0 {
				consumed = "The exported tuples are consumed: use them once."
			}
			err = errors.Join(err, printExport(cmd.OutOrStdout(), report, consumed))
		}
		return err
	})
	at.Flags(cmd)
	at.PartyFlag(cmd, "with --reservation: the party whose shares are fetched, by name or index")
	f := cmd.Flags()
	f.StringArrayVar(&reservations, "reservation", nil, "reservation to fetch; may be repeated")
	f.StringArrayVar(&from, "from", nil, "directory of shares, or of several such directories; more may follow as arguments")
	f.StringVar(&out, "out", "", "directory in which Player-Data is created")
	f.StringVar(&o.Suffix, "suffix", "", "suffix of the data files: -T0 for the first thread of MP-SPDZ's -f, -T1 for the second")
	f.BoolVar(&o.Pipes, "pipes", false, "create named pipes and feed them as MP-SPDZ reads; existing pipes are fed in any case")
	f.BoolVar(&o.Force, "force", false, "overwrite files, and export directories that were exported before")
	f.BoolVar(&o.DryRun, "dry-run", false, "check, and show what would be written")
	cli.Complete(cmd, "reservation", func() []string { return completeReservations(at) })
	if err := cmd.MarkFlagRequired("out"); err != nil {
		panic(err) // the flag exists
	}
	return cmd
}

// exportReservations fetches reservations from a party and writes them to the files of an online
// engine.
func exportReservations(o *cli.Operator, cmd *cobra.Command, ids []string, out string, e mpspdz.ExportOptions) (*mpspdz.Report, error) {
	c, err := o.DialParty()
	if err != nil {
		return nil, err
	}
	defer c.Conn.Close()
	d, err := drawer(c)
	if err != nil {
		return nil, err
	}
	var streams []mpspdz.Stream
	for _, id := range ids {
		m, _, r, err := manifest(c, cmd.Context(), id, true)
		if err != nil {
			return nil, c.Explain(err)
		}
		warnDrawn(cmd.ErrOrStderr(), c, r)
		streams = append(streams, mpspdz.Stream{Manifest: m, Open: func(ctx context.Context) (io.ReadCloser, error) {
			s, err := d.Fetch(ctx, id)
			if err != nil {
				return nil, err
			}
			return s, nil
		}})
	}
	report, err := mpspdz.ExportStreams(cmd.Context(), streams, out, e)
	if of := (*lodge.Error)(nil); errors.As(err, &of) {
		err = c.Explain(err)
	}
	return report, err
}

// drawn reports whether a reservation had been delivered before this command.
func drawn(r *tuplesv1.Reservation) bool {
	return r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED
}

// warnDrawn warns that a party has delivered a reservation before.
func warnDrawn(w io.Writer, c *cli.Party, r *tuplesv1.Reservation) {
	if drawn(r) {
		fmt.Fprintf(w, "warning: %s delivered reservation %s at %s: these are the same tuples, use them once\n", c.Name, r.GetId(), cli.Time(r.GetDelivered()))
	}
}

// warnTogether warns that a directory tree contains several parties' shares of the MAC key.
func warnTogether(w io.Writer, r *mpspdz.Report) {
	others, err := filepath.Glob(filepath.Join(r.Dir, "Player-MAC-Keys-p-P*"))
	if err != nil {
		return
	}
	own := "Player-MAC-Keys-p-P" + strconv.Itoa(r.Party)
	if slices.ContainsFunc(others, func(path string) bool { return filepath.Base(path) != own }) {
		fmt.Fprintf(w, "warning: %s contains several parties' shares of the MAC key: a reader of all of them can forge any value\n", r.Dir)
	}
}

func printExport(w io.Writer, r *mpspdz.Report, consumed string) error {
	did := "wrote"
	if r.DryRun {
		did = "would write"
	}
	_, err := fmt.Fprintf(w, "party %d of %d, prime of %d bits, epoch %d: %s to %s\n", r.Party, r.Parties, r.PrimeBits, r.Epoch, did, r.Dir)
	short := false
	for _, f := range r.Files {
		if err != nil {
			return err
		}
		ended := ""
		if f.Ended != "" {
			ended = "  (" + f.Ended + ")"
		}
		_, err = fmt.Fprintf(w, "  %-28s %10d records %10d usable %10s%s\n", filepath.Base(f.Path), f.Records, f.Usable, cli.Size(float64(f.Bytes)), ended)
		short = short || f.Usable < f.Records
	}
	if short && err == nil {
		_, err = fmt.Fprintln(w, "MP-SPDZ reads 101 shares at a time and cannot use the rest: multiples of 101 records are usable completely.")
	}
	if !r.DryRun && err == nil {
		_, err = fmt.Fprintln(w, consumed)
	}
	return err
}
