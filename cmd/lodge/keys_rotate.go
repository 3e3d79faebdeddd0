package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/engine/params"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// rotating is what `lodge keys rotate` does.
type rotating struct {
	confirmation
	request *coordinatorv1.RotateKeysRequest
	old     string
	ending
}

// oldWays are what may become of the tuples of an epoch that is replaced.
var oldWays = []string{"drain", "revoke"}

func (o *operator) keysRotateCommand() *cobra.Command {
	q := &rotating{request: &coordinatorv1.RotateKeysRequest{}}
	cmd := &cobra.Command{
		Use:   "rotate EPOCH",
		Short: "Replace an epoch by a new one: policies move to it, and the old one drains",
		Long: "Replace an epoch: the coordinator has the parties make a new one, moves the policies of the stock to it, and has the\n" +
			"parties drain the old one, which makes nothing new from then on. Its tuples can be reserved until they are used up, or\n" +
			"--old revoke erases them now; --destroy-old erases the epoch's secrets as well, which `lodge keys destroy` does later.\n" +
			"What erases asks for --yes, and is done at each party as its client with the permission retire.\n\n" +
			"An epoch is replaced once: the same command again, after whatever was in its way, goes on where it was.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(o.completeKeys),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.request.Epoch, err = epochArgument(args[0]); err != nil {
				return err
			}
			q.epoch, q.revoke = q.request.Epoch, q.old == "revoke"
			if !slices.Contains(oldWays, q.old) {
				return rpc.Errorf(rpc.Invalid, "write "+strings.Join(oldWays, " or "), "--old %q", q.old)
			}
			return o.rotate(cmd, q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.request.Params, "set", "", "parameter set of the new epoch (default: the same)")
	f.Uint32Var(&q.request.Dim, "dim", 0, "largest block that it serves (default: the same)")
	f.StringVar(&q.request.Security, "security", "", "proved: move to nothing but keys that are proved")
	f.StringVar(&q.old, "old", "drain", "what becomes of the old tuples: drain, so that they can be used up, or revoke, so that they are erased")
	f.BoolVar(&q.destroy, "destroy-old", false, "erase the old epoch's secrets and all under it, at every party")
	f.StringVar(&q.reason, "reason", "rotated", "why, for those who look at the epoch later")
	complete(cmd, "set", paramsWords)
	complete(cmd, "old", words(oldWays))
	complete(cmd, "security", words([]string{params.Proved}))
	q.flags(cmd)
	f.Lookup("yes").Usage = "erase what --old revoke or --destroy-old is to erase; without this nothing is done"
	return cmd
}

// rotationReport is what `lodge keys rotate` writes.
type rotationReport struct {
	rotationRecord
	Old     string    `json:"old"` // drain, revoke or destroy
	Parties []endedAt `json:"parties,omitempty"`
	Keys    *keysPlan `json:"keys,omitempty"`
	DryRun  bool      `json:"dry_run,omitempty"`
}

// keysPlan is the epoch that is to be made.
type keysPlan struct {
	Params         string `json:"params"`
	Dim            uint32 `json:"dim"`
	Purpose        string `json:"purpose"`
	KeygenSecurity string `json:"keygen_security"`
}

func (o *operator) rotate(cmd *cobra.Command, q *rotating) error {
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	plan, found, err := c.plan(cmd.Context(), q)
	if err != nil {
		return c.explain(err)
	}
	var losses []endedAt
	if q.erases() {
		if q.parties, err = o.partyNames(nil); err == nil {
			losses, err = o.preview(cmd, &q.ending)
		}
		if err != nil {
			return err
		}
	}
	if q.erases() || q.dryRun {
		if yes, err := q.before(func() error { return o.showRotation(cmd, q, plan, found, losses) }); !yes {
			return err
		}
	}
	r, err := o.followRotation(cmd, c, q.request)
	if err != nil {
		return err
	}
	q.successor = r.GetSuccessor()
	if q.erases() {
		hold(cmd)
		err = o.run(cmd, &q.ending, losses)
	}
	return errors.Join(o.writeRotation(cmd, q, r, losses), err)
}

func (q *rotating) erases() bool { return q.revoke || q.destroy }

func (q *rotating) way() string {
	if q.destroy {
		return "destroy"
	}
	return q.old
}

// plan is the epoch that a rotation would make, or has made.
func (c *client) plan(ctx context.Context, q *rotating) (*keysPlan, *coordinatorv1.ClusterEpoch, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := c.epochOf(ctx, q.epoch)
	if err != nil {
		return nil, nil, err
	}
	e := found.GetParties()[0].GetEpoch()
	if e.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD {
		return nil, nil, rpc.Errorf(rpc.KeyPurpose, "`lodge keys reshare` gives their secrets new shares, `lodge keys generate` makes others",
			"epoch %d has threshold keys, which no other keys can take the place of", q.epoch)
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
		return nil, nil, rpc.Errorf(rpc.Invalid, "`lodge params list` shows what there is", "%v", err)
	}
	p.KeygenSecurity = set.KeygenSecurity()
	if want := q.request.GetSecurity(); want != "" && want != p.KeygenSecurity {
		return nil, nil, rpc.Errorf(rpc.PassiveKeygen, "name a set whose keys are proved with --set: "+strings.Join(provedSets(), ", "),
			"the keys of %s are %s: it has no room for proofs", p.Params, p.KeygenSecurity)
	}
	return p, found, nil
}

// provedSets are those whose keys are proved, and that a party takes.
func provedSets() (names []string) {
	for _, s := range params.Sets() {
		if s.KeygenSecurity() == params.Proved && !s.Insecure && s.CheckStatSecurity() == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

func (o *operator) showRotation(cmd *cobra.Command, q *rotating, plan *keysPlan, found *coordinatorv1.ClusterEpoch, losses []endedAt) error {
	if o.json {
		record := rotationJSON(found.GetRotation())
		if record == nil {
			record = &rotationRecord{Epoch: q.epoch, State: "new"}
		}
		return writeIndented(cmd.OutOrStdout(), rotationReport{*record, q.way(), losses, plan, true})
	}
	w := cmd.OutOrStdout()
	if r := found.GetRotation(); r.GetSuccessor() != 0 {
		fmt.Fprintf(w, "epoch %d is replaced by epoch %d already (%s)\n", q.epoch, r.GetSuccessor(), rotationState(r))
	} else {
		fmt.Fprintf(w, "this would make an epoch of %s for %s, for blocks of up to %d, whose keys are %s, move policies to it, and drain epoch %d (%s)\n",
			plan.Params, plan.Purpose, plan.Dim, plan.KeygenSecurity, q.epoch, everywhere(found, epochState))
	}
	if q.erases() {
		return printLoss(w, &q.ending, losses)
	}
	return nil
}

// followRotation has the coordinator replace an epoch, or finds that it does, and shows how far it is until it ends.
func (o *operator) followRotation(cmd *cobra.Command, c *client, q *coordinatorv1.RotateKeysRequest) (*coordinatorv1.Rotation, error) {
	p := progressOf(cmd, o.json)
	defer p.Done()
	ask, cancel := context.WithTimeout(cmd.Context(), callTime)
	asked, err := c.RotateKeys(ask, q)
	cancel()
	if err != nil {
		return nil, c.explain(err)
	}
	r, heard := asked.GetRotation(), time.Now()
	for {
		switch r.GetState() {
		case coordinatorv1.RotationState_ROTATION_STATE_COMPLETED:
			return r, nil
		case coordinatorv1.RotationState_ROTATION_STATE_FAILED:
			return nil, rpc.Errorf(rpc.Internal, "see to the cause, and run the same command again", "epoch %d is not replaced: %s", q.GetEpoch(), oneLine(r.GetReason()))
		case coordinatorv1.RotationState_ROTATION_STATE_MAKING:
			// The job may end with the coordinator, which then has another: what the rotation says is what counts.
			_ = c.untilOver(cmd.Context(), p, r.GetJobId(), true, func(j *coordinatorv1.Job) error { p.Job(j); return nil })
		default:
			p.Show(fmt.Sprintf("moving to epoch %d %s", r.GetSuccessor(), oneLine(r.GetReason())), false)
		}
		if cmd.Context().Err() != nil {
			return nil, rpc.Errorf(rpc.Cancelled, "the same command shows it again", "the rotation of epoch %d goes on", q.GetEpoch())
		}
		now, err := c.askRotation(cmd.Context(), q)
		switch {
		case err == nil:
			r, heard = now, time.Now()
		case !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || time.Since(heard) > lostTime:
			return nil, c.explain(err)
		default:
			p.Say("the coordinator cannot be reached; trying again")
		}
		time.Sleep(rotationStep)
	}
}

// rotationStep is between two looks at how far a rotation is.
const rotationStep = 200 * time.Millisecond

// askRotation asks how far a rotation is, and begins none.
func (c *client) askRotation(ctx context.Context, q *coordinatorv1.RotateKeysRequest) (*coordinatorv1.Rotation, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	e, err := c.epochOf(ctx, q.GetEpoch())
	return e.GetRotation(), err
}

func (o *operator) writeRotation(cmd *cobra.Command, q *rotating, r *coordinatorv1.Rotation, ends []endedAt) error {
	if o.json {
		return writeIndented(cmd.OutOrStdout(), rotationReport{rotationRecord: *rotationJSON(r), Old: q.way(), Parties: ends})
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "epoch %d takes the place of epoch %d, and %d policies have moved to it\n", r.GetSuccessor(), r.GetEpoch(), r.GetPolicies())
	if q.erases() {
		return printEnding(w, &q.ending, ends)
	}
	_, err := fmt.Fprintf(w, "epoch %d drains: `lodge keys destroy %d` erases what is secret of it when its tuples are used up\n", r.GetEpoch(), r.GetEpoch())
	return err
}
