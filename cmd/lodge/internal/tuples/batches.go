package tuples

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// batchesCommand returns `lodge batches`.
func batchesCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("batches", nil)
	o.Flags(cmd)
	o.PartyFlag(cmd, "the party, by name or index")
	cmd.AddCommand(batchesListCommand(o))
	return cmd
}

func batchesListCommand(o *cli.Operator) *cobra.Command {
	q := &tuplesv1.ListBatchesRequest{}
	var states []string
	cmd := cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		var err error
		if q.States, err = cli.ParseEnum[tuplesv1.BatchState]("state", states); err != nil {
			return err
		}
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			r, err := c.ListBatches(ctx, q)
			if err != nil {
				return err
			}
			return cli.Write(cmd, batchesJSON(r), func(w io.Writer) error {
				if err := printBatches(w, r.GetBatches(), time.Now()); err != nil {
					return err
				}
				if r.GetNext() != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "there are more: lodge batches list --after %s\n", r.GetNext())
				}
				return nil
			})
		})
	})
	f := cmd.Flags()
	f.Uint64Var(&q.Epoch, "epoch", 0, "only batches under this epoch of keys")
	f.StringSliceVar(&states, "state", nil, "only batches in this state: "+strings.Join(cli.EnumWords[tuplesv1.BatchState](), ", "))
	f.StringVar(&q.After, "after", "", "only ids after this one")
	f.Uint32Var(&q.Limit, "limit", 100, "largest number of entries, up to 1000")
	cli.Complete(cmd, "state", cli.EnumWords[tuplesv1.BatchState])
	return cmd
}

// free returns the number of tuples of a batch that were never reserved.
func free(b *tuplesv1.Batch) (n uint64) {
	for _, s := range b.GetFree() {
		n += s.GetCount()
	}
	return n
}

func printBatches(w io.Writer, list []*tuplesv1.Batch, now time.Time) error {
	return cli.PrintTable(w, "no batches", "ID\tSTATE\tKIND\tFIELD\tPARAMS\tTENANT\tEPOCH\tCOUNT\tFREE\tERASED\tLOST\tSIZE\tAGE\tREASON", list, func(b *tuplesv1.Batch) []any {
		c := b.GetClass()
		return []any{b.GetId(), cli.Word(b.GetState()), cli.ClassText(c), c.GetField(), c.GetParams(), c.GetTenant(), b.GetEpoch(),
			b.GetCount(), free(b), b.GetErased(), b.GetLost(), cli.Size(float64(b.GetCount() * b.GetTupleBytes())),
			now.Sub(b.GetCreated().AsTime()).Round(time.Second), b.GetReason()}
	})
}

type batchRecord struct {
	ID    string `json:"id"`
	State string `json:"state"`
	cli.ClassRecord
	Epoch      uint64     `json:"epoch"`
	MACKey     string     `json:"mac_key"`
	Dim        uint32     `json:"dim"`
	Count      uint64     `json:"count"`
	Free       []spanJSON `json:"free"`
	Erased     uint64     `json:"erased"`
	Lost       uint64     `json:"lost"`
	TupleBytes uint64     `json:"tuple_bytes"`
	Digest     string     `json:"digest"`
	Created    string     `json:"created"`
	Reason     string     `json:"reason,omitempty"`
}

type spanJSON struct {
	First uint64 `json:"first"`
	Count uint64 `json:"count"`
}

type BatchList struct {
	Batches []batchRecord `json:"batches"`
	Next    string        `json:"next,omitempty"`
}

func batchesJSON(r *tuplesv1.ListBatchesResponse) BatchList {
	return BatchList{cli.Each(r.GetBatches(), func(b *tuplesv1.Batch) batchRecord {
		return batchRecord{
			ID: b.GetId(), State: cli.Word(b.GetState()), ClassRecord: cli.ClassJSON(b.GetClass()), Epoch: b.GetEpoch(), MACKey: b.GetMacKeyId(), Dim: b.GetDim(),
			Count: b.GetCount(), Free: cli.Each(b.GetFree(), func(s *tuplesv1.Span) spanJSON { return spanJSON{s.GetFirst(), s.GetCount()} }), Erased: b.GetErased(), Lost: b.GetLost(), TupleBytes: b.GetTupleBytes(),
			Digest: hex.EncodeToString(b.GetDigest()), Created: cli.Time(b.GetCreated()), Reason: b.GetReason(),
		}
	}), r.GetNext()}
}

// revokeReport is the JSON outcome of `lodge revoke`.
type revokeReport struct {
	Party   string   `json:"party"`
	Batches uint32   `json:"batches"`
	Tuples  uint64   `json:"tuples"` // unconsumed
	IDs     []string `json:"batch_ids,omitempty"`
	MACKey  string   `json:"mac_key,omitempty"`
	DryRun  bool     `json:"dry_run,omitempty"`
}

// revokeCommand returns `lodge revoke`.
func revokeCommand() *cobra.Command {
	o, ok := &cli.Operator{}, &cli.Confirmation{}
	q := &tuplesv1.RevokeRequest{}
	cmd := cli.Command("revoke", func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && q.GetMacKeyId() == "":
			return cli.Invalid("name batches, which `lodge batches list` lists, or a MAC key with --mac-key, which `lodge mac-keys list` lists", "nothing to revoke: no BATCH and no --mac-key")
		case len(args) > 0 && q.GetMacKeyId() != "":
			return cli.Invalid("remove the batches: --mac-key erases all of its tuples, or remove --mac-key", "both batches and --mac-key")
		}
		q.BatchIds = args
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			q.DryRun = true
			r, err := c.Revoke(ctx, q)
			if err != nil {
				return err
			}
			report := revokeReport{o.Party, r.GetBatches(), r.GetTuples(), args, q.GetMacKeyId(), true}
			if yes, err := ok.Before(func() error { return writeRevoked(o, cmd, report) }); !yes {
				return err
			}
			q.DryRun, report.DryRun = false, false
			if _, err := c.Revoke(ctx, q); err != nil {
				return err
			}
			return writeRevoked(o, cmd, report)
		})
	})
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return completeBatches(o), cobra.ShellCompDirectiveNoFileComp
	}
	o.Flags(cmd)
	o.PartyFlag(cmd, "the party, by name or index")
	ok.Flags(cmd)
	cmd.Flags().StringVar(&q.MacKeyId, "mac-key", "", "burn this MAC key, and erase everything under it")
	cmd.Flags().StringVar(&q.Reason, "reason", "", "reason, for later readers")
	cli.Complete(cmd, "mac-key", o.CompleteMACKeys)
	return cmd
}

func writeRevoked(o *cli.Operator, cmd *cobra.Command, r revokeReport) error {
	return cli.Write(cmd, r, func(w io.Writer) error {
		did, key := "erased", ""
		if r.DryRun {
			did = "would erase"
		}
		if r.MACKey != "" {
			key = ", and the MAC key " + r.MACKey
		}
		_, err := fmt.Fprintf(w, "party %s %s %d batches with %d unconsumed tuples%s\n", r.Party, did, r.Batches, r.Tuples, key)
		return err
	})
}

func completeBatches(o *cli.Operator) []string {
	return o.PartyWords(func(ctx context.Context, c *cli.Party) (ids []string) {
		r, _ := c.ListBatches(ctx, &tuplesv1.ListBatchesRequest{Limit: cli.MaxWords})
		for _, b := range r.GetBatches() {
			ids = append(ids, cobra.CompletionWithDesc(b.GetId(), cli.ClassText(b.GetClass())+", "+cli.Word(b.GetState())))
		}
		return ids
	})
}
