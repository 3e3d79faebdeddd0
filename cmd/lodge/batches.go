package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// batchesCommand is `lodge batches`.
func batchesCommand() *cobra.Command {
	o := &operator{}
	cmd := &cobra.Command{
		Use:   "batches",
		Short: "List the batches of tuples that a party holds",
		Long:  "List the batches that a party holds, as its client with the permission status. `lodge revoke` erases them.\n\n" + connecting,
	}
	o.flags(cmd)
	o.partyFlag(cmd, "the party, by name or index")
	cmd.AddCommand(o.batchesListCommand())
	return cmd
}

func (o *operator) batchesListCommand() *cobra.Command {
	q := &tuplesv1.ListBatchesRequest{}
	var states []string
	cmd := &cobra.Command{
		Use:   "list --party PARTY",
		Short: "List batches by id",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range states {
				s, ok := tuplesv1.BatchState_value["BATCH_STATE_"+strings.ToUpper(name)]
				if !ok || s == 0 {
					return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(batchStateNames(), ", "), "--state %q", name)
				}
				q.States = append(q.States, tuplesv1.BatchState(s))
			}
			return o.callParty(cmd, func(ctx context.Context, c *partyClient) error {
				r, err := c.ListBatches(ctx, q)
				if err != nil {
					return err
				}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), batchesJSON(r))
				}
				if err := printBatches(cmd.OutOrStdout(), r.GetBatches(), time.Now()); err != nil {
					return err
				}
				if r.GetNext() != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "there are more: lodge batches list --after %s\n", r.GetNext())
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&q.Epoch, "epoch", 0, "only batches under this epoch of keys")
	f.StringSliceVar(&states, "state", nil, "only batches in this state: "+strings.Join(batchStateNames(), ", "))
	f.StringVar(&q.After, "after", "", "only ids after this one")
	f.Uint32Var(&q.Limit, "limit", 100, "at most this many, up to 1000")
	complete(cmd, "state", batchStateNames)
	return cmd
}

// batchStateNames are the states of batches in the order in which they follow.
func batchStateNames() (names []string) {
	for n := range len(tuplesv1.BatchState_name) {
		if n != 0 {
			names = append(names, batchState(tuplesv1.BatchState(n)))
		}
	}
	return names
}

func batchState(s tuplesv1.BatchState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "BATCH_STATE_"))
}

// free is how many tuples of a batch no reservation holds or ever held.
func free(b *tuplesv1.Batch) (n uint64) {
	for _, s := range b.GetFree() {
		n += s.GetCount()
	}
	return n
}

func printBatches(w io.Writer, list []*tuplesv1.Batch, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no batches")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tKIND\tFIELD\tPARAMS\tTENANT\tEPOCH\tCOUNT\tFREE\tERASED\tLOST\tSIZE\tAGE\tREASON")
	for _, b := range list {
		c := b.GetClass()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", b.GetId(), batchState(b.GetState()), kindText(c), orDash(c.GetField()), c.GetParams(),
			orDash(c.GetTenant()), b.GetEpoch(), b.GetCount(), free(b), b.GetErased(), b.GetLost(), amount(float64(b.GetCount()*b.GetTupleBytes())),
			now.Sub(b.GetCreated().AsTime()).Round(time.Second), orDash(oneLine(b.GetReason())))
	}
	return t.Flush()
}

type batchRecord struct {
	ID    string `json:"id"`
	State string `json:"state"`
	classRecord
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

type batchList struct {
	Batches []batchRecord `json:"batches"`
	Next    string        `json:"next,omitempty"`
}

func batchesJSON(r *tuplesv1.ListBatchesResponse) batchList {
	list := batchList{Batches: []batchRecord{}, Next: r.GetNext()}
	for _, b := range r.GetBatches() {
		x := batchRecord{
			ID: b.GetId(), State: batchState(b.GetState()), classRecord: classJSON(b.GetClass()), Epoch: b.GetEpoch(), MACKey: b.GetMacKeyId(), Dim: b.GetDim(),
			Count: b.GetCount(), Free: []spanJSON{}, Erased: b.GetErased(), Lost: b.GetLost(), TupleBytes: b.GetTupleBytes(),
			Digest: hex.EncodeToString(b.GetDigest()), Created: when(b.GetCreated()), Reason: b.GetReason(),
		}
		for _, s := range b.GetFree() {
			x.Free = append(x.Free, spanJSON{s.GetFirst(), s.GetCount()})
		}
		list.Batches = append(list.Batches, x)
	}
	return list
}

// confirmation is the pair of flags of a command that destroys.
type confirmation struct {
	yes, dryRun bool
	cmd         *cobra.Command
}

func (q *confirmation) flags(cmd *cobra.Command) {
	q.cmd = cmd
	cmd.Flags().BoolVar(&q.yes, "yes", false, "do it; without this nothing is done")
	cmd.Flags().BoolVar(&q.dryRun, "dry-run", false, "show what would be done, and do nothing")
}

// before says whether to go on: with --yes. Otherwise the caller has shown what would be done, and the error, without
// --dry-run, asks for the flag.
func (q *confirmation) before(shown func() error) (bool, error) {
	if q.yes && !q.dryRun {
		return true, nil
	}
	hold(q.cmd)
	if err := shown(); err != nil || q.dryRun {
		return false, err
	}
	return false, rpc.Errorf(rpc.Invalid, "add --yes to do it", "nothing was done: this cannot be taken back")
}

// revokeReport is the outcome of `lodge revoke`.
type revokeReport struct {
	Party   string   `json:"party"`
	Batches uint32   `json:"batches"`
	Tuples  uint64   `json:"tuples"` // that were not consumed yet
	IDs     []string `json:"batch_ids,omitempty"`
	MACKey  string   `json:"mac_key,omitempty"`
	DryRun  bool     `json:"dry_run,omitempty"`
}

// revokeCommand is `lodge revoke`.
func revokeCommand() *cobra.Command {
	o, ok := &operator{}, &confirmation{}
	q := &tuplesv1.RevokeRequest{}
	cmd := &cobra.Command{
		Use:   "revoke (BATCH... | --mac-key ID) --party PARTY",
		Short: "Erase batches, or everything under a MAC key, at a party",
		Long: "Erase a party's shares of batches, or of everything under a MAC key, as its client with the permission retire. What\n" +
			"one party has erased is of no use at the others, and can be reserved no more.\n\n" + connecting,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return o.completeBatches(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) > 0) == (q.GetMacKeyId() != "") {
				return rpc.Errorf(rpc.Invalid, "name batches, or a MAC key with --mac-key", "neither or both of them")
			}
			q.BatchIds = args
			return o.callParty(cmd, func(ctx context.Context, c *partyClient) error {
				q.DryRun = true
				r, err := c.Revoke(ctx, q)
				if err != nil {
					return err
				}
				report := revokeReport{o.party, r.GetBatches(), r.GetTuples(), args, q.GetMacKeyId(), true}
				if yes, err := ok.before(func() error { return o.writeRevoked(cmd, report) }); !yes {
					return err
				}
				q.DryRun, report.DryRun = false, false
				if _, err := c.Revoke(ctx, q); err != nil {
					return err
				}
				return o.writeRevoked(cmd, report)
			})
		},
	}
	o.flags(cmd)
	o.partyFlag(cmd, "the party, by name or index")
	ok.flags(cmd)
	cmd.Flags().StringVar(&q.MacKeyId, "mac-key", "", "burn this MAC key, and erase everything under it")
	cmd.Flags().StringVar(&q.Reason, "reason", "", "why, for those who look at the batches later")
	complete(cmd, "mac-key", o.completeMACKeys)
	return cmd
}

func (o *operator) writeRevoked(cmd *cobra.Command, r revokeReport) error {
	if o.json {
		return writeIndented(cmd.OutOrStdout(), r)
	}
	did, key := "erased", ""
	if r.DryRun {
		did = "would erase"
	}
	if r.MACKey != "" {
		key = ", and the MAC key " + r.MACKey
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "party %s %s %d batches with %d tuples that are not consumed%s\n", r.Party, did, r.Batches, r.Tuples, key)
	return err
}
