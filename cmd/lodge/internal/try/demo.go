package try

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/demos"
	"github.com/lodge-mpc/lodge/engine/params"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var demoKinds = strings.Join(config.TupleKinds, ", ")

// demoOptions are the flags of `lodge demo`.
type demoOptions struct {
	parties            int
	inputParty         int
	kind               string
	size               cli.ShapeFlags
	count              uint64
	field, params, out string
	cluster            string // directory of a running cluster, or empty
	export             string
	every              bool // export every kind that MP-SPDZ reads
	keep               bool
	noSacrifice        bool
}

func DemoCommand() *cobra.Command {
	o := &demoOptions{}
	cmd := cli.Command("demo", func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, o) })
	f := cmd.Flags()
	f.IntVar(&o.parties, "parties", 3, "number of parties")
	f.StringVar(&o.kind, "kind", "scalar", demoKinds)
	f.IntVar(&o.inputParty, "input-party", 0, "for input masks: the party that knows the values")
	f.Uint64Var(&o.count, "count", 0, "make at least this many tuples; 0 means 10000, or one batch of matrices")
	o.size.Flags(f, "dim", "128")
	f.StringVar(&o.field, "field", "p128", "field: p64 to p4096")
	f.StringVar(&o.params, "params", params.Default, "parameter set")
	f.BoolVar(&o.noSacrifice, "no-sacrifice", false, "leave out the check that finds products of malformed evaluation keys")
	f.StringVar(&o.out, "out", "", "keep every party's exported shares in this new directory")
	f.StringVar(&o.export, "export", "", "write every party's files for an online engine to --out: mp-spdz; of every kind without --kind")
	f.StringVar(&o.cluster, "cluster", "", "use the running cluster of this directory, which has the secrets of all clients, instead of a new one")
	f.Bool("json", false, "write the result as JSON")
	keepFlag(cmd, &o.keep)
	cli.Complete(cmd, "kind", cli.Words(config.TupleKinds))
	cli.Complete(cmd, "field", cli.FieldWords)
	cli.Complete(cmd, "params", cli.ParamsWords)
	cli.Complete(cmd, "export", cli.Words([]string{"mp-spdz"}))
	cmd.AddCommand(demoDecryptCommand(), demoLinearCommand(), demoMultikeyCommand())
	return cmd
}

func keepFlag(cmd *cobra.Command, keep *bool) {
	cmd.Flags().BoolVar(keep, "keep", false, "keep the working directory: configurations, logs and vaults")
}

// shape returns the shape that --dim and the flags of convolutions describe, and the dimension of
// the blocks that hold it.
func (o *demoOptions) shape(changed func(string) bool) (*jobv1.Shape, uint32, error) {
	shape, err := o.size.Of(job.KindOf(o.kind), func(name string) bool { return name != "dim" && changed(name) })
	if err != nil || shape == nil {
		return nil, 1, err
	}
	return shape, cli.EnclosingBlock(shape), nil
}

func runDemo(cmd *cobra.Command, o *demoOptions) error {
	if err := o.join(cmd.Flags().Changed); err != nil {
		return err
	}
	if err := o.check(cmd.Flags().Changed); err != nil {
		return err
	}
	shape, block, err := o.shape(cmd.Flags().Changed)
	if err != nil {
		return err
	}
	start := func() (*cluster.Cluster, error) { return o.begin(cmd) }
	return demonstrateOn(cmd, start, func(c *cluster.Cluster) (demos.Report, error) {
		options := demos.TriplesOptions{
			Set: o.params, Field: o.field, Runs: o.runs(), Count: o.count, Shape: shape, Block: block, NoSacrifice: o.noSacrifice, Shares: o.out,
		}
		if o.out == "" || o.export != "" {
			options.Shares = filepath.Join(c.Dir, "shares")
		}
		if o.export != "" {
			options.Export = o.out
		}
		r, err := demos.Triples(cmd.Context(), c, options)
		if err == nil {
			o.describe(r, shape)
		}
		return r, err
	})
}

// describe adds the values of the flags to the report.
func (o *demoOptions) describe(r *demos.TriplesReport, shape *jobv1.Shape) {
	r.Kind, r.Out = o.kind, o.out
	if o.every {
		r.Kind = demos.Every
	}
	switch {
	case shape == nil:
		r.Dim = "1"
	case shape.GetConvolution() != nil:
		r.Dim = cli.ShapeText(shape)
	default:
		r.Dim = o.size.Shape
	}
	if job.Owned(job.KindOf(o.kind)) {
		r.InputParty = &o.inputParty
	}
}

// join takes the number of parties and the set from a running cluster, and rejects flags that
// contradict it.
func (o *demoOptions) join(given func(flag string) bool) error {
	if o.cluster == "" {
		return nil
	}
	for _, flag := range []string{"parties", "params", "keep"} {
		if given(flag) {
			return cli.Invalid("omit --"+flag, "--%s, and --cluster, which names an existing cluster", flag)
		}
	}
	c, err := lodge.Load(filepath.Join(o.cluster, "clients", devnet.Operator+".yaml"))
	if err != nil {
		return cli.MissingFile(cli.FromClient(err))
	}
	o.parties, o.params = len(c.Parties), c.Params
	return nil
}

// begin starts a cluster, or connects to the cluster of --cluster.
func (o *demoOptions) begin(cmd *cobra.Command) (*cluster.Cluster, error) {
	p := terminal.NewProgress(cmd.ErrOrStderr())
	if o.cluster == "" {
		return cluster.Start(cmd.Context(), p, cluster.Options{Parties: o.parties, Set: o.params, Keep: o.keep, NoSacrifice: o.noSacrifice})
	}
	c, err := cluster.Attach(cmd.Context(), p, o.cluster)
	return c, cli.MissingFile(err)
}

// Ended returns the error of a demonstration, or errInterrupted after an interrupt.
func Ended(cmd *cobra.Command, err error) error {
	if err != nil && errors.Is(cmd.Context().Err(), context.Canceled) {
		return cli.ErrInterrupted
	}
	return err
}
