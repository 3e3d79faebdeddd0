package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
)

// exportReport is the outcome of `lodge export mp-spdz`.
type exportReport struct {
	*mpspdz.Report
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
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
	var from []string
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "mp-spdz --from DIR... --out DIR",
		Short: "Write one party's shares as MP-SPDZ's Player-Data files",
		Long: "Write the shares that one party drew, in one or more directories with a manifest, to OUT/Player-Data, where an\n" +
			"online phase of MP-SPDZ that is started with -F in OUT reads them. Batches of one kind go into one file, in the\n" +
			"order given. Every party exports the same batches in the same order. Primes have 64 to 256 bits.\n\n" +
			"Lodge recorded the shares as consumed when they were fetched. What was exported counts as consumed: exporting\n" +
			"the same directories again, or using them otherwise, uses tuples twice, which reveals inputs. Remove them.\n\n" +
			"Random values have no file: MP-SPDZ makes them from input masks.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			from := append(from, args...)
			if len(from) == 0 {
				return errors.New("--from: name the directories of shares")
			}
			p, start := newProgress(cmd.ErrOrStderr()), time.Now()
			o.Progress = func(done, total int64) {
				p.show(fmt.Sprintf("%s of %s", amount(float64(done)), amount(float64(total))), done == total)
			}
			report, err := mpspdz.Export(cmd.Context(), from, out, o)
			p.done()
			if err != nil && cmd.Context().Err() != nil {
				err = errInterrupted
			}
			if asJSON {
				r := exportReport{Report: report, Seconds: time.Since(start).Seconds()}
				if err != nil {
					r.Error = err.Error()
				}
				return errors.Join(err, writeIndented(cmd.OutOrStdout(), r))
			}
			if report != nil {
				err = errors.Join(err, printExport(cmd.OutOrStdout(), report))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&from, "from", nil, "directory of shares, or one that holds several; more may follow as arguments")
	f.StringVar(&out, "out", "", "directory in which Player-Data is made")
	f.StringVar(&o.Suffix, "suffix", "", "of the data files: -T0 for the first thread of MP-SPDZ's -f, -T1 for the second")
	f.BoolVar(&o.Pipes, "pipes", false, "make named pipes and feed them as MP-SPDZ reads; existing pipes are fed in any case")
	f.BoolVar(&o.Force, "force", false, "overwrite files")
	f.BoolVar(&o.DryRun, "dry-run", false, "check, and say what would be written")
	f.BoolVar(&asJSON, "json", false, "write the result as JSON")
	if err := cmd.MarkFlagRequired("out"); err != nil {
		panic(err) // the flag is above
	}
	return cmd
}

func printExport(w io.Writer, r *mpspdz.Report) error {
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
		_, err = fmt.Fprintln(w, "What was exported counts as consumed: use the directories that it came from no more.")
	}
	return err
}
