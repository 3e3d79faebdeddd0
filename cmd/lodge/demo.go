package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	lodge "github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const demoKinds = "scalar, matrix, square, random, bit, inverse, input or convolution"

// demoOptions are the flags of `lodge demo`.
type demoOptions struct {
	parties            int
	inputParty         int
	kind               string
	size               shapeFlags
	count              uint64
	field, params, out string
	cluster            string // that runs already, or empty
	export             string
	every              bool // kind that an online phase reads, to export them
	json, keep         bool
	noSacrifice        bool
}

// shape is what --dim and the flags of convolutions mean, and the block that holds it.
func (o *demoOptions) shape(changed func(string) bool) (*jobv1.Shape, uint32, error) {
	shape, err := o.size.of(job.KindOf(o.kind), func(name string) bool { return name != "dim" && changed(name) })
	if err != nil || shape == nil {
		return nil, 1, err
	}
	return shape, enclosing(shape), nil
}

// demoReport is the outcome of a demonstration.
type demoReport struct {
	Parties           int      `json:"parties"`
	Kind              string   `json:"kind"`
	Field             string   `json:"field"`
	Params            string   `json:"params"`
	Dim               string   `json:"dim"`
	InputParty        *int     `json:"input_party,omitempty"`
	NoSacrifice       bool     `json:"no_sacrifice,omitempty"`
	Tuples            uint64   `json:"tuples"`
	Verified          uint64   `json:"verified"`
	KeygenSeconds     float64  `json:"keygen_seconds"`
	GenerateSeconds   float64  `json:"generate_seconds"`
	TuplesPerSecond   float64  `json:"tuples_per_second"`
	KeygenSentBytes   uint64   `json:"keygen_sent_bytes_per_party"`
	SentBytesPerTuple float64  `json:"sent_bytes_per_tuple_per_party"`
	PeakRSS           []uint64 `json:"peak_rss_bytes"`
	KeygenSecurity    string   `json:"keygen_security"`
	StatisticalBits   uint32   `json:"statistical_security_bits"`
	Rounds            uint32   `json:"rounds"`
	RetiredEpoch      uint64   `json:"retired_epoch"`
	TotalSeconds      float64  `json:"total_seconds"`
	Out               string   `json:"out,omitempty"`
	sent              uint64

	Export []*mpspdz.Report `json:"export,omitempty"`
}

func demoCommand() *cobra.Command {
	o := &demoOptions{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a coordinator and n parties on this machine, make triples and check them",
		Long: "Start a coordinator and n parties on loopback with mutual TLS, generate keys, make triples, draw each party's\n" +
			"shares through the party's own API with a client certificate, and hand them to a checker that shares no\n" +
			"protocol code. The checker pools every party's MAC-key share, so the key epoch is retired at the end.\n" +
			"With --cluster the same is done by a cluster for development that runs already, and stays.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.parties, "parties", 3, "number of parties")
	f.StringVar(&o.kind, "kind", "scalar", demoKinds)
	f.IntVar(&o.inputParty, "input-party", 0, "of input masks: the party that knows the values")
	f.Uint64Var(&o.count, "count", 0, "tuples to make at least; 0 means 10000, or one batch of matrices")
	o.size.flags(f, "dim", "128")
	f.StringVar(&o.field, "field", "p128", "field: p64 to p4096")
	f.StringVar(&o.params, "params", params.Default, "parameter set")
	f.BoolVar(&o.noSacrifice, "no-sacrifice", false, "leave out the check that finds products of malformed evaluation keys")
	f.StringVar(&o.out, "out", "", "keep every party's exported shares in this new directory")
	f.StringVar(&o.export, "export", "", "leave every party's files for an online engine there instead: mp-spdz; of every kind without --kind")
	f.StringVar(&o.cluster, "cluster", "", "take a cluster that runs already, with the secrets of all clients in this directory, and start none")
	f.BoolVar(&o.json, "json", false, "write the result as JSON")
	f.BoolVar(&o.keep, "keep", false, "keep the working directory: configurations, logs and vaults")
	complete(cmd, "kind", words(config.TupleKinds))
	complete(cmd, "field", fieldWords)
	complete(cmd, "params", paramsWords)
	complete(cmd, "export", words([]string{"mp-spdz"}))
	cmd.AddCommand(demoDecryptCommand(), demoLinearCommand(), demoMultikeyCommand())
	return cmd
}

func runDemo(cmd *cobra.Command, o *demoOptions) (err error) {
	start := time.Now()
	defer func() { err = ended(cmd, err) }()
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
	c, err := o.begin(cmd)
	if err != nil {
		return err
	}
	defer c.stop()
	ctx := cmd.Context()
	report := &demoReport{Parties: o.parties, Kind: o.kind, Field: o.field, Params: o.params, NoSacrifice: o.noSacrifice, PeakRSS: make([]uint64, o.parties)}
	if o.every {
		report.Kind = "every"
	}
	switch {
	case shape == nil:
		report.Dim = "1"
	case shape.GetConvolution() != nil:
		report.Dim = shapeText(shape)
	default:
		report.Dim = o.size.shape
	}
	if job.Owned(job.KindOf(o.kind)) {
		report.InputParty = &o.inputParty
	}
	began := time.Now()
	keys, err := c.job(ctx, &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: o.params, Dim: block, Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Timeout: durationpb.New(time.Hour),
	})
	if err != nil {
		return err
	}
	report.KeygenSeconds, report.KeygenSentBytes = time.Since(began).Seconds(), c.account(report, keys)
	report.KeygenSecurity = keys.GetParties()[0].GetStatus().GetKeygenSecurity()
	began = time.Now()
	batches, err := c.generate(ctx, o, report, &coordinatorv1.JobRequest{
		Params: o.params, Field: o.field, Dim: block, Shape: shape, Epoch: keys.GetEpoch(),
		Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: devnet.Tenant, Timeout: durationpb.New(time.Hour),
	})
	if err != nil {
		return err
	}
	report.GenerateSeconds = time.Since(began).Seconds()
	report.TuplesPerSecond = float64(report.Tuples) / report.GenerateSeconds
	report.SentBytesPerTuple = float64(report.sent) / float64(report.Tuples)
	report.Verified, err = c.verify(ctx, o, batches, report.KeygenSecurity)
	if err == nil && o.export != "" && report.Verified == report.Tuples {
		report.Export, err = c.exportAll(ctx, o, batches)
	}
	// Whatever the check says, it may have pooled MAC-key shares.
	if err := errors.Join(err, c.retire(ctx, keys.GetEpoch())); err != nil {
		return err
	}
	report.RetiredEpoch, report.TotalSeconds, report.Out = keys.GetEpoch(), time.Since(start).Seconds(), o.out
	hold(cmd)
	if o.json {
		err = writeIndented(cmd.OutOrStdout(), report)
	} else {
		err = errors.Join(report.print(cmd), report.printExports(cmd))
	}
	if err == nil && report.Verified != report.Tuples {
		err = fmt.Errorf("%w: %d of %d triples are good", errUnverified, report.Verified, report.Tuples)
	}
	return err
}

// generate has the parties make the tuples that were asked for, of every kind. A request says what all have in common.
func (c *cluster) generate(ctx context.Context, o *demoOptions, r *demoReport, q *coordinatorv1.JobRequest) (batches []*coordinatorv1.Job, err error) {
	for _, run := range o.runs() {
		for made := uint64(0); made < o.count; {
			q.Kind, q.InputParty, q.Count = job.KindOf(run.kind), uint32(run.owner), o.count-made
			q.NoSacrifice = o.noSacrifice && job.Multiplies(q.Kind)
			j, err := c.job(ctx, q)
			if err != nil {
				return nil, err
			}
			batches = append(batches, j)
			st := j.GetParties()[0].GetStatus()
			made += st.GetCount()
			r.Tuples += st.GetCount()
			r.StatisticalBits, r.Rounds = st.GetStatisticalSecurityBits(), max(r.Rounds, st.GetRounds())
			r.sent += c.account(r, j)
		}
	}
	return batches, nil
}

// account notes the peak memory of the parties and gives the bytes that a party sent, on average.
func (c *cluster) account(r *demoReport, j *coordinatorv1.Job) uint64 {
	var sent uint64
	for i, p := range j.GetParties() {
		sent += p.GetStatus().GetProgress().GetSentBytes()
		r.PeakRSS[i] = max(r.PeakRSS[i], p.GetStatus().GetPeakRssBytes())
	}
	return sent / uint64(len(j.GetParties()))
}

// verify draws every party's shares of the batches and has them checked.
func (c *cluster) verify(ctx context.Context, o *demoOptions, batches []*coordinatorv1.Job, security string) (verified uint64, err error) {
	for _, j := range batches {
		reserved, err := stockv1.NewStockServiceClient(c.operator).Reserve(ctx, &stockv1.ReserveRequest{
			Class: lodge.ClassOf(j.GetRequest()), Count: j.GetParties()[0].GetStatus().GetCount(), Epoch: j.GetEpoch(), Wait: true,
		})
		if err != nil {
			return 0, fmt.Errorf("reserving the tuples: %w", err)
		}
		var dirs []string
		for i, conn := range c.clients {
			dir := filepath.Join(c.shares(o), j.GetBatchId(), "party-"+strconv.Itoa(i))
			c.progress.say("drawing batch %s from party %d", j.GetBatchId(), i)
			if err := lodge.FetchDir(ctx, conn, reserved.GetReservation().GetId(), dir, lodge.Origin{Parties: o.parties, Party: i, KeygenSecurity: security, Pooled: true}); err != nil {
				return 0, fmt.Errorf("drawing batch %s from party %d: %w", j.GetBatchId(), i, err)
			}
			dirs = append(dirs, dir)
		}
		c.progress.say("checking batch %s", j.GetBatchId())
		report, err := verify.Dirs(ctx, dirs, verify.Options{})
		if err != nil {
			return 0, err
		}
		verified += uint64(report.Verified)
	}
	return verified, nil
}

// retire erases the epoch everywhere: its MAC-key shares have been pooled. An interrupt does not keep it from that.
func (c *cluster) retire(ctx context.Context, epoch uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var errs []error
	for i, conn := range c.clients {
		_, err := keygenv1.NewKeygenServiceClient(conn).RetireEpoch(ctx, &keygenv1.RetireEpochRequest{Epoch: epoch, Reason: "the demonstration pooled its MAC-key shares"})
		if err != nil {
			errs = append(errs, fmt.Errorf("retiring the epoch at party %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (r *demoReport) print(cmd *cobra.Command) error {
	var peak uint64
	for _, p := range r.PeakRSS {
		peak = max(peak, p)
	}
	what := "tuples of every kind that MP-SPDZ reads, matrices aside,"
	if k := kind.Of(r.Kind); k.Known() {
		if what = k.Describe().Title; k.Shaped() {
			what = r.Dim + " " + what
		}
	}
	if r.NoSacrifice {
		what += ", not sacrificed,"
	}
	if r.InputParty != nil {
		what += fmt.Sprintf(" of party %d", *r.InputParty)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), `
%d parties made %d %s over %s with %s; an independent check accepts %d of them.

  key generation      %10.1f s   %s sent by each party, security: %s
  generation          %10.1f s   %.1f tuples per second, %d rounds
  traffic             %10s     sent by each party for a tuple
  memory              %10s     at the party that needed most
  statistical security%10d bits after 2^20 decrypted ciphertexts
  in all              %10.1f s

The check pooled every party's share of the MAC key, so epoch %d is retired: its keys and tuples are erased.
`, r.Parties, r.Tuples, what, r.Field, r.Params, r.Verified, r.KeygenSeconds, amount(float64(r.KeygenSentBytes)), r.KeygenSecurity,
		r.GenerateSeconds, r.TuplesPerSecond, r.Rounds, amount(r.SentBytesPerTuple), amount(float64(peak)), r.StatisticalBits, r.TotalSeconds, r.RetiredEpoch)
	return err
}

// amount prints bytes with a decimal unit.
func amount(b float64) string {
	for _, u := range []string{"B", "kB", "MB"} {
		if b < 1000 {
			return fmt.Sprintf("%.3g %s", b, u)
		}
		b /= 1000
	}
	return fmt.Sprintf("%.3g GB", b)
}
