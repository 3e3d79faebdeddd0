package keys

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// formerEpochsCommand returns `lodge epochs`, the former name of those commands of `lodge keys`
// that call one party.
func formerEpochsCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("epochs", nil)
	o.Flags(cmd)
	o.PartyFlag(cmd, "the party, by name or index")
	list := cli.Command("list", func(cmd *cobra.Command, _ []string) error { return listEpochs(o, cmd) })
	cmd.AddCommand(list, publicKeyCommand(o), retireCommand(o))
	return cli.Former(cmd, "keys")
}

type epochRecord struct {
	Epoch          uint64 `json:"epoch"`
	State          string `json:"state"`
	Params         string `json:"params"`
	ParamsHash     string `json:"params_hash"`
	Purpose        string `json:"purpose"`
	Digest         string `json:"digest"`
	KeygenSecurity string `json:"keygen_security"`
	Created        string `json:"created"`
	Session        string `json:"session"`
	Dim            uint32 `json:"dim"`
	RosterHash     string `json:"roster_hash"`
	Roster         string `json:"roster"` // relation to the current roster
	Successor      uint64 `json:"successor,omitempty"`
	Reason         string `json:"reason,omitempty"`
}

func epochJSON(e *keygenv1.Epoch) epochRecord {
	return epochRecord{
		e.GetEpoch(), epochState(e), e.GetParams(), hex.EncodeToString(e.GetParamsHash()), job.PurposeName(e.GetPurpose()), hex.EncodeToString(e.GetDigest()),
		e.GetKeygenSecurity(), cli.Time(e.GetCreated()), e.GetSession(), e.GetDim(), hex.EncodeToString(e.GetRosterHash()), standing(e), e.GetSuccessor(), e.GetReason(),
	}
}

func epochState(e *keygenv1.Epoch) string {
	return cli.Word(e.GetState())
}

// listEpochs lists the epochs of one party.
func listEpochs(o *cli.Operator, cmd *cobra.Command) error {
	return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
		r, err := c.Keygen.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
		if err != nil {
			return err
		}
		list := map[string]any{"epochs": cli.Each(r.GetEpochs(), epochJSON)}
		return cli.Write(cmd, list, func(w io.Writer) error { return printEpochs(w, r.GetEpochs(), time.Now()) })
	})
}

func printEpochs(w io.Writer, list []*keygenv1.Epoch, now time.Time) error {
	return cli.PrintTable(w, "no epochs; `lodge keys generate --purpose triples` makes one", "EPOCH\tSTATE\tPURPOSE\tPARAMS\tKEY GENERATION\tAGE\tDIGEST", list, func(e *keygenv1.Epoch) []any {
		return []any{e.GetEpoch(), epochState(e), job.PurposeName(e.GetPurpose()), e.GetParams(), e.GetKeygenSecurity(),
			now.Sub(e.GetCreated().AsTime()).Round(time.Second), fmt.Sprintf("%.8x", e.GetDigest())}
	})
}

func completeEpochs(o *cli.Operator) []string {
	return o.PartyWords(func(ctx context.Context, c *cli.Party) (list []string) {
		r, _ := c.Keygen.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
		for _, e := range r.GetEpochs() {
			list = append(list, fmt.Sprint(e.GetEpoch()))
		}
		return list
	})
}

func publicKeyCommand(o *cli.Operator) *cobra.Command {
	var out string
	cmd := cli.EpochCommand("public-key", func(cmd *cobra.Command, n uint64, _ []string) error {
		c, err := o.DialParty()
		if err != nil {
			return err
		}
		defer c.Conn.Close()
		return c.Explain(writePublicKey(c, cmd, n, out))
	}, func() []string { return completeEpochs(o) })
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func writePublicKey(c *cli.Party, cmd *cobra.Command, epoch uint64, out string) error {
	stream, err := c.Keygen.GetPublicKey(cmd.Context(), &keygenv1.GetPublicKeyRequest{Epoch: epoch})
	if err != nil {
		return err
	}
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	return cli.SaveStream(out, r, stream.Recv)
}

// remains counts the data that a party holds under a key.
type remains struct {
	Batches int    `json:"batches"`
	Tuples  uint64 `json:"tuples"` // not consumed
}

func (r remains) String() string {
	return fmt.Sprintf("%d batches with %d unconsumed tuples", r.Batches, r.Tuples)
}

// left counts the data that a party holds under an epoch, or under one of its MAC keys if macKey is
// not empty.
func left(c *cli.Party, ctx context.Context, epoch uint64, macKey string) (out remains, err error) {
	q := &tuplesv1.ListBatchesRequest{Epoch: epoch, Limit: 1000, States: []tuplesv1.BatchState{
		tuplesv1.BatchState_BATCH_STATE_LOCKED, tuplesv1.BatchState_BATCH_STATE_AVAILABLE,
	}}
	for {
		r, err := c.ListBatches(ctx, q)
		if err != nil {
			return out, err
		}
		for _, b := range r.GetBatches() {
			if macKey == "" || b.GetMacKeyId() == macKey {
				out.Batches++
				out.Tuples += b.GetCount() - b.GetErased()
			}
		}
		if q.After = r.GetNext(); q.After == "" {
			return out, nil
		}
	}
}

// showEpoch prints what retiring an epoch would erase.
func showEpoch(o *cli.Operator, ctx context.Context, cmd *cobra.Command, c *cli.Party, epoch uint64) error {
	r, err := c.Keygen.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return err
	}
	for _, e := range r.GetEpochs() {
		if e.GetEpoch() != epoch {
			continue
		}
		threshold := e.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD
		lost, err := remainsOf(c, ctx, e)
		if err != nil {
			return err
		}
		record := struct {
			epochRecord
			remains
			DryRun bool `json:"dry_run"`
		}{epochJSON(e), lost, true}
		if threshold {
			return cli.Print(cmd, record, "party %s would retire epoch %d (%s): erase its shares of threshold keys, its recorded answers, and %d masks\n",
				o.Party, epoch, epochState(e), lost.Tuples)
		}
		return cli.Print(cmd, record, "party %s would retire epoch %d (%s, for %s): erase its secrets, its MAC keys, and %s\n", o.Party, epoch,
			epochState(e), job.PurposeName(e.GetPurpose()), lost)
	}
	return rpc.Errorf(rpc.NotFound, "`lodge keys list` lists the epochs", "there is no epoch %d at %s", epoch, c.Name)
}

func retireCommand(o *cli.Operator) *cobra.Command {
	ok := &cli.Confirmation{}
	q := &keygenv1.RetireEpochRequest{}
	cmd := cli.EpochCommand("retire", func(cmd *cobra.Command, epoch uint64, args []string) (err error) {
		q.Epoch = epoch
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			if yes, err := ok.Before(func() error { return showEpoch(o, ctx, cmd, c, q.GetEpoch()) }); !yes {
				return err
			}
			r, err := c.Keygen.RetireEpoch(ctx, q)
			if err != nil {
				return err
			}
			return cli.Print(cmd, struct {
				epochRecord
				Batches uint64 `json:"erased_batches"`
			}{epochJSON(r.GetEpoch()), r.GetErasedBatches()}, "party %s: epoch %d is retired, and %d batches under it erased\n", o.Party, q.GetEpoch(), r.GetErasedBatches())
		})
	}, func() []string { return completeEpochs(o) })
	cmd.Flags().StringVar(&q.Reason, "reason", "", "reason, for later readers")
	ok.Flags(cmd)
	return cmd
}
