package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/verify"
)

// errUnverified is the error of `lodge verify` when the shares could be read and something in them is wrong.
var errUnverified = errors.New("verification failed")

// verifyCommand is `lodge verify`: the independent checker on exported share directories.
func verifyCommand() *cobra.Command {
	var asJSON bool
	var opt verify.Options
	cmd := &cobra.Command{
		Use:   "verify DIR...",
		Short: "Check exported shares of all parties against each other",
		Long: "Check the exported share directories of all parties of one batch: products, MACs, encodings and digests.\n" +
			"A directory without a manifest stands for its subdirectories that have one.\n\n" +
			"The checker pools every party's shares and MAC-key shares. Triples that were checked this way must not be\n" +
			"used, and their key epoch must be retired.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			start := time.Now()
			report, err := verify.Dirs(cmd.Context(), dirs, opt)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeIndented(cmd.OutOrStdout(), struct {
					*verify.Report
					OK      bool    `json:"ok"`
					Seconds float64 `json:"seconds"`
				}{report, report.OK(), time.Since(start).Seconds()})
			} else {
				err = printReport(cmd.OutOrStdout(), report, time.Since(start))
			}
			if err != nil {
				return err
			}
			if !report.OK() {
				return fmt.Errorf("%w: %d of %d tuples are good", errUnverified, report.Verified, report.Tuples)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the report as JSON")
	cmd.Flags().IntVar(&opt.MaxFailures, "max-failures", 100, "failures to list; all are counted")
	return cmd
}

func printReport(w io.Writer, r *verify.Report, took time.Duration) error {
	shape := ""
	if r.FreivaldsVectors > 0 {
		shape = fmt.Sprintf("%dx%dx%d ", r.Dims.M, r.Dims.K, r.Dims.N)
	}
	_, err := fmt.Fprintf(w, "%d of %d %s%s tuples verified: %d parties, %s over %s (%d bits), epoch %d, batch %s, "+
		"key generation security %s, %.2f s\n", r.Verified, r.Tuples, shape, r.Kind, r.Parties, r.Params, r.Field,
		r.ModulusBits, r.Epoch, r.Batch, r.KeygenSecurity, took.Seconds())
	for _, check := range slices.Sorted(maps.Keys(r.Failed)) {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %-10s failed for %d\n", check, r.Failed[check])
		}
	}
	for _, f := range r.Failures {
		if err == nil {
			_, err = fmt.Fprintf(w, "  tuple %d: %s, %d wrong\n", f.Tuple, f.Check, f.Wrong)
		}
	}
	return err
}
