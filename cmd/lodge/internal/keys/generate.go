package keys

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// holding is who is to hold shares of threshold keys.
type holding struct {
	cli.JobOptions
	parties   []string
	threshold uint32
	group     bool // of parties that have keys of their own
}

// fill names the holders and the threshold in a request; 0 lets the coordinator take the largest.
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
			return cli.Invalid("leave it out: two of a group decrypt, or more", "--threshold %d with a set for multi-key ciphertexts, whose parties have keys of their own", q.threshold)
		}
		q.threshold = 1
	} else if n < 3 || uint64(n) < 2*uint64(q.threshold)+1 {
		return cli.Invalid("take at least three holders, and more than twice as many as the threshold",
			"a threshold of %d among %d holders leaves no honest majority", max(1, q.threshold), n)
	}
	if err := cli.CheckTimeout(q.Timeout); err != nil {
		return err
	}
	if q.Timeout > 0 {
		r.Timeout = durationpb.New(q.Timeout)
	}
	r.Purpose, r.Threshold = jobv1.Purpose_PURPOSE_THRESHOLD, q.threshold
	return nil
}

func keysGenerateCommand(o *cli.Operator) *cobra.Command {
	q := &holding{}
	var rotations []int
	var rows bool
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make threshold keys: any T+1 of their holders decrypt",
		Long: cli.PassiveText +
			"Have parties make a key pair for LWE and ring ciphertexts, together with keys to compute with, of whose secrets each\n" +
			"gets a share. They decrypt with masks, which `lodge keys masks` makes beforehand for each quorum. With a set of BGV the\n" +
			"keys are for Lattigo's BGV and BFV ciphertexts, and for the rotations that are named. With a set for multi-key\n" +
			"ciphertexts no key is made, but a group that decrypts what is under its parties' own keys. Keys for tuples, and keys that all\n" +
			"parties decrypt with, are made by `lodge jobs submit --kind keys`.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
		},
	}
	f := cmd.Flags()
	f.Uint32Var(&q.threshold, "threshold", 0, "T: any T+1 holders decrypt, and up to T learn nothing (default: the largest below half of the holders)")
	f.StringSliceVar(&q.parties, "holders", nil, "parties that hold shares, by name or index (default: all)")
	f.StringVar(&q.Params, "params", lwe.Default, "parameter set")
	f.Uint64Var(&q.Epoch, "epoch", 0, "number of the epoch (default: the next)")
	f.IntSliceVar(&rotations, "rotations", nil, "of a BGV set: by how many columns, to the left, slots can be rotated")
	f.BoolVar(&rows, "rotate-rows", false, "of a BGV set: the two rows of slots can be swapped")
	q.RunFlags(cmd)
	cli.CompleteList(cmd, "holders", o.CompleteParties)
	cli.Complete(cmd, "params", cli.ThresholdWords)
	return cmd
}

// automorphisms are those of rotations of the slots of a BGV set.
func automorphisms(name string, rotations []int, rows bool) (list []uint32, err error) {
	if len(rotations) == 0 && !rows {
		return nil, nil
	}
	set, err := bgv.Lookup(name)
	if err != nil {
		return nil, cli.Invalid("take a set of BGV (`lodge params list`)", "--rotations with %s, whose keys rotate nothing", name)
	}
	s, err := bgv.New(set)
	if err != nil {
		return nil, err
	}
	for _, k := range rotations {
		if k%(s.N()/2) == 0 {
			return nil, cli.Invalid(fmt.Sprintf("write one that is no multiple of %d, which is how many columns there are", s.N()/2), "--rotations %d", k)
		}
		list = append(list, uint32(s.Galois(k)))
	}
	if rows {
		list = append(list, uint32(s.RotateRows()))
	}
	slices.Sort(list)
	if list = slices.Compact(list); len(list) > bgv.MaxGalois {
		return nil, cli.Invalid("rotate by some of them several times", "%d rotations; keys are for %d at most", len(list), bgv.MaxGalois)
	}
	return list, nil
}

func keysReshareCommand(o *cli.Operator) *cobra.Command {
	q := &holding{}
	cmd := &cobra.Command{
		Use:   "reshare EPOCH",
		Short: "Give the secrets of threshold keys new shares, at the same or other holders, in a new epoch",
		Long: cli.PassiveText +
			"Have the holders of threshold keys deal new shares of the same secrets, for a new epoch: where a party comes or goes,\n" +
			"where another threshold is wanted, or because old shares may have leaked. The public keys stay, and so do ciphertexts\n" +
			"and keys that were fetched; masks are made anew. Old shares still decrypt until `lodge keys destroy` has erased the old\n" +
			"epoch: that is what ends the worth of shares that have leaked.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.FirstArgument(o.CompleteThreshold),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_RESHARE, Epoch: q.Epoch}
			if r.FromEpoch, err = cli.EpochArgument(args[0]); err != nil {
				return err
			}
			if err := q.fill(o, "to", r); err != nil {
				return err
			}
			return o.Submit(cmd, &q.JobOptions, r)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&q.parties, "to", nil, "parties that are to hold the new shares, by name or index (default: all)")
	f.Uint32Var(&q.threshold, "threshold", 0, "T of the new shares (default: the largest below half of the new holders)")
	f.Uint64Var(&q.Epoch, "epoch", 0, "number of the new epoch (default: the next)")
	q.RunFlags(cmd)
	cli.CompleteList(cmd, "to", o.CompleteParties)
	return cmd
}
