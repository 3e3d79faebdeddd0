package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const kindsText = "keys, scalar, matrix, square, random, bit, inverse, input, convolution or proof"

// submitted are the kinds that `lodge jobs submit` makes.
var submitted = slices.DeleteFunc(slices.Clone(config.Kinds), func(k string) bool { return job.OfThreshold(job.KindOf(k)) })

// jobOptions are the flags of `lodge jobs submit`.
type jobOptions struct {
	kind, params, field, purpose, tenant, key string
	shapeFlags
	dim, inputParty           uint32
	count, epoch              uint64
	timeout                   time.Duration
	wait, dryRun, noSacrifice bool
}

func (o *operator) submitCommand() *cobra.Command {
	q := &jobOptions{}
	cmd := &cobra.Command{
		Use:   "submit",
		Short: "Submit a job, or as many as make --count tuples, and print the ids",
		Long: "Submit a job. Keys come first: every other job names the epoch that a job of kind keys has made. Where --count\n" +
			"is more tuples than one job makes, as many jobs are submitted as make them; --dry-run says how many.\n\n" +
			"  keys         an epoch of keys; --dim for matrix products of up to that block\n" +
			kindLines() +
			"  proof        a joint proof of plaintext knowledge of --count ciphertexts\n\n" +
			"Threshold keys, and what belongs to them, are made by `lodge keys generate`, `lodge keys masks` and `lodge keys reshare`.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := q.request(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if q.dryRun {
				return o.estimate(cmd, r)
			}
			return o.submit(cmd, q, r)
		},
	}
	q.flags(cmd)
	cmd.Flags().BoolVar(&q.dryRun, "dry-run", false, "say what the jobs would make and take, and submit nothing; not with keys and proofs")
	_ = cmd.MarkFlagRequired("kind")
	return cmd
}

// kindLines lists the kinds of tuples for the help.
func kindLines() string {
	var b strings.Builder
	for _, k := range kind.All() {
		fmt.Fprintf(&b, "  %-11v  at least --count tuples: %s\n", k, k.Describe().Help)
	}
	return b.String()
}

// flags adds the flags of a job to a command.
func (q *jobOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.kind, "kind", "", kindsText)
	f.StringVar(&q.params, "params", params.Default, "parameter set")
	f.StringVar(&q.field, "field", "p128", "field: p64 to p4096; not with keys")
	q.shapeFlags.flags(f, "shape", "")
	f.Uint32Var(&q.dim, "dim", 0, "block dimension, a power of two (default: with keys none, with matrices and convolutions what costs least)")
	f.Uint32Var(&q.inputParty, "input-party", 0, "of input masks: the party that knows the values")
	f.BoolVar(&q.noSacrifice, "no-sacrifice", false, "of products: leave out the check that finds those of malformed evaluation keys; parties must allow it")
	f.Uint64Var(&q.count, "count", 1, "tuples to make at least; not with keys")
	f.Uint64Var(&q.epoch, "epoch", 0, "epoch to use; with keys the epoch to make (default: the next)")
	f.StringVar(&q.purpose, "purpose", "triples", "of the keys: triples or decryption")
	f.StringVar(&q.tenant, "tenant", devnet.Tenant, "whose tuples these are; not with keys")
	f.DurationVar(&q.timeout, "timeout", 0, "end the job this long after its submission, also while it waits (default: the coordinator's limit for an attempt)")
	f.StringVar(&q.key, "idempotency-key", "", "the same key gives the same jobs, so that a submission can be repeated")
	f.BoolVar(&q.wait, "wait", false, "watch the jobs until they end; fail unless they complete")
	complete(cmd, "kind", words(submitted))
	complete(cmd, "params", paramsWords)
	complete(cmd, "field", fieldWords)
	complete(cmd, "purpose", words([]string{"triples", "decryption"}))
}

// request is what the flags ask for; changed says which of them were given. What a party or the coordinator decides is
// left to them.
func (q *jobOptions) request(changed func(string) bool) (*coordinatorv1.JobRequest, error) {
	r := &coordinatorv1.JobRequest{Kind: job.KindOf(q.kind), Params: q.params, Dim: q.dim, Epoch: q.epoch, InputParty: q.inputParty, NoSacrifice: q.noSacrifice}
	for p := range jobv1.Purpose_name {
		if p != 0 && job.PurposeName(jobv1.Purpose(p)) == q.purpose {
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
		return wrong("write "+kindsText, "--kind %q", q.kind)
	case r.Purpose == 0:
		return wrong("write triples or decryption", "--purpose %q", q.purpose)
	case q.timeout < 0:
		return wrong("write for example 10m", "--timeout %s", q.timeout)
	case q.noSacrifice && !job.Multiplies(r.Kind):
		return wrong("leave it out: such jobs make no products", "--no-sacrifice with --kind %s", q.kind)
	case changed("input-party") != (job.Owned(r.Kind)):
		if job.Owned(r.Kind) {
			return wrong("name the party that is to know the values", "no --input-party")
		}
		return wrong("only input masks are of one party", "--input-party with --kind %s", q.kind)
	}
	var err error
	if r.Shape, err = q.shapeFlags.of(r.Kind, changed); err != nil {
		return nil, err
	}
	if q.timeout > 0 {
		r.Timeout = durationpb.New(q.timeout)
	}
	if r.Kind == jobv1.Kind_KIND_KEYS {
		for _, name := range []string{"field", "count", "tenant"} {
			if changed(name) {
				return wrong("leave it out: an epoch serves all fields and tenants", "--%s with --kind keys", name)
			}
		}
		return r, nil
	}
	r.Field, r.Count, r.Tenant = q.field, q.count, q.tenant
	if r.Count == 0 {
		return wrong("say how many to make at least", "--count 0")
	}
	if err := checkNames(q.params, q.field); err != nil {
		return nil, err
	}
	if r.Epoch == 0 {
		return wrong("`lodge jobs submit --kind keys` makes one, `lodge jobs show` of that job names it", "no --epoch")
	}
	if r.Dim == 0 && !job.Shaped(r.Kind) {
		r.Dim = 1
	}
	return r, nil
}
