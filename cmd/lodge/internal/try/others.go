package try

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/demos"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// demoDecryptOptions are the flags of `lodge demo decrypt`.
type demoDecryptOptions struct {
	parties, threshold, values int
	field, params              string
	all, keep                  bool
}

func demoDecryptCommand() *cobra.Command {
	o := &demoDecryptOptions{}
	cmd := cli.Command("decrypt", func(cmd *cobra.Command, _ []string) error { return runDemoDecrypt(cmd, o) })
	f := cmd.Flags()
	f.IntVar(&o.parties, "parties", 3, "number of parties")
	f.IntVar(&o.threshold, "threshold", 0, "T: any T+1 parties decrypt (default: the largest below half of the parties)")
	f.IntVar(&o.values, "values", 16, "values to encrypt")
	f.BoolVar(&o.all, "all", false, "show decryption by all parties, of vectors over a field")
	f.StringVar(&o.field, "field", "p128", "with --all: field, p64 to p4096")
	f.StringVar(&o.params, "params", "", "parameter `set` (default "+lwe.Default+", and with --all that of `lodge demo`)")
	f.Bool("json", false, "write the result as JSON")
	keepFlag(cmd, &o.keep)
	cli.Complete(cmd, "field", cli.FieldWords)
	cli.Complete(cmd, "params", cli.AllSetWords)
	return cmd
}

func runDemoDecrypt(cmd *cobra.Command, o *demoDecryptOptions) error {
	if err := o.check(cmd.Flags().Changed); err != nil {
		return err
	}
	return demonstrate(cmd, cluster.Options{Parties: o.parties, Set: o.params, Keep: o.keep}, func(c *cluster.Cluster) (demos.Report, error) {
		if o.all {
			return demos.Ciphertexts(cmd.Context(), c, o.params, o.field)
		}
		return demos.Threshold(cmd.Context(), c, o.params, o.threshold, o.values)
	})
}

// demonstrate runs a demonstration on a new cluster.
func demonstrate(cmd *cobra.Command, o cluster.Options, run func(*cluster.Cluster) (demos.Report, error)) error {
	start := func() (*cluster.Cluster, error) {
		return cluster.Start(cmd.Context(), terminal.NewProgress(cmd.ErrOrStderr()), o)
	}
	return demonstrateOn(cmd, start, run)
}

// demonstrateOn runs a demonstration on a cluster, writes its report, and returns the failure that
// the report shows.
func demonstrateOn(cmd *cobra.Command, start func() (*cluster.Cluster, error), run func(*cluster.Cluster) (demos.Report, error)) (err error) {
	began := time.Now()
	defer func() { err = Ended(cmd, err) }()
	c, err := start()
	if err != nil {
		return err
	}
	defer c.Stop()
	r, err := run(c)
	if err != nil {
		return err
	}
	r.Took(time.Since(began))
	c.Progress.Done()
	cli.Hold(cmd)
	if err := cli.Write(cmd, r, r.Print); err != nil {
		return err
	}
	return r.Wrong()
}

// maxDemoValues limits the computation: without vector instructions a value takes tenths of a
// second.
const maxDemoValues = 1024

// check rejects flags of the other form, and demonstrations that cannot succeed. It sets defaults.
func (o *demoDecryptOptions) check(changed func(string) bool) error {
	for _, name := range []string{"threshold", "values"} {
		if o.all && changed(name) {
			return cli.Invalid("remove it", "--%s with --all", name)
		}
	}
	if !o.all && changed("field") {
		return cli.Invalid("add --all, or leave it out: messages are from 0 to 15", "--field without --all")
	}
	if err := checkParties(o.parties); err != nil {
		return err
	}
	if o.all {
		if o.params == "" {
			o.params = params.Default
		}
		set, err := params.Lookup(o.params)
		if err == nil {
			_, err = set.Field(o.field)
		}
		return err
	}
	if o.params == "" {
		o.params = lwe.Default
	}
	if _, err := lwe.Lookup(o.params); err != nil {
		return cli.Invalid("`lodge params list` lists the sets for threshold keys", "%v", err)
	}
	if err := cli.RefuseLegacy(o.params); err != nil {
		return err
	}
	if o.threshold == 0 {
		o.threshold = max(0, o.parties-1) / 2
	}
	if t := o.threshold; t < 1 || o.parties < 2*t+1 {
		return cli.Invalid("take at least three parties, and more than twice as many as the threshold",
			"a threshold of %d among --parties %d leaves no honest majority", t, o.parties)
	}
	if len(cluster.Quorums(o.parties, o.threshold+1, demos.MaxQuorums)) > demos.MaxQuorums {
		return cli.Invalid("take fewer parties", "%d of %d parties make more than %d quorums", o.threshold+1, o.parties, demos.MaxQuorums)
	}
	if o.values < 1 || o.values > maxDemoValues {
		return cli.Invalid(fmt.Sprintf("write 1 to %d", maxDemoValues), "--values %d", o.values)
	}
	return nil
}

func demoLinearCommand() *cobra.Command {
	var keep bool
	cmd := cli.Command("linear", func(cmd *cobra.Command, _ []string) error {
		return demonstrate(cmd, cluster.Options{Parties: 2, Set: params.Default, Keep: keep}, func(c *cluster.Cluster) (demos.Report, error) {
			return demos.Linear(cmd.Context(), c)
		})
	})
	cmd.Flags().Bool("json", false, "write the result as JSON")
	keepFlag(cmd, &keep)
	return cmd
}

// demoMultikeyOptions are the flags of `lodge demo multikey`.
type demoMultikeyOptions struct {
	parties, bits int
	params        string
	keep          bool
}

// Limits of `lodge demo multikey`. Each bit of a bid takes a few seconds of two processors.
const (
	maxDemoBid     = 16 // bits
	maxDemoBidders = 8  // processes
)

func demoMultikeyCommand() *cobra.Command {
	o := &demoMultikeyOptions{}
	cmd := cli.Command("multikey", func(cmd *cobra.Command, _ []string) error { return runDemoMultikey(cmd, o) })
	f := cmd.Flags()
	f.IntVar(&o.parties, "parties", 4, "number of parties, up to those of the set")
	f.IntVar(&o.bits, "bits", 8, "of a bid")
	f.StringVar(&o.params, "params", multikey.Default, "parameter set")
	f.Bool("json", false, "write the result as JSON")
	keepFlag(cmd, &o.keep)
	cli.Complete(cmd, "params", cli.Words(multikey.Names()))
	return cmd
}

func runDemoMultikey(cmd *cobra.Command, o *demoMultikeyOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	return demonstrate(cmd, cluster.Options{Parties: o.parties, Set: o.params, Multikey: true, Keep: o.keep}, func(c *cluster.Cluster) (demos.Report, error) {
		return demos.Multikey(cmd.Context(), c, o.params, o.bits)
	})
}

// check rejects demonstrations that cannot succeed, before any process starts.
func (o *demoMultikeyOptions) check() error {
	set, err := multikey.Lookup(o.params)
	if err != nil {
		return cli.Invalid("`lodge params list` shows the sets for multi-key ciphertexts", "%v", err)
	}
	if err := cli.RefuseLegacy(o.params); err != nil {
		return err
	}
	if most := min(set.Parties, maxDemoBidders); o.parties < 3 || o.parties > most {
		return cli.Invalid(fmt.Sprintf("write 3 to %d: one of them is killed, and two are an auction", most), "--parties %d with %s", o.parties, set.Name)
	}
	if o.bits < 1 || o.bits > maxDemoBid {
		return cli.Invalid(fmt.Sprintf("write 1 to %d", maxDemoBid), "--bits %d", o.bits)
	}
	return nil
}
