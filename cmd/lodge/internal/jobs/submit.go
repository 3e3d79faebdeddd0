package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// submitted lists the kinds that `lodge jobs submit` makes.
var submitted = slices.DeleteFunc(slices.Clone(config.Kinds), func(k string) bool { return job.OfThreshold(job.KindOf(k)) })

var kindsText = strings.Join(submitted, ", ")

// kindLines lists the kinds of tuples for the help.
func kindLines() string {
	var b strings.Builder
	for _, k := range kind.All() {
		fmt.Fprintf(&b, "  %-11v  at least --count tuples: %s\n", k, k.Describe().Help)
	}
	return b.String()
}

func submitCommand(o *cli.Operator) *cobra.Command {
	q := &cli.JobOptions{}
	cmd := cli.Command("submit", func(cmd *cobra.Command, _ []string) error {
		r, err := request(q, cmd.Flags().Changed)
		if err == nil && r.GetEpoch() == 0 && r.GetKind() != jobv1.Kind_KIND_KEYS {
			r.Epoch, err = newestEpoch(o, cmd, r)
		}
		if err != nil {
			return err
		}
		if q.DryRun {
			return estimate(o, cmd, r)
		}
		return o.Submit(cmd, q, r)
	})
	cmd.Long = kindLines()
	flags(q, cmd)
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show the output and the cost of the jobs without submitting them; not for keys and proofs")
	_ = cmd.MarkFlagRequired("kind")
	return cmd
}

// flags adds the flags of a job to cmd.
func flags(q *cli.JobOptions, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.Kind, "kind", "", kindsText)
	f.StringVar(&q.Params, "params", params.Default, "parameter set")
	f.StringVar(&q.Field, "field", "p128", "field: p64 to p4096; not for keys")
	q.ShapeFlags.Flags(f, "shape", "")
	cli.AcceptFormerFlags(cmd)
	f.Uint32Var(&q.Dim, "block", 0, "block dimension, a power of two (default: none for keys, the cheapest for matrices and convolutions)")
	f.Uint32Var(&q.InputParty, "input-party", 0, "for input masks: the party that knows the values")
	f.BoolVar(&q.NoSacrifice, "no-sacrifice", false, "for products: skip the check that detects malformed evaluation keys; parties must allow it")
	f.Uint64Var(&q.Count, "count", 1, "least number of tuples to make; not for keys")
	f.Uint64Var(&q.Epoch, "epoch", 0, "epoch to use (default: the newest active one); for keys the epoch to make (default: the next)")
	f.StringVar(&q.Purpose, "purpose", "triples", "use of the keys: triples or decryption")
	f.StringVar(&q.Tenant, "tenant", devnet.Tenant, "tenant that owns the tuples; not for keys")
	q.RunFlags(cmd)
	cli.Complete(cmd, "kind", cli.Words(submitted))
	cli.Complete(cmd, "params", cli.ParamsWords)
	cli.Complete(cmd, "field", cli.FieldWords)
	cli.Complete(cmd, "purpose", cli.Words([]string{"triples", "decryption"}))
}

// request returns the job that the flags describe; changed reports whether a flag was set. It
// leaves fields empty that a party or the coordinator decides.
func request(q *cli.JobOptions, changed func(string) bool) (*coordinatorv1.JobRequest, error) {
	r := &coordinatorv1.JobRequest{Kind: job.KindOf(q.Kind), Params: q.Params, Dim: q.Dim, Epoch: q.Epoch, InputParty: q.InputParty, NoSacrifice: q.NoSacrifice}
	for p := range jobv1.Purpose_name {
		if p != 0 && job.PurposeName(jobv1.Purpose(p)) == q.Purpose {
			r.Purpose = jobv1.Purpose(p)
		}
	}
	wrong := func(next, format string, args ...any) (*coordinatorv1.JobRequest, error) {
		return nil, rpc.Errorf(rpc.Invalid, next, format, args...)
	}
	if err := ofThreshold(r.Kind, r.Purpose); err != nil {
		return nil, err
	}
	switch {
	case r.Kind == 0:
		return wrong("write "+kindsText, "--kind %q", q.Kind)
	case r.Purpose == 0:
		return wrong("write triples or decryption", "--purpose %q", q.Purpose)
	case q.NoSacrifice && !job.Multiplies(r.Kind):
		return wrong("remove it: such jobs make no products", "--no-sacrifice with --kind %s", q.Kind)
	case changed("input-party") != (job.Owned(r.Kind)):
		if job.Owned(r.Kind) {
			return wrong("name the party that learns the values with --input-party", "no --input-party")
		}
		return wrong("remove it: only input masks belong to one party", "--input-party with --kind %s", q.Kind)
	}
	if err := q.SetTimeout(r); err != nil {
		return nil, err
	}
	var err error
	if r.Shape, err = q.ShapeFlags.Of(r.Kind, changed); err != nil {
		return nil, err
	}
	if r.Kind == jobv1.Kind_KIND_KEYS {
		for _, name := range []string{"field", "count", "tenant"} {
			if changed(name) {
				return wrong("remove it: an epoch serves all fields and tenants", "--%s with --kind keys", name)
			}
		}
		return r, nil
	}
	r.Field, r.Count, r.Tenant = q.Field, q.Count, q.Tenant
	if r.Count == 0 {
		return wrong("write the least number of tuples to make", "--count 0")
	}
	if err := cli.CheckNames(q.Params, q.Field); err != nil {
		return nil, err
	}
	if r.Dim == 0 && !job.Shaped(r.Kind) {
		r.Dim = 1
	}
	return r, nil
}

// newestEpoch returns the newest epoch of keys for a job that is active at all parties.
func newestEpoch(o *cli.Operator, cmd *cobra.Command, q *coordinatorv1.JobRequest) (epoch uint64, err error) {
	err = o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
		r, err := c.ListEpochs(ctx, &coordinatorv1.ListEpochsRequest{})
		if err != nil {
			return err
		}
		last := ""
		for _, e := range r.GetEpochs() {
			state, everywhere := keygenv1.EpochState(0), true
			for _, p := range e.GetParties() {
				x := p.GetEpoch()
				everywhere = everywhere && x.GetState() == keygenv1.EpochState_EPOCH_STATE_ACTIVE && x.GetParams() == q.GetParams() && x.GetPurpose() == q.GetPurpose()
				if x.GetParams() == q.GetParams() && x.GetPurpose() == q.GetPurpose() {
					state = max(state, x.GetState())
				}
			}
			if everywhere && len(e.GetParties()) > 0 {
				epoch = max(epoch, e.GetEpoch())
			}
			if state != 0 {
				last = fmt.Sprintf(": epoch %d is %s", e.GetEpoch(), cli.Word(state))
			}
		}
		switch {
		case epoch != 0:
			return nil
		case len(r.GetAway()) > 0:
			return rpc.Errorf(rpc.Unavailable, "start them, or name an epoch with --epoch", "the epochs are unknown: %s could not be reached", strings.Join(r.GetAway(), ", "))
		}
		return rpc.Errorf(rpc.NotFound, "make keys with `lodge jobs submit --kind keys --params "+q.GetParams()+" --wait`",
			"no epoch of %s is active at all parties for %s%s", q.GetParams(), job.PurposeName(q.GetPurpose()), last)
	})
	return epoch, err
}

// ofThreshold returns an error if a job is for threshold keys, which names the command that submits
// it.
func ofThreshold(kind jobv1.Kind, purpose jobv1.Purpose) error {
	switch {
	case kind == jobv1.Kind_KIND_MASKS:
		return cli.Invalid("use `lodge keys masks`", "--kind masks: masks belong to threshold keys")
	case kind == jobv1.Kind_KIND_RESHARE:
		return cli.Invalid("use `lodge keys reshare`", "--kind reshare: resharing applies to threshold keys")
	case purpose == jobv1.Purpose_PURPOSE_THRESHOLD && kind == jobv1.Kind_KIND_KEYS:
		return cli.Invalid("use `lodge keys generate`", "--purpose threshold: threshold keys need holders and a threshold")
	case purpose == jobv1.Purpose_PURPOSE_THRESHOLD:
		return cli.Invalid("remove it", "--purpose threshold with --kind %s", job.KindName(kind))
	}
	return nil
}
