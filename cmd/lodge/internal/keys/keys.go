package keys

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// keysCommand returns `lodge keys`, which manages the epochs of a cluster and of one party.
func keysCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("keys", nil)
	o.Flags(cmd)
	for _, sub := range []*cobra.Command{keysListCommand(o), publicKeyCommand(o), retireCommand(o)} {
		o.PartyFlag(sub, "the party, by name or index")
		cmd.AddCommand(sub)
	}
	cmd.AddCommand(keysRotateCommand(o), keysDestroyCommand(o), keysGenerateCommand(o), keysMasksCommand(o),
		keysShowCommand(o), keysFetchCommand(o), keysEncryptCommand(o), keysReshareCommand(o))
	return cmd
}

// keysRecord is the JSON form of an epoch of a cluster.
type keysRecord struct {
	Epoch    uint64             `json:"epoch"`
	Parties  []partyEpochRecord `json:"parties"`
	Rotation *rotationRecord    `json:"rotation,omitempty"`
}

type partyEpochRecord struct {
	Party string `json:"party"`
	epochRecord
}

// rotationRecord is the JSON form of the replacement of an epoch.
type rotationRecord struct {
	Epoch     uint64 `json:"epoch"`
	State     string `json:"state"`
	Successor uint64 `json:"successor,omitempty"`
	Job       string `json:"job"`
	Attempt   uint32 `json:"attempt"`
	Policies  uint32 `json:"policies_moved"`
	Reason    string `json:"reason,omitempty"`
	Created   string `json:"created"`
	Ended     string `json:"ended,omitempty"`
}

func rotationJSON(r *coordinatorv1.Rotation) *rotationRecord {
	if r == nil {
		return nil
	}
	return &rotationRecord{r.GetEpoch(), cli.Word(r.GetState()), r.GetSuccessor(), r.GetJobId(), r.GetAttempt(), r.GetPolicies(), r.GetReason(),
		cli.Time(r.GetCreated()), cli.Time(r.GetEnded())}
}

func keysListCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		if o.Party != "" {
			return listEpochs(o, cmd)
		}
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			r, err := c.ListEpochs(ctx, &coordinatorv1.ListEpochsRequest{})
			if err != nil {
				return err
			}
			return cli.Write(cmd, keysJSON(r), func(w io.Writer) error {
				if len(r.GetAway()) > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "unavailable: %s\n", strings.Join(r.GetAway(), ", "))
				}
				return printKeys(w, r.GetEpochs(), time.Now())
			})
		})
	})
}

type KeysListing struct {
	Epochs []keysRecord `json:"epochs"`
	Away   []string     `json:"away,omitempty"`
}

func keysJSON(r *coordinatorv1.ListEpochsResponse) KeysListing {
	return KeysListing{cli.Each(r.GetEpochs(), func(e *coordinatorv1.ClusterEpoch) keysRecord {
		parties := cli.Each(e.GetParties(), func(p *coordinatorv1.PartyEpoch) partyEpochRecord {
			return partyEpochRecord{p.GetName(), epochJSON(p.GetEpoch())}
		})
		return keysRecord{Epoch: e.GetEpoch(), Parties: parties, Rotation: rotationJSON(e.GetRotation())}
	}), r.GetAway()}
}

func printKeys(w io.Writer, list []*coordinatorv1.ClusterEpoch, now time.Time) error {
	return cli.PrintTable(w, "no epochs; `lodge keys generate --purpose triples` makes one", "EPOCH\tSTATE\tPURPOSE\tPARAMS\tDIM\tKEY GENERATION\tROSTER\tAGE\tREPLACED BY", list, func(x *coordinatorv1.ClusterEpoch) []any {
		e := x.GetParties()[0].GetEpoch()
		return []any{x.GetEpoch(), everywhere(x, epochState), job.PurposeName(e.GetPurpose()), e.GetParams(), block(e), e.GetKeygenSecurity(),
			everywhere(x, standing), now.Sub(e.GetCreated().AsTime()).Round(time.Second), replaced(x)}
	})
}

// block formats the largest block of an epoch. Threshold keys have no block.
func block(e *keygenv1.Epoch) string {
	if e.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD {
		return "-"
	}
	return fmt.Sprint(e.GetDim())
}

// everywhere returns a word about an epoch if it is the same at all parties, and otherwise the word
// of each party.
func everywhere(x *coordinatorv1.ClusterEpoch, word func(*keygenv1.Epoch) string) string {
	var all, each []string
	for _, p := range x.GetParties() {
		w := word(p.GetEpoch())
		each = append(each, p.GetName()+" "+w)
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return strings.Join(each, ", ")
}

// standing names the relation of an epoch to the current roster.
func standing(e *keygenv1.Epoch) string {
	switch e.GetStanding() {
	case keygenv1.RosterStanding_ROSTER_STANDING_SAME:
		return "present"
	case keygenv1.RosterStanding_ROSTER_STANDING_SAME_PARTIES:
		return "former, same parties"
	case keygenv1.RosterStanding_ROSTER_STANDING_OTHER:
		return "former"
	}
	return "-"
}

// replaced describes the replacement of an epoch.
func replaced(x *coordinatorv1.ClusterEpoch) string {
	successor := uint64(0)
	for _, p := range x.GetParties() {
		successor = max(successor, p.GetEpoch().GetSuccessor())
	}
	switch r := x.GetRotation(); {
	case r == nil && successor == 0:
		return "-"
	case r == nil || r.GetState() == coordinatorv1.RotationState_ROTATION_STATE_COMPLETED:
		return fmt.Sprint(max(successor, r.GetSuccessor()))
	case r.GetSuccessor() != 0:
		return fmt.Sprintf("%d (%s)", r.GetSuccessor(), cli.Word(r.GetState()))
	default:
		return cli.Word(r.GetState())
	}
}

// epochOf returns an epoch of the cluster.
func epochOf(c *cli.Coordinator, ctx context.Context, id uint64) (*coordinatorv1.ClusterEpoch, error) {
	r, err := c.ListEpochs(ctx, &coordinatorv1.ListEpochsRequest{})
	if err != nil {
		return nil, err
	}
	for _, e := range r.GetEpochs() {
		if e.GetEpoch() == id {
			return e, nil
		}
	}
	if len(r.GetAway()) > 0 {
		return nil, rpc.Errorf(rpc.Unavailable, "try again when all parties can be reached", "the parties that respond have no epoch %d; %s could not be reached",
			id, strings.Join(r.GetAway(), ", "))
	}
	return nil, rpc.Errorf(rpc.NotFound, "`lodge keys list` lists the epochs", "no party has epoch %d", id)
}

func completeKeys(o *cli.Operator) []string {
	return o.CoordinatorWords(func(ctx context.Context, c *cli.Coordinator) (list []string) {
		r, _ := c.ListEpochs(ctx, &coordinatorv1.ListEpochsRequest{})
		for _, e := range r.GetEpochs() {
			list = append(list, cobra.CompletionWithDesc(fmt.Sprint(e.GetEpoch()), everywhere(e, epochState)))
		}
		return list
	})
}

// at returns a copy of the operator that connects to a party.
func at(o *cli.Operator, party string) *cli.Operator {
	x := *o
	x.Party = party
	return &x
}

// partyNames returns the named parties, or all parties of the roster if none is named.
func partyNames(o *cli.Operator, named []string) ([]string, error) {
	p, err := o.Places()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, m := range p.Roster.Parties {
		all = append(all, m.Name)
	}
	for _, name := range named {
		if !slices.Contains(all, name) {
			return nil, rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(all, ", "), "--party %q", name)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return all, nil
}
