package tuples

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// verifyCommand returns `lodge verify`, the independent checker of exported shares.
func verifyCommand() *cobra.Command {
	var opt verify.Options
	cmd := cli.Command("verify", func(cmd *cobra.Command, dirs []string) error {
		start := time.Now()
		report, err := verify.Dirs(cmd.Context(), dirs, opt)
		if err != nil {
			return err
		}
		if cli.Hold(cmd); cli.JSON(cmd) {
			err = cli.WriteJSON(cmd.OutOrStdout(), struct {
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
			return fmt.Errorf("%w: %d of %d tuples are good", cli.ErrUnverified, report.Verified, report.Tuples)
		}
		return nil
	})
	cmd.Flags().Bool("json", false, "write the report as JSON")
	cmd.Flags().BoolVar(&opt.Retired, "retired", false, "all parties have retired the epoch: accept shares of its MAC key that were drawn for use")
	cmd.Flags().IntVar(&opt.MaxFailures, "max-failures", 100, "largest number of failures to list; all are counted")
	return cmd
}

func printReport(w io.Writer, r *verify.Report, took time.Duration) error {
	shape := ""
	if r.FreivaldsVectors > 0 {
		shape = fmt.Sprintf("%dx%dx%d ", r.Dims.M, r.Dims.K, r.Dims.N)
	}
	if r.Convolution != nil {
		shape = fmt.Sprintf("%v ", r.Convolution)
	}
	sacrifice := ""
	if r.NoSacrifice {
		sacrifice = ", not sacrificed"
	}
	_, err := fmt.Fprintf(w, "%d of %d %s%s tuples verified: %d parties, %s over %s (%d bits), epoch %d, batch %s, "+
		"key generation security %s%s, %.2f s\n", r.Verified, r.Tuples, shape, r.Kind, r.Parties, r.Params, r.Field,
		r.ModulusBits, r.Epoch, r.Batch, r.KeygenSecurity, sacrifice, took.Seconds())
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
