package main

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
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// exportReport is the outcome of `lodge export mp-spdz`, also when it fails after shares have left through pipes.
type exportReport struct {
	*mpspdz.Report
	Seconds float64 `json:"seconds"`
}

func exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write drawn shares in the formats of online engines",
	}
	cmd.AddCommand(exportMPSPDZCommand())
	return cmd
}

func exportMPSPDZCommand() *cobra.Command {
	var o mpspdz.ExportOptions
	at := &operator{}
	var from, reservations []string
	var out string
	cmd := &cobra.Command{
		Use:   "mp-spdz (--from DIR... | --reservation ID... --party PARTY) --out DIR",
		Short: "Write one party's shares as MP-SPDZ's Player-Data files",
		Long: "Write the shares that one party drew, in one or more directories with a manifest, to OUT/Player-Data, where an\n" +
			"online phase of MP-SPDZ that is started with -F in OUT reads them. Batches of one kind go into one file, in the\n" +
			"order given. Every party exports the same batches in the same order. Primes have 64 to 256 bits.\n\n" +
			"Lodge recorded the shares as consumed when they were fetched. What was exported counts as consumed: exporting\n" +
			"the same directories again, or using them otherwise, uses tuples twice, which reveals inputs. The export leaves\n" +
			"exported.json in them, and refuses them from then on without --force. Remove them.\n\n" +
			"With --reservation the shares come straight from the party, as its client with the permissions status, fetch and\n" +
			"mac_key, and lie nowhere else. When that is interrupted, the same command with --force gives the same shares,\n" +
			"while the lease lasts.\n\n" +
			"Random values have no file: MP-SPDZ makes them from input masks.\n\n" + connecting,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			from := append(from, args...)
			if len(from)+len(reservations) == 0 || len(from) > 0 && len(reservations) > 0 {
				return invalid("name directories of shares with --from, or with --reservation what to draw from a party, not both", "neither or both of --from and --reservation")
			}
			p, start := progressOf(cmd, at.json), time.Now()
			var t *terminal.Transfer
			o.Progress = func(done, total int64) {
				if t == nil {
					t = terminal.NewTransfer(p, 0, total)
				}
				t.At(done)
			}
			export := func() (*mpspdz.Report, error) { return mpspdz.Export(cmd.Context(), from, out, o) }
			if len(reservations) > 0 {
				export = func() (*mpspdz.Report, error) { return at.exportReservations(cmd, reservations, out, o) }
			}
			report, err := export()
			p.Done()
			if err != nil && cmd.Context().Err() != nil {
				err = errInterrupted
			}
			if report != nil {
				warnTogether(cmd.ErrOrStderr(), report)
			}
			if hold(cmd); at.json && report != nil {
				return errors.Join(err, writeIndented(cmd.OutOrStdout(), exportReport{Report: report, Seconds: time.Since(start).Seconds()}))
			}
			if report != nil {
				consumed := "What was exported counts as consumed: use the directories that it came from no more."
				if len(reservations) > 0 {
					consumed = "What was exported is consumed: use it once."
				}
				err = errors.Join(err, printExport(cmd.OutOrStdout(), report, consumed))
			}
			return err
		},
	}
	at.flags(cmd)
	at.partyFlag(cmd, "with --reservation: the party whose shares these are, by name or index")
	f := cmd.Flags()
	f.StringArrayVar(&reservations, "reservation", nil, "reservation to draw; may be there several times")
	f.StringArrayVar(&from, "from", nil, "directory of shares, or one that holds several; more may follow as arguments")
	f.StringVar(&out, "out", "", "directory in which Player-Data is made")
	f.StringVar(&o.Suffix, "suffix", "", "of the data files: -T0 for the first thread of MP-SPDZ's -f, -T1 for the second")
	f.BoolVar(&o.Pipes, "pipes", false, "make named pipes and feed them as MP-SPDZ reads; existing pipes are fed in any case")
	f.BoolVar(&o.Force, "force", false, "overwrite files, and export directories that were exported before")
	f.BoolVar(&o.DryRun, "dry-run", false, "check, and say what would be written")
	complete(cmd, "reservation", at.completeReservations)
	if err := cmd.MarkFlagRequired("out"); err != nil {
		panic(err) // the flag is above
	}
	return cmd
}

// exportReservations draws reservations from a party into the files of an online engine.
func (o *operator) exportReservations(cmd *cobra.Command, ids []string, out string, e mpspdz.ExportOptions) (*mpspdz.Report, error) {
	c, err := o.dialParty()
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	d, err := c.drawer()
	if err != nil {
		return nil, err
	}
	var streams []mpspdz.Stream
	for _, id := range ids {
		m, _, r, err := c.manifest(cmd.Context(), id, true)
		if err != nil {
			return nil, c.explain(err)
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
		err = c.explain(err)
	}
	return report, err
}

// drawn reports whether a reservation, as its party described it before, was delivered.
func drawn(r *tuplesv1.Reservation) bool {
	return r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED
}

// warnDrawn says that a party has delivered a reservation before.
func warnDrawn(w io.Writer, c *partyClient, r *tuplesv1.Reservation) {
	if drawn(r) {
		fmt.Fprintf(w, "warning: %s delivered reservation %s at %s: these are the same tuples, use them once\n", c.name, r.GetId(), when(r.GetDelivered()))
	}
}

// warnTogether says that a tree has shares of the MAC key of several parties.
func warnTogether(w io.Writer, r *mpspdz.Report) {
	others, err := filepath.Glob(filepath.Join(r.Dir, "Player-MAC-Keys-p-P*"))
	if err != nil {
		return
	}
	own := "Player-MAC-Keys-p-P" + strconv.Itoa(r.Party)
	if slices.ContainsFunc(others, func(path string) bool { return filepath.Base(path) != own }) {
		fmt.Fprintf(w, "warning: %s has the shares of the MAC key of several parties: whoever reads them all can forge any value\n", r.Dir)
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
		_, err = fmt.Fprintf(w, "  %-28s %10d records %10d usable %10s%s\n", filepath.Base(f.Path), f.Records, f.Usable, amount(float64(f.Bytes)), ended)
		short = short || f.Usable < f.Records
	}
	if short && err == nil {
		_, err = fmt.Fprintln(w, "MP-SPDZ reads 101 shares at a time and cannot use what is left over: of multiples of 101 records all are usable.")
	}
	if !r.DryRun && err == nil {
		_, err = fmt.Fprintln(w, consumed)
	}
	return err
}
