package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// masking is what `lodge keys masks` does.
type masking struct {
	jobOptions
	quorum []string
	every  bool
	form   string
}

// maskForms are the forms of masks, the usual one first.
var maskForms = []string{"exact", "paper"}

func (o *operator) keysMasksCommand() *cobra.Command {
	q := &masking{}
	cmd := &cobra.Command{
		Use:   "masks EPOCH",
		Short: "Make masks for quorums of the holders of threshold keys: each decrypts one message",
		Long: passiveText +
			"Have the parties of a quorum, T+1 of the holders, make masks: a decryption by this quorum takes one for each message.\n" +
			"Exact ones never fail. Those of the paper's form take two messages fewer, and fail with the probability that\n" +
			"`lodge keys show` prints, by which they tell about the noise; parties decrypt with them where their rules allow it.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeThreshold),
		RunE: func(cmd *cobra.Command, args []string) error {
			epoch, err := epochArgument(args[0])
			if err != nil {
				return err
			}
			switch {
			case job.MaskForms[q.form] == 0:
				return invalid("write "+strings.Join(maskForms, " or "), "--form %q", q.form)
			case q.count == 0:
				return invalid("say how many to make", "--count 0")
			case q.every == (len(q.quorum) > 0):
				return invalid("name the parties of one with --quorum, or take --every-quorum", "masks are made for a quorum")
			}
			return o.masks(cmd, q, epoch)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&q.quorum, "quorum", nil, "T+1 of the holders, by name or index")
	f.BoolVar(&q.every, "every-quorum", false, "for every choice of T+1 holders that are in the roster, so many for each")
	f.Uint64Var(&q.count, "count", 1000, "masks to make for a quorum")
	f.StringVar(&q.form, "form", maskForms[0], "of the masks: exact, or paper")
	q.runFlags(cmd)
	completeNames(cmd, "quorum", o.completeParties)
	complete(cmd, "form", words(maskForms))
	return cmd
}

// masks submits a job for each quorum.
func (o *operator) masks(cmd *cobra.Command, q *masking, epoch uint64) error {
	groups, params, most, err := o.groups(cmd, q, epoch)
	if err != nil {
		return err
	}
	counts, err := split(q.count, most)
	if err == nil && len(groups)*len(counts) > maxSubmitted {
		err = invalid("ask for less", "%d masks for %d quorums take %d jobs, and a command submits up to %d", q.count, len(groups), len(groups)*len(counts), maxSubmitted)
	}
	if err != nil {
		return err
	}
	r := &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: params, Epoch: epoch, Count: q.count, Form: job.MaskForms[q.form],
	}
	if err := checkTimeout(q.timeout); err != nil {
		return err
	}
	if q.timeout > 0 {
		r.Timeout = durationpb.New(q.timeout)
	}
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	s := newSubmission(o, cmd, c, &q.jobOptions, r)
	for _, group := range groups {
		r.Group = group
		if err := s.add(counts); err != nil {
			if len(s.jobs) == 0 {
				return err
			}
			hold(cmd)
			return errors.Join(s.written(), err)
		}
	}
	r.Count *= uint64(len(groups)) // what is made of all together
	if !q.wait {
		return s.written()
	}
	return s.wait()
}

// groups are the quorums that masks are made for, the set of their keys, and how many one job is asked for.
func (o *operator) groups(cmd *cobra.Command, q *masking, epoch uint64) (groups [][]uint32, params string, most uint64, err error) {
	err = o.withHolders(func(c *threshold.Client) error {
		k, _, err := thresholdKey(cmd.Context(), c, epoch)
		if err != nil {
			return err
		}
		names, holders := c.Parties(), presentHolders(k)
		largest := k.Threshold + 1
		if set := k.Multikey(); set != nil {
			largest = max(largest, min(len(holders), set.Parties))
		}
		p, err := k.MaskParams(largest, q.form == "paper")
		if err != nil {
			return invalid("take the other form", "%v", plain(err))
		}
		params, most = k.Params, uint64(masks.MaxCount(p.Kind)/2) // of some more, which are opened
		if q.every {
			for n := k.Threshold + 1; n <= largest; n++ {
				groups = append(groups, quorums(holders, n)...)
			}
			if len(groups) == 0 || len(groups) > maxSubmitted {
				return invalid("name those that are to decrypt with --quorum", "--every-quorum: of %d holders that are in the roster, %d make no quorum, or more than %d",
					len(holders), k.Threshold+1, maxSubmitted)
			}
			return nil
		}
		one, err := partyList("quorum", q.quorum, names)
		if err != nil {
			return err
		}
		groups = [][]uint32{one}
		return checkQuorum(k, one, holders, names)
	})
	return groups, params, most, err
}

// checkQuorum refuses parties that are no quorum of keys.
func checkQuorum(k *threshold.Key, quorum, holders []uint32, names []string) error {
	next := fmt.Sprintf("name %d of %s", k.Threshold+1, nameList(holders, names))
	if set := k.Multikey(); set != nil {
		next = fmt.Sprintf("name two of %s, or more, up to %d", nameList(holders, names), set.Parties)
		if len(quorum) < 2 || len(quorum) > max(2, set.Parties) {
			return rpc.Errorf(rpc.WrongQuorum, next, "--quorum names %d parties", len(quorum))
		}
	} else if len(quorum) != k.Threshold+1 {
		return rpc.Errorf(rpc.WrongQuorum, next, "--quorum names %d parties, and any %d of the holders of epoch %d decrypt", len(quorum), k.Threshold+1, k.Epoch)
	}
	for _, p := range quorum {
		if !slices.Contains(holders, p) {
			return rpc.Errorf(rpc.WrongQuorum, next, "party %s holds no share of the keys of epoch %d", names[p], k.Epoch)
		}
	}
	return nil
}
