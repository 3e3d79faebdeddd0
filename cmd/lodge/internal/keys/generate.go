package keys

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// holding holds the flags that select the holders of threshold keys.
type holding struct {
	cli.JobOptions
	parties   []string
	threshold uint32
	group     bool // the parties have keys of their own
}

// fill sets the holders and the threshold of a request. Threshold 0 lets the coordinator choose the
// largest.
func (q *holding) fill(o *cli.Operator, flag string, r *coordinatorv1.JobRequest) error {
	names, err := partyNames(o, nil)
	if err != nil {
		return err
	}
	if r.Group, err = cli.PartyList(flag, q.parties, names); err != nil {
		return err
	}
	n := len(r.Group)
	if n == 0 {
		n = len(names)
	}
	if q.group {
		if q.threshold > 1 {
			return cli.Invalid("remove it: at least two parties of a group decrypt", "--threshold %d with a set for multi-key ciphertexts, whose parties have separate keys", q.threshold)
		}
		q.threshold = 1
	} else if n < 3 || uint64(n) < 2*uint64(q.threshold)+1 {
		return cli.Invalid("use at least three holders, and more than twice as many as the threshold",
			"a threshold of %d among %d holders leaves no honest majority", max(1, q.threshold), n)
	}
	r.Purpose, r.Threshold = jobv1.Purpose_PURPOSE_THRESHOLD, q.threshold
	return q.SetTimeout(r)
}

// purposes are the uses of keys. Threshold keys are the default.
var purposes = []string{"threshold", "triples", "decryption"}

// generateForAll submits the generation of keys that all parties share, as `lodge jobs submit
// --kind keys` does.
func generateForAll(o *cli.Operator, cmd *cobra.Command, q *holding, purpose string, block uint32) error {
	for _, name := range []string{"threshold", "holders", "rotations", "rotate-rows"} {
		if cmd.Flags().Changed(name) {
			return cli.Invalid("remove it: it applies to threshold keys", "--%s with --purpose %s", name, purpose)
		}
	}
	r := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: q.Params, Epoch: q.Epoch, Dim: block}
	if !cmd.Flags().Changed("params") {
		r.Params = params.Default
	}
	switch purpose {
	case "triples":
		r.Purpose = jobv1.Purpose_PURPOSE_TRIPLES
	case "decryption":
		r.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION
	default:
		return cli.Invalid("write one of "+strings.Join(purposes, ", "), "--purpose %q", purpose)
	}
	if err := q.SetTimeout(r); err != nil {
		return err
	}
	return o.Submit(cmd, &q.JobOptions, r)
}

func keysGenerateCommand(o *cli.Operator) *cobra.Command {
	q := &holding{}
	var rotations []int
	var rows bool
	var purpose string
	var block uint32
	cmd := cli.Command("generate", func(cmd *cobra.Command, _ []string) error {
		if purpose != "threshold" {
			return generateForAll(o, cmd, q, purpose, block)
		}
		if block != 0 {
			return cli.Invalid("remove it: threshold keys have no blocks", "--block %d with --purpose threshold", block)
		}
		set, err := cli.SetForThreshold(q.Params)
		if err != nil {
			return err
		}
		q.group = set.Multikey
		r := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set.Name, Epoch: q.Epoch}
		if r.Galois, err = automorphisms(set.Name, rotations, rows); err != nil {
			return err
		}
		if err := q.fill(o, "holders", r); err != nil {
			return err
		}
		return o.Submit(cmd, &q.JobOptions, r)
	})
	f := cmd.Flags()
	f.StringVar(&purpose, "purpose", "threshold", "use of the keys: "+strings.Join(purposes, ", "))
	f.Uint32Var(&block, "block", 0, "for triples: largest block dimension of matrices, a power of two (default: none)")
	cli.Complete(cmd, "purpose", cli.Words(purposes))
	f.Uint32Var(&q.threshold, "threshold", 0, "T: any T+1 holders decrypt, and up to T learn nothing (default: the largest below half of the holders)")
	f.StringSliceVar(&q.parties, "holders", nil, "parties that hold shares, by name or index (default: all)")
	f.StringVar(&q.Params, "params", lwe.Default, "parameter set")
	f.Uint64Var(&q.Epoch, "epoch", 0, "number of the epoch (default: the next)")
	f.IntSliceVar(&rotations, "rotations", nil, "for a BGV set: rotations of the slots that the keys allow, as numbers of columns to the left")
	f.BoolVar(&rows, "rotate-rows", false, "for a BGV set: allow swapping the two rows of slots")
	q.RunFlags(cmd)
	cli.CompleteList(cmd, "holders", o.CompleteParties)
	cli.Complete(cmd, "params", cli.ThresholdWords)
	return cmd
}

// automorphisms returns the automorphisms for the rotations of the slots of a BGV set.
func automorphisms(name string, rotations []int, rows bool) (list []uint32, err error) {
	if len(rotations) == 0 && !rows {
		return nil, nil
	}
	set, err := bgv.Lookup(name)
	if err != nil {
		return nil, cli.Invalid("use a BGV set (`lodge params list`)", "--rotations with %s, whose ciphertexts have no slots", name)
	}
	s, err := bgv.New(set)
	if err != nil {
		return nil, err
	}
	for _, k := range rotations {
		if k%(s.N()/2) == 0 {
			return nil, cli.Invalid(fmt.Sprintf("write a number that is not a multiple of %d, the number of columns", s.N()/2), "--rotations %d", k)
		}
		list = append(list, uint32(s.Galois(k)))
	}
	if rows {
		list = append(list, uint32(s.RotateRows()))
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > bgv.MaxGalois {
		return nil, cli.Invalid("apply some rotations several times", "%d rotations; the limit is %d", len(list), bgv.MaxGalois)
	}
	return list, nil
}

func keysReshareCommand(o *cli.Operator) *cobra.Command {
	q := &holding{}
	cmd := cli.EpochCommand("reshare", func(cmd *cobra.Command, epoch uint64, _ []string) error {
		r := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, Epoch: q.Epoch, FromEpoch: epoch}
		if err := q.fill(o, "to", r); err != nil {
			return err
		}
		return o.Submit(cmd, &q.JobOptions, r)
	}, o.CompleteThreshold)
	f := cmd.Flags()
	f.StringSliceVar(&q.parties, "to", nil, "holders of the new shares, by name or index (default: all)")
	f.Uint32Var(&q.threshold, "threshold", 0, "threshold T of the new shares (default: the largest below half of the new holders)")
	f.Uint64Var(&q.Epoch, "epoch", 0, "number of the new epoch (default: the next)")
	q.RunFlags(cmd)
	cli.CompleteList(cmd, "to", o.CompleteParties)
	return cmd
}
