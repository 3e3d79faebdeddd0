package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// ending describes how an epoch ends at the parties. It calls each as its client with the
// permission retire.
type ending struct {
	epoch, successor uint64
	revoke, destroy  bool // destroy includes revoke
	threshold        bool // the epoch has threshold keys
	parties          []string
	reason           string
}

// endedAt is the outcome at one party.
type endedAt struct {
	Party string `json:"party"`
	State string `json:"state"` // state of the epoch
	remains
	Erased uint64 `json:"erased_batches"`
}

// preview asks every party what it would lose, so that nothing starts that a party would refuse. A
// party without the epoch, such as one that joined later, loses nothing. But a party that joined
// with epochs of another cluster would lose its own epoch with the same number.
func preview(o *cli.Operator, cmd *cobra.Command, q *ending) (list []endedAt, err error) {
	var keys []byte // of the first party that has the epoch
	for _, name := range q.parties {
		err := at(o, name).CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			r, err := c.Keygen.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
			if err != nil {
				return err
			}
			for _, e := range r.GetEpochs() {
				if e.GetEpoch() != q.epoch {
					continue
				}
				if len(list) > 0 && !bytes.Equal(keys, e.GetDigest()) {
					return rpc.Errorf(rpc.Conflict, "name the parties with --party, or check where this store comes from",
						"epoch %d of party %s differs from that of party %s with the same number", q.epoch, name, list[0].Party)
				}
				keys, q.threshold = e.GetDigest(), e.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD
				x := endedAt{Party: name, State: epochState(e)}
				if x.remains, err = remainsOf(c, ctx, e); err == nil {
					list = append(list, x)
				}
				return err
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, rpc.Errorf(rpc.NotFound, "`lodge keys list` lists the epochs", "there is no epoch %d at %s", q.epoch, strings.Join(q.parties, ", "))
	}
	return list, nil
}

// remainsOf counts the data that a party holds under an epoch.
func remainsOf(c *cli.Party, ctx context.Context, e *keygenv1.Epoch) (remains, error) {
	if e.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD {
		return masksLeft(c, ctx, e.GetEpoch())
	}
	return left(c, ctx, e.GetEpoch(), "")
}

// masksLeft counts the masks that a party has under threshold keys. It counts kinds of masks as
// batches.
func masksLeft(c *cli.Party, ctx context.Context, epoch uint64) (out remains, err error) {
	r, err := thresholdv1.NewThresholdServiceClient(c.Conn).ListKeys(ctx, &thresholdv1.ListKeysRequest{})
	for _, k := range r.GetKeys() {
		if k.GetEpoch() != epoch {
			continue
		}
		for _, m := range k.GetMasks() {
			out.Batches++
			out.Tuples += m.GetFree()
		}
	}
	return out, err
}

// run revokes or destroys the epoch at each party, one after the other. It may be repeated until
// all have done it.
func run(o *cli.Operator, cmd *cobra.Command, q *ending, list []endedAt) error {
	var failed error
	for i := range list {
		x := &list[i]
		err := at(o, x.Party).CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			if q.destroy {
				r, err := c.Keygen.RetireEpoch(ctx, &keygenv1.RetireEpochRequest{Epoch: q.epoch, Reason: q.reason})
				x.State, x.Erased = epochState(r.GetEpoch()), r.GetErasedBatches()
				return err
			}
			r, err := c.Keygen.DrainEpoch(ctx, &keygenv1.DrainEpochRequest{Epoch: q.epoch, Successor: q.successor, Revoke: true, Reason: q.reason})
			x.State, x.Erased = epochState(r.GetEpoch()), r.GetErasedBatches()
			return err
		})
		if err == nil {
			x.remains = remains{}
			continue
		}
		e := cli.Typed(err)
		x.State, x.Erased = "unknown", 0
		failed = errors.Join(failed, rpc.Errorf(e.Code, "run the command again: completed steps are not repeated", "party %s: %s", x.Party, e.What))
	}
	return failed
}

func (q *ending) verb() string {
	if q.destroy {
		return "destroy"
	}
	return "revoke"
}

// printLoss prints what the parties would lose.
func printLoss(w io.Writer, q *ending, list []endedAt) error {
	what := "burn the MAC keys of epoch %d and erase every tuple under it:\n"
	switch {
	case q.destroy && q.threshold:
		what = "erase the shares of the threshold keys of epoch %d, its masks and its recorded answers:\n"
	case q.destroy:
		what = "erase the secrets of epoch %d, its MAC keys and every tuple under it:\n"
	}
	fmt.Fprintf(w, "this would "+what, q.epoch)
	t := cli.NewTable(w)
	if q.threshold {
		fmt.Fprintln(t, "PARTY\tSTATE\tMASKS THAT ARE NOT SPENT")
		for _, x := range list {
			fmt.Fprintf(t, "%s\t%s\t%d\n", x.Party, x.State, x.Tuples)
		}
		return t.Flush()
	}
	fmt.Fprintln(t, "PARTY\tSTATE\tBATCHES\tTUPLES THAT ARE NOT CONSUMED")
	for _, x := range list {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\n", x.Party, x.State, x.Batches, x.Tuples)
	}
	return t.Flush()
}

func keysDestroyCommand(o *cli.Operator) *cobra.Command {
	ok := &cli.Confirmation{}
	q := &ending{destroy: true}
	cmd := cli.EpochCommand("destroy", func(cmd *cobra.Command, epoch uint64, args []string) (err error) {
		q.epoch = epoch
		if q.parties, err = partyNames(o, q.parties); err != nil {
			return err
		}
		list, err := preview(o, cmd, q)
		if err != nil {
			return err
		}
		if yes, err := ok.Before(func() error { return showLoss(o, cmd, q, list) }); !yes {
			return err
		}
		cli.Hold(cmd)
		err = run(o, cmd, q, list)
		return errors.Join(writeEnding(o, cmd, q, list), err)
	}, func() []string { return completeKeys(o) })
	cmd.Flags().StringSliceVar(&q.parties, "party", nil, "only at these parties (default: all of the roster)")
	cmd.Flags().StringVar(&q.reason, "reason", "", "reason, for later readers")
	cli.Complete(cmd, "party", o.CompleteParties)
	ok.Flags(cmd)
	return cmd
}

type endingReport struct {
	Epoch   uint64    `json:"epoch"`
	Action  string    `json:"action"` // revoke or destroy
	Parties []endedAt `json:"parties"`
	DryRun  bool      `json:"dry_run,omitempty"`
}

func showLoss(o *cli.Operator, cmd *cobra.Command, q *ending, list []endedAt) error {
	return cli.Write(cmd, endingReport{q.epoch, q.verb(), list, true}, func(w io.Writer) error { return printLoss(w, q, list) })
}

func writeEnding(o *cli.Operator, cmd *cobra.Command, q *ending, list []endedAt) error {
	return cli.Write(cmd, endingReport{q.epoch, q.verb(), list, false}, func(w io.Writer) error { return printEnding(w, q, list) })
}

func printEnding(w io.Writer, q *ending, list []endedAt) error {
	for _, x := range list {
		what := fmt.Sprintf("epoch %d is %s, and %d batches under it are erased", q.epoch, x.State, x.Erased)
		if x.State == "unknown" {
			what = fmt.Sprintf("the outcome for epoch %d is unknown", q.epoch)
		}
		if _, err := fmt.Fprintf(w, "party %s: %s\n", x.Party, what); err != nil {
			return err
		}
	}
	return nil
}
