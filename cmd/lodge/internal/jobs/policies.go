package jobs

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// stockAnswer is the common part of the responses of GetStock and WatchStock.
type stockAnswer interface {
	GetStock() []*stockv1.Stock
	GetAsOf() *timestamppb.Timestamp
	GetAway() []*stockv1.AwayParty
}

// policiesCommand returns `lodge stock policies`.
func policiesCommand(o *cli.Operator) *cobra.Command {
	cmd := cli.Command("policies", nil)
	cmd.AddCommand(policiesListCommand(o), policiesSetCommand(o), policiesDeleteCommand(o))
	return cmd
}

func policiesListCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			r, err := c.Stock.ListPolicies(ctx, &stockv1.ListPoliciesRequest{})
			if err != nil {
				return err
			}
			return writePolicies(o, cmd, r.GetPolicies())
		})
	})
}

func writePolicies(o *cli.Operator, cmd *cobra.Command, list []*stockv1.Policy) error {
	record := map[string]any{"policies": cli.Each(list, policyJSON)}
	return cli.Write(cmd, record, func(w io.Writer) error { return printPolicies(w, list) })
}

func policiesSetCommand(o *cli.Operator) *cobra.Command {
	q, p := &policyFlags{}, &stockv1.Policy{}
	var dryRun bool
	cmd := cli.Command("set", func(cmd *cobra.Command, _ []string) error {
		class, err := q.of(o, cmd)
		if err != nil {
			return err
		}
		p.Class = class
		if p.GetHigh() == 0 {
			p.High = p.GetLow()
		}
		if p.GetLow() == 0 || p.GetHigh() < p.GetLow() {
			return rpc.Errorf(rpc.Invalid, "write two levels, such as --low 10000 --high 50000", "--low %d --high %d", p.GetLow(), p.GetHigh())
		}
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			if dryRun {
				return replaces(o, ctx, cmd, c, p)
			}
			r, err := c.Stock.SetPolicy(ctx, &stockv1.SetPolicyRequest{Policy: p})
			if err != nil {
				return err
			}
			return writePolicies(o, cmd, []*stockv1.Policy{r.GetPolicy()})
		})
	})
	q.flags(o, cmd)
	f := cmd.Flags()
	f.Uint64Var(&p.Epoch, "epoch", 0, "epoch of keys (default: always the newest active epoch for triples, or for masks the newest threshold epoch that the quorum holds)")
	f.Uint64Var(&p.Low, "low", 0, "make more below this number")
	f.Uint64Var(&p.High, "high", 0, "make up to this number (default: as --low)")
	f.Uint64Var(&p.Batch, "batch", 0, "tuples or masks per job")
	f.Uint32Var(&p.Priority, "priority", 0, "classes of higher priority come first; 0 to 100")
	f.BoolVar(&p.Paused, "paused", false, "make no jobs until the policy is set again without this flag")
	cli.AcceptFormerFlags(cmd)
	f.Uint32Var(&p.Dim, "block", 0, "block dimension of matrices (default: the cheapest)")
	f.BoolVar(&dryRun, "dry-run", false, "show the old and the new policy without setting it")
	_ = cmd.MarkFlagRequired("low")
	_ = cmd.MarkFlagRequired("batch")
	return cmd
}

// replaces shows the policy that would be set, and the policy that it would replace.
func replaces(o *cli.Operator, ctx context.Context, cmd *cobra.Command, c *cli.Coordinator, p *stockv1.Policy) error {
	old, err := policy(c, ctx, p)
	if err != nil {
		return err
	}
	list := []*stockv1.Policy{p}
	if old != nil {
		list = append(list, old)
		fmt.Fprintln(cmd.ErrOrStderr(), "the first policy would replace the second:")
	} else {
		fmt.Fprintln(cmd.ErrOrStderr(), "this policy would be new:")
	}
	return writePolicies(o, cmd, list)
}

// policy returns the policy of the same class and epoch, or nil.
func policy(c *cli.Coordinator, ctx context.Context, p *stockv1.Policy) (*stockv1.Policy, error) {
	r, err := c.Stock.ListPolicies(ctx, &stockv1.ListPoliciesRequest{})
	for _, x := range r.GetPolicies() {
		if x.GetEpoch() == p.GetEpoch() && proto.Equal(x.GetClass(), p.GetClass()) {
			return x, nil
		}
	}
	return nil, err
}

func policiesDeleteCommand(o *cli.Operator) *cobra.Command {
	q := &policyFlags{}
	var epoch uint64
	var dryRun bool
	cmd := cli.Command("delete", func(cmd *cobra.Command, _ []string) error {
		class, err := q.of(o, cmd)
		if err != nil {
			return err
		}
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			old, err := policy(c, ctx, &stockv1.Policy{Class: class, Epoch: epoch})
			if err != nil {
				return err
			}
			if old == nil {
				return rpc.Errorf(rpc.NotFound, "`lodge stock policies list` lists the policies", "there is no policy of %s for %s", cli.ClassText(class), epochText(epoch))
			}
			if dryRun {
				fmt.Fprintln(cmd.ErrOrStderr(), "this policy would be deleted:")
			} else if _, err := c.Stock.DeletePolicy(ctx, &stockv1.DeletePolicyRequest{Class: class, Epoch: epoch}); err != nil {
				return err
			}
			return writePolicies(o, cmd, []*stockv1.Policy{old})
		})
	})
	q.flags(o, cmd)
	cmd.Flags().Uint64Var(&epoch, "epoch", 0, "epoch of the policy")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the policy without deleting it")
	return cmd
}

func printPolicies(w io.Writer, list []*stockv1.Policy) error {
	return cli.PrintTable(w, "no policies", "KIND\tFIELD\tPARAMS\tTENANT\tEPOCH\tLOW\tHIGH\tBATCH\tPRIORITY\tSTATE", list, func(p *stockv1.Policy) []any {
		c, epoch, state := p.GetClass(), "newest", "active"
		if p.GetEpoch() > 0 {
			epoch = fmt.Sprint(p.GetEpoch())
		}
		if p.GetPaused() {
			state = "paused"
		}
		return []any{cli.ClassText(c), c.GetField(), c.GetParams(), c.GetTenant(), epoch, p.GetLow(), p.GetHigh(), p.GetBatch(),
			p.GetPriority(), state}
	})
}

type PolicyRecord struct {
	cli.ClassRecord
	Epoch    uint64 `json:"epoch"` // 0 means the newest
	Low      uint64 `json:"low"`
	High     uint64 `json:"high"`
	Batch    uint64 `json:"batch"`
	Priority uint32 `json:"priority"`
	Paused   bool   `json:"paused"`
	Dim      uint32 `json:"dim,omitempty"`
}

func policyJSON(p *stockv1.Policy) PolicyRecord {
	return PolicyRecord{
		ClassRecord: cli.ClassJSON(p.GetClass()), Epoch: p.GetEpoch(), Low: p.GetLow(), High: p.GetHigh(), Batch: p.GetBatch(), Priority: p.GetPriority(),
		Paused: p.GetPaused(), Dim: p.GetDim(),
	}
}
