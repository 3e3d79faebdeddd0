package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// rotating holds the flags of `lodge keys rotate`.
type rotating struct {
	cli.Confirmation
	request *coordinatorv1.RotateKeysRequest
	old     string
	ending
}

// oldWays lists the possible treatments of the tuples of a replaced epoch.
var oldWays = []string{"drain", "revoke"}

func keysRotateCommand(o *cli.Operator) *cobra.Command {
	q := &rotating{request: &coordinatorv1.RotateKeysRequest{}}
	cmd := cli.EpochCommand("rotate", func(cmd *cobra.Command, epoch uint64, args []string) (err error) {
		q.request.Epoch = epoch
		q.epoch, q.revoke = q.request.Epoch, q.old == "revoke"
		if !slices.Contains(oldWays, q.old) {
			return rpc.Errorf(rpc.Invalid, "write "+strings.Join(oldWays, " or "), "--old %q", q.old)
		}
		return rotate(o, cmd, q)
	}, func() []string { return completeKeys(o) })
	f := cmd.Flags()
	f.StringVar(&q.request.Params, "set", "", "parameter set of the new epoch (default: the same)")
	cli.AcceptFormerFlags(cmd)
	f.Uint32Var(&q.request.Dim, "block", 0, "largest block of the new epoch (default: the same)")
	f.StringVar(&q.request.Security, "security", "", "proved: require key generation with proofs")
	f.StringVar(&q.old, "old", "drain", "treatment of the old tuples: drain, so that they can be used up, or revoke, which erases them")
	f.BoolVar(&q.destroy, "destroy-old", false, "erase the old epoch's secrets and all data under it, at every party")
	f.StringVar(&q.reason, "reason", "rotated", "reason, for later readers")
	cli.Complete(cmd, "set", cli.ParamsWords)
	cli.Complete(cmd, "old", cli.Words(oldWays))
	cli.Complete(cmd, "security", cli.Words([]string{params.Proved}))
	q.Flags(cmd)
	f.Lookup("yes").Usage = "confirm the erasures of --old revoke and --destroy-old; without this flag nothing is changed"
	return cmd
}

// rotationReport is the JSON outcome of `lodge keys rotate`.
type rotationReport struct {
	rotationRecord
	Old     string    `json:"old"` // drain, revoke or destroy
	Parties []endedAt `json:"parties,omitempty"`
	Keys    *keysPlan `json:"keys,omitempty"`
	DryRun  bool      `json:"dry_run,omitempty"`
}

// keysPlan describes the epoch that will be made.
type keysPlan struct {
	Params         string `json:"params"`
	Dim            uint32 `json:"dim"`
	Purpose        string `json:"purpose"`
	KeygenSecurity string `json:"keygen_security"`
}

func rotate(o *cli.Operator, cmd *cobra.Command, q *rotating) error {
	c, err := o.Dial()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	plan, found, err := plan(c, cmd.Context(), q)
	if err != nil {
		return c.Explain(err)
	}
	var losses []endedAt
	if q.erases() {
		if q.parties, err = partyNames(o, nil); err == nil {
			losses, err = preview(o, cmd, &q.ending)
		}
		if err != nil {
			return err
		}
	}
	if q.erases() || q.DryRun {
		if yes, err := q.Before(func() error { return showRotation(o, cmd, q, plan, found, losses) }); !yes {
			return err
		}
	}
	r, err := followRotation(o, cmd, c, q.request)
	if err != nil {
		return err
	}
	q.successor = r.GetSuccessor()
	if q.erases() {
		cli.Hold(cmd)
		err = run(o, cmd, &q.ending, losses)
	}
	return errors.Join(writeRotation(o, cmd, q, r, losses), err)
}

func (q *rotating) erases() bool { return q.revoke || q.destroy }

func (q *rotating) way() string {
	if q.destroy {
		return "destroy"
	}
	return q.old
}

// plan returns the epoch that a rotation would make, or has made.
func plan(c *cli.Coordinator, ctx context.Context, q *rotating) (*keysPlan, *coordinatorv1.ClusterEpoch, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.CallTime)
	defer cancel()
	found, err := epochOf(c, ctx, q.epoch)
	if err != nil {
		return nil, nil, err
	}
	e := found.GetParties()[0].GetEpoch()
	if e.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD {
		return nil, nil, rpc.Errorf(rpc.KeyPurpose, "use `lodge keys reshare` to make new shares, or `lodge keys generate` to make other keys",
			"epoch %d has threshold keys, which cannot be replaced", q.epoch)
	}
	p := &keysPlan{Params: e.GetParams(), Dim: max(1, e.GetDim()), Purpose: job.PurposeName(e.GetPurpose())}
	if q.request.GetParams() != "" {
		p.Params = q.request.GetParams()
	}
	if q.request.GetDim() != 0 {
		p.Dim = q.request.GetDim()
	}
	set, err := params.Lookup(p.Params)
	if err != nil {
		return nil, nil, rpc.Errorf(rpc.Invalid, "`lodge params list` lists the sets", "%v", err)
	}
	p.KeygenSecurity = set.KeygenSecurity()
	if want := q.request.GetSecurity(); want != "" && want != p.KeygenSecurity {
		return nil, nil, rpc.Errorf(rpc.PassiveKeygen, "name a set with proved keys with --set: "+strings.Join(provedSets(), ", "),
			"the keys of %s are %s: its parameters do not allow proofs", p.Params, p.KeygenSecurity)
	}
	return p, found, nil
}

// provedSets returns the sets with proved keys that a party accepts.
func provedSets() (names []string) {
	for _, s := range params.Sets() {
		if s.KeygenSecurity() == params.Proved && !s.Insecure && s.CheckStatSecurity() == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

func showRotation(o *cli.Operator, cmd *cobra.Command, q *rotating, plan *keysPlan, found *coordinatorv1.ClusterEpoch, losses []endedAt) error {
	if cli.JSON(cmd) {
		record := rotationJSON(found.GetRotation())
		if record == nil {
			record = &rotationRecord{Epoch: q.epoch, State: "new"}
		}
		return cli.WriteJSON(cmd.OutOrStdout(), rotationReport{*record, q.way(), losses, plan, true})
	}
	w := cmd.OutOrStdout()
	if r := found.GetRotation(); r.GetSuccessor() != 0 {
		fmt.Fprintf(w, "epoch %d is already replaced by epoch %d (%s)\n", q.epoch, r.GetSuccessor(), cli.Word(r.GetState()))
	} else {
		fmt.Fprintf(w, "this would make an epoch of %s for %s, for blocks of up to %d, whose keys are %s, move policies to it, and drain epoch %d (%s)\n",
			plan.Params, plan.Purpose, plan.Dim, plan.KeygenSecurity, q.epoch, everywhere(found, epochState))
	}
	if q.erases() {
		return printLoss(w, &q.ending, losses)
	}
	return nil
}

// followRotation starts the replacement of an epoch, or finds a running one, and shows its progress
// until it ends.
func followRotation(o *cli.Operator, cmd *cobra.Command, c *cli.Coordinator, q *coordinatorv1.RotateKeysRequest) (*coordinatorv1.Rotation, error) {
	p := cli.ProgressOf(cmd)
	defer p.Done()
	ask, cancel := context.WithTimeout(cmd.Context(), cli.CallTime)
	asked, err := c.RotateKeys(ask, q)
	cancel()
	if err != nil {
		return nil, c.Explain(err)
	}
	r, heard := asked.GetRotation(), time.Now()
	for {
		switch r.GetState() {
		case coordinatorv1.RotationState_ROTATION_STATE_COMPLETED:
			return r, nil
		case coordinatorv1.RotationState_ROTATION_STATE_FAILED:
			return nil, rpc.Errorf(rpc.Internal, "fix the cause, and run the same command again", "epoch %d was not replaced: %s", q.GetEpoch(), cli.OneLine(r.GetReason()))
		case coordinatorv1.RotationState_ROTATION_STATE_MAKING:
			// The job may end with the coordinator, which then starts another. Only the state of
			// the rotation counts.
			_ = c.UntilOver(cmd.Context(), p, r.GetJobId(), true, func(j *coordinatorv1.Job) error { p.Job(j); return nil })
		default:
			p.Show(fmt.Sprintf("moving to epoch %d %s", r.GetSuccessor(), cli.OneLine(r.GetReason())), false)
		}
		if cmd.Context().Err() != nil {
			return nil, rpc.Errorf(rpc.Cancelled, "the same command shows it again", "the rotation of epoch %d is still running", q.GetEpoch())
		}
		now, err := askRotation(c, cmd.Context(), q)
		switch {
		case err == nil:
			r, heard = now, time.Now()
		case !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || time.Since(heard) > cli.LostTime:
			return nil, c.Explain(err)
		default:
			p.Say("the coordinator is unreachable; retrying")
		}
		time.Sleep(rotationStep)
	}
}

// rotationStep is the interval at which the progress of a rotation is requested.
const rotationStep = 200 * time.Millisecond

// askRotation returns the state of a rotation without starting one.
func askRotation(c *cli.Coordinator, ctx context.Context, q *coordinatorv1.RotateKeysRequest) (*coordinatorv1.Rotation, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.CallTime)
	defer cancel()
	e, err := epochOf(c, ctx, q.GetEpoch())
	return e.GetRotation(), err
}

func writeRotation(o *cli.Operator, cmd *cobra.Command, q *rotating, r *coordinatorv1.Rotation, ends []endedAt) error {
	return cli.Write(cmd, rotationReport{rotationRecord: *rotationJSON(r), Old: q.way(), Parties: ends}, func(w io.Writer) error {
		fmt.Fprintf(w, "epoch %d replaces epoch %d, and %d policies have moved to it\n", r.GetSuccessor(), r.GetEpoch(), r.GetPolicies())
		if q.erases() {
			return printEnding(w, &q.ending, ends)
		}
		_, err := fmt.Fprintf(w, "epoch %d drains: when its tuples are used up, `lodge keys destroy %d` erases its secrets\n", r.GetEpoch(), r.GetEpoch())
		return err
	})
}
