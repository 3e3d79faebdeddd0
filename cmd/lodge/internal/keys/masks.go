package keys

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// masking holds the flags of `lodge keys masks`.
type masking struct {
	cli.JobOptions
	quorum []string
	every  bool
	form   string
}

func keysMasksCommand(o *cli.Operator) *cobra.Command {
	q := &masking{}
	cmd := cli.EpochCommand("masks", func(cmd *cobra.Command, epoch uint64, _ []string) error {
		switch {
		case job.MaskForms[q.form] == 0:
			return cli.Invalid("write "+strings.Join(cli.MaskForms, " or "), "--form %q", q.form)
		case q.Count == 0:
			return cli.Invalid("write the number of masks to make", "--count 0")
		case q.every && len(q.quorum) > 0:
			return cli.Invalid("remove one of the two flags", "both --quorum and --every-quorum")
		case !q.every && len(q.quorum) == 0:
			return cli.Invalid("name the parties of a quorum with --quorum, or use --every-quorum", "no quorum to make masks for")
		}
		return makeMasks(o, cmd, q, epoch)
	}, o.CompleteThreshold)
	f := cmd.Flags()
	f.StringSliceVar(&q.quorum, "quorum", nil, "T+1 of the holders, by name or index")
	f.BoolVar(&q.every, "every-quorum", false, "make this number of masks for every quorum of holders in the roster")
	f.Uint64Var(&q.Count, "count", 1000, "masks to make for each quorum")
	f.StringVar(&q.form, "form", cli.MaskForms[0], "form of the masks: exact or paper")
	q.RunFlags(cmd)
	cli.CompleteList(cmd, "quorum", o.CompleteParties)
	cli.Complete(cmd, "form", cli.Words(cli.MaskForms))
	return cmd
}

// makeMasks submits a job for each quorum.
func makeMasks(o *cli.Operator, cmd *cobra.Command, q *masking, epoch uint64) error {
	groups, params, most, err := groups(o, cmd, q, epoch)
	if err != nil {
		return err
	}
	counts, err := cli.Split(q.Count, most)
	if err == nil && len(groups)*len(counts) > cli.MaxSubmitted {
		err = cli.Invalid("use a smaller --count", "%d masks for %d quorums need %d jobs, and a command submits up to %d", q.Count, len(groups), len(groups)*len(counts), cli.MaxSubmitted)
	}
	if err != nil {
		return err
	}
	r := &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: params, Epoch: epoch, Count: q.Count, Form: job.MaskForms[q.form],
	}
	if err := q.SetTimeout(r); err != nil {
		return err
	}
	c, err := o.Dial()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	s := cli.NewSubmission(o, cmd, c, &q.JobOptions, r)
	for _, group := range groups {
		r.Group = group
		if err := s.Add(counts); err != nil {
			if len(s.Jobs) == 0 {
				return err
			}
			cli.Hold(cmd)
			return errors.Join(s.Written(), err)
		}
	}
	r.Count *= uint64(len(groups)) // all quorums together
	if !q.Wait {
		return s.Written()
	}
	return s.Wait()
}

// groups returns the quorums to make masks for, the parameter set of their keys, and the largest
// number of masks for one job.
func groups(o *cli.Operator, cmd *cobra.Command, q *masking, epoch uint64) (groups [][]uint32, params string, most uint64, err error) {
	err = o.WithHolders(func(c *threshold.Client) error {
		k, _, err := cli.ThresholdKey(cmd.Context(), c, epoch)
		if err != nil {
			return err
		}
		names, holders := c.Parties(), cli.PresentHolders(k)
		largest := k.Threshold + 1
		if set := k.Multikey(); set != nil {
			largest = max(largest, min(len(holders), set.Parties))
		}
		p, err := k.MaskParams(largest, q.form == "paper")
		if err != nil {
			return cli.Invalid("use the other form", "%v", cli.FromClient(err))
		}
		params, most = k.Params, uint64(masks.MaxCount(p.Kind)/2) // masks beyond count, which the job opens
		if q.every {
			for n := k.Threshold + 1; n <= largest; n++ {
				groups = append(groups, cli.Quorums(holders, n)...)
			}
			if len(groups) == 0 || len(groups) > cli.MaxSubmitted {
				return cli.Invalid("name the parties of a quorum with --quorum", "--every-quorum: %d holders in the roster, %d for a quorum: no quorum, or more than %d",
					len(holders), k.Threshold+1, cli.MaxSubmitted)
			}
			return nil
		}
		one, err := cli.PartyList("quorum", q.quorum, names)
		if err != nil {
			return err
		}
		groups = [][]uint32{one}
		return cli.CheckQuorum(k, one, holders, names)
	})
	return groups, params, most, err
}
