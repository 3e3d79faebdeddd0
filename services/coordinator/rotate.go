package coordinator

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/coordinator/stock"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// A rotation replaces an epoch: a job makes the successor, the stock's policies move to the
// successor, and the parties drain the old epoch. The progress is durable before the next step,
// every step is idempotent, and the job has its own idempotency key. A rotation therefore continues
// after a restart of any process. The coordinator erases no keys: the parties' clients do that.

const (
	rotationMaking    = coordinatorv1.RotationState_ROTATION_STATE_MAKING
	rotationMoving    = coordinatorv1.RotationState_ROTATION_STATE_MOVING
	rotationCompleted = coordinatorv1.RotationState_ROTATION_STATE_COMPLETED
	rotationFailed    = coordinatorv1.RotationState_ROTATION_STATE_FAILED
)

// proved is the value of a request that demands proved keys.
const proved = "proved"

// rotations holds the rotations that this coordinator remembers.
type rotations struct {
	mu   sync.Mutex
	by   map[uint64]*coordinatorv1.Rotation // by the replaced epoch; a change replaces the message
	runs map[uint64]bool
	wake chan struct{}
}

func newRotations() *rotations {
	return &rotations{by: map[uint64]*coordinatorv1.Rotation{}, runs: map[uint64]bool{}, wake: make(chan struct{}, 1)}
}

// of returns the rotation of an epoch, or nil.
func (r *rotations) of(epoch uint64) *coordinatorv1.Rotation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[epoch]
}

// jobKeyOf returns the idempotency key of a rotation's job. It cannot collide with a client's key:
// that begins with the client's name, which cannot contain this character.
func jobKeyOf(r *coordinatorv1.Rotation) string {
	return fmt.Sprintf("/rotate/%d/%d", r.GetEpoch(), r.GetAttempt())
}

// RotateKeys implements the service.
func (c *Coordinator) RotateKeys(ctx context.Context, q *coordinatorv1.RotateKeysRequest) (*coordinatorv1.RotateKeysResponse, error) {
	caller, _ := rpc.Caller(ctx)
	//lodge:check coordinator/rotate/permission [run=TestRotateRefuses] a client without permission
	//  moves policies to new keys
	if !caller.May(config.PermPolicy) {
		return nil, rpc.Errorf(rpc.Forbidden, "add the permission to this client in the coordinator's configuration",
			"client %s lacks the permission %q: a rotation moves policies", caller.Name, config.PermPolicy)
	}
	//lodge:check coordinator/rotate-tenants run=TestRotationNeedsEveryTenant one tenant's client drains an epoch that all tenants use
	if err := caller.CheckShared(fmt.Sprintf("epoch %d", q.GetEpoch()), c.file.Tenants()); err != nil {
		return nil, err
	}
	//lodge:check coordinator/rotate/word [run=TestRotateRefuses] an unknown security mode is
	//  ignored
	if s := q.GetSecurity(); s != "" && s != proved {
		return nil, rpc.Errorf(rpc.Invalid, "write proved, or omit the field", "security %.20q", s)
	}
	if r, err := c.rotation(q); r != nil || err != nil {
		return &coordinatorv1.RotateKeysResponse{Rotation: r}, err
	}
	known, err := c.known(ctx, q.GetEpoch())
	if err != nil {
		return nil, err
	}
	r := &coordinatorv1.Rotation{Epoch: q.GetEpoch(), State: rotationMaking, Request: q, Params: known.GetParams(), Attempt: 1,
		Created: timestamppb.Now(), SubmittedBy: caller.Name}
	keys := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: known.GetParams(), Dim: known.GetDim(), Purpose: known.GetPurpose()}
	if q.GetParams() != "" {
		keys.Params = q.GetParams()
	}
	if q.GetDim() != 0 {
		keys.Dim = q.GetDim()
	}
	//lodge:check coordinator/rotate/valid [run=TestRotateRefuses] keys are rotated to a parameter
	//  set that is not pinned
	if err := c.check(keys); err != nil {
		return nil, err
	}
	r, err = c.beginRotation(r, keys)
	return &coordinatorv1.RotateKeysResponse{Rotation: r}, err
}

// rotation returns the recorded rotation that a request refers to, or nil if a new one must begin.
func (c *Coordinator) rotation(q *coordinatorv1.RotateKeysRequest) (*coordinatorv1.Rotation, error) {
	r := c.rotations.of(q.GetEpoch())
	switch {
	case r == nil || r.GetState() == rotationFailed:
		return nil, nil
	case proto.Equal(r.GetRequest(), q):
		return r, nil
	case r.GetState() == rotationCompleted:
		//lodge:check coordinator/rotate/once [return=nil, nil] [run=TestRotate$] an epoch is
		//  replaced twice
		return nil, rpc.Errorf(rpc.Conflict, fmt.Sprintf("rotate epoch %d", r.GetSuccessor()), "epoch %d has already replaced epoch %d with the requested keys",
			r.GetSuccessor(), q.GetEpoch())
	}
	return nil, rpc.Errorf(rpc.Conflict, "repeat the same request, or wait until the rotation ends", "epoch %d is being replaced by a rotation with a different request", q.GetEpoch())
}

// known returns an epoch as reported by the parties that have it.
func (c *Coordinator) known(ctx context.Context, epoch uint64) (*keygenv1.Epoch, error) {
	all, away := c.askEpochs(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(away) > 0 {
		return nil, rpc.Errorf(rpc.Unavailable, "try again when all parties can be reached", "party %s did not respond to the request for its epochs", away[0])
	}
	const next = "`lodge keys list` lists the epochs"
	var found, serves *keygenv1.Epoch
	for _, e := range all {
		x := e[epoch]
		switch {
		case x == nil:
			continue // a party that joined later
		case x.GetState() == keygenv1.EpochState_EPOCH_STATE_LOCKED:
			return nil, rpc.Errorf(rpc.Conflict, "wait until the job that makes it is complete", "epoch %d is not active", epoch)
		case found != nil && (found.GetParams() != x.GetParams() || found.GetPurpose() != x.GetPurpose() || found.GetDim() != x.GetDim() ||
			!bytes.Equal(found.GetDigest(), x.GetDigest())): // a party joined with the epochs of another cluster
			return nil, rpc.Errorf(rpc.Conflict, "compare the parties' stores; `lodge jobs submit --kind keys` makes an epoch at all parties",
				"the parties differ about epoch %d", epoch)
		case x.GetState() != keygenv1.EpochState_EPOCH_STATE_RETIRED:
			serves = x
		}
		found = x
	}
	switch {
	case found == nil:
		return nil, rpc.Errorf(rpc.NotFound, next, "no epoch %d at any party", epoch)
	case serves == nil:
		return nil, rpc.Errorf(rpc.Burnt, "`lodge jobs submit --kind keys` makes one", "epoch %d is retired", epoch)
	}
	return serves, nil
}

// askEpochs returns the epochs that each party reports, and the names of the parties that do not
// respond.
func (c *Coordinator) askEpochs(ctx context.Context) (all []map[uint64]*keygenv1.Epoch, away []string) {
	ctx, cancel := context.WithTimeout(ctx, epochTime)
	defer cancel()
	all = make([]map[uint64]*keygenv1.Epoch, len(c.parties))
	var wg sync.WaitGroup
	for i, p := range c.parties {
		wg.Go(func() {
			r, err := keygenv1.NewKeygenServiceClient(p.conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{}, waitForReady)
			if err != nil {
				return
			}
			all[i] = map[uint64]*keygenv1.Epoch{}
			for _, e := range r.GetEpochs() {
				all[i][e.GetEpoch()] = e
			}
		})
	}
	wg.Wait()
	for i, p := range c.parties {
		if all[i] == nil {
			away = append(away, p.name)
		}
	}
	return all, away
}

// ListEpochs implements the service.
func (c *Coordinator) ListEpochs(ctx context.Context, _ *coordinatorv1.ListEpochsRequest) (*coordinatorv1.ListEpochsResponse, error) {
	all, away := c.askEpochs(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	by := map[uint64]*coordinatorv1.ClusterEpoch{}
	out := &coordinatorv1.ListEpochsResponse{Away: away}
	for i, p := range c.parties {
		for id, e := range all[i] {
			if by[id] == nil {
				by[id] = &coordinatorv1.ClusterEpoch{Epoch: id, Rotation: c.rotations.of(id)}
				out.Epochs = append(out.Epochs, by[id])
			}
			by[id].Parties = append(by[id].Parties, &coordinatorv1.PartyEpoch{Party: uint32(p.index), Name: p.name, Epoch: e})
		}
	}
	slices.SortFunc(out.Epochs, func(a, b *coordinatorv1.ClusterEpoch) int { return cmp.Compare(a.GetEpoch(), b.GetEpoch()) })
	return out, nil
}

// beginRotation records a rotation, with a new attempt if one failed, and submits its job.
func (c *Coordinator) beginRotation(r *coordinatorv1.Rotation, keys *coordinatorv1.JobRequest) (*coordinatorv1.Rotation, error) {
	c.rotations.mu.Lock()
	defer c.rotations.mu.Unlock()
	if old := c.rotations.by[r.GetEpoch()]; old != nil {
		if old.GetState() != rotationFailed {
			return old, nil // another request was faster
		}
		r.Attempt = old.GetAttempt() + 1
	}
	e, err := c.add(keys, jobKeyOf(r), r.GetSubmittedBy())
	if err != nil {
		return nil, err
	}
	r.JobId = e.job.GetId()
	if err := c.records.putRotation(r); err != nil { // a repeated request finds the job by its key
		return nil, err
	}
	c.rotations.by[r.GetEpoch()] = r
	select {
	case c.rotations.wake <- struct{}{}:
	default:
	}
	return r, nil
}

// updateRotation changes a rotation. The change is durable before it is visible, unless only the
// reason changes.
func (c *Coordinator) updateRotation(epoch uint64, change func(*coordinatorv1.Rotation)) (*coordinatorv1.Rotation, error) {
	c.rotations.mu.Lock()
	defer c.rotations.mu.Unlock()
	old := c.rotations.by[epoch]
	r := proto.CloneOf(old)
	change(r)
	same := proto.CloneOf(old)
	if same.Reason = r.GetReason(); !proto.Equal(same, r) {
		if err := c.records.putRotation(r); err != nil {
			c.log.Error("recording a rotation", "epoch", epoch, "error", err)
			return old, err
		}
	}
	c.rotations.by[epoch] = r
	return r, nil
}

// keepRotations advances all rotations to their ends, until ctx is done.
func (c *Coordinator) keepRotations(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c.rotations.mu.Lock()
		for epoch, r := range c.rotations.by {
			if r.GetState() >= rotationCompleted || c.rotations.runs[epoch] {
				continue
			}
			c.rotations.runs[epoch] = true
			wg.Go(func() {
				c.rotate(ctx, epoch)
				c.rotations.mu.Lock()
				defer c.rotations.mu.Unlock()
				delete(c.rotations.runs, epoch)
			})
		}
		c.rotations.mu.Unlock()
		select {
		case <-c.rotations.wake:
		case <-ctx.Done():
			return
		}
	}
}

// rotate advances one rotation to its end, or until ctx is done.
func (c *Coordinator) rotate(ctx context.Context, epoch uint64) {
	for wait := c.timing.retry; ctx.Err() == nil; wait = min(2*wait, maxRetry) {
		r := c.rotations.of(epoch)
		var err error
		switch r.GetState() {
		case rotationMaking:
			err = c.awaitKeys(ctx, r)
		case rotationMoving:
			err = c.moveTo(ctx, r)
		default:
			c.log.Info("rotation of keys has ended", "epoch", epoch, "state", r.GetState().String(), "successor", r.GetSuccessor(), "reason", r.GetReason())
			return
		}
		if err == nil {
			continue
		}
		_, _ = c.updateRotation(epoch, func(r *coordinatorv1.Rotation) { r.Reason = rpc.FromError(err).What })
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// awaitKeys waits for a rotation's job. If the job ended because the coordinator stopped, awaitKeys
// submits another.
func (c *Coordinator) awaitKeys(ctx context.Context, r *coordinatorv1.Rotation) error {
	e, err := c.find(r.GetJobId())
	if err != nil {
		return c.failRotation(r, "the record of its job is missing")
	}
	j, changed := c.snapshot(e)
	for !job.Final(j.GetState()) {
		select {
		case <-changed:
			j, changed = c.snapshot(e)
		case <-ctx.Done():
			return errStopping
		}
	}
	switch {
	case interrupted(j):
		again := proto.CloneOf(r)
		again.Attempt++
		if e, err = c.add(j.GetRequest(), jobKeyOf(again), r.GetSubmittedBy()); err != nil {
			return err
		}
		_, err = c.updateRotation(r.GetEpoch(), func(x *coordinatorv1.Rotation) { x.Attempt, x.JobId, x.Reason = again.GetAttempt(), e.job.GetId(), "" })
		return err
	case j.GetState() != completed:
		return c.failRotation(r, fmt.Sprintf("job %s: %s", j.GetId(), j.GetReason()))
	case r.GetRequest().GetSecurity() == proved && !allProved(j):
		return c.failRotation(r, fmt.Sprintf("the keys of epoch %d are not proved; no policy has moved to them", j.GetEpoch()))
	}
	_, err = c.updateRotation(r.GetEpoch(), func(x *coordinatorv1.Rotation) { x.State, x.Successor, x.Reason = rotationMoving, j.GetEpoch(), "" })
	return err
}

func allProved(j *coordinatorv1.Job) bool {
	return !slices.ContainsFunc(j.GetParties(), func(p *coordinatorv1.PartyProgress) bool { return p.GetStatus().GetKeygenSecurity() != proved })
}

func (c *Coordinator) failRotation(r *coordinatorv1.Rotation, why string) error {
	_, err := c.updateRotation(r.GetEpoch(), func(x *coordinatorv1.Rotation) { x.State, x.Reason, x.Ended = rotationFailed, why, timestamppb.Now() })
	return err
}

// moveTo moves policies to the successor and then has all parties drain the old epoch.
func (c *Coordinator) moveTo(ctx context.Context, r *coordinatorv1.Rotation) error {
	e, err := c.find(r.GetJobId())
	if err != nil {
		return c.failRotation(r, "the record of its job is missing")
	}
	all, away := c.askEpochs(ctx)
	if len(away) > 0 {
		return rpc.Errorf(rpc.Unavailable, "", "party %s did not respond to the request for its epochs", away[0])
	}
	if why := c.unfit(all, r.GetSuccessor()); why != "" {
		return c.failRotation(r, why)
	}
	if e.request.GetPurpose() == jobv1.Purpose_PURPOSE_TRIPLES {
		if err := c.movePolicies(all, r, e.request.GetParams()); err != nil {
			return err
		}
	}
	errs := make([]error, len(c.parties))
	var wg sync.WaitGroup
	for i, p := range c.parties {
		wg.Go(func() { errs[i] = c.drain(ctx, p, r) })
	}
	wg.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
		case rpc.FromError(err).Code == rpc.Invalid: // the successor no longer exists
			return c.failRotation(r, rpc.FromError(err).What)
		default:
			return err
		}
	}
	_, err = c.updateRotation(r.GetEpoch(), func(x *coordinatorv1.Rotation) { x.State, x.Reason, x.Ended = rotationCompleted, "", timestamppb.Now() })
	return err
}

// unfit returns why an epoch cannot replace another, according to the parties' reports: the roster
// may have changed since the epoch was made. It returns the empty string if the epoch can.
func (c *Coordinator) unfit(all []map[uint64]*keygenv1.Epoch, successor uint64) string {
	for i, p := range c.parties {
		switch x := all[i][successor]; {
		case x == nil:
			return fmt.Sprintf("party %s has no epoch %d", p.name, successor)
		case x.GetState() != keygenv1.EpochState_EPOCH_STATE_ACTIVE:
			return fmt.Sprintf("epoch %d is not active at party %s", successor, p.name)
		case x.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_SAME:
			return fmt.Sprintf("epoch %d was made under another roster than that of party %s", successor, p.name)
		}
	}
	return ""
}

// movePolicies moves the policies of the old epoch. If the parameter set changes and the old epoch
// is the newest of its set, it also moves the policies that name the newest epoch.
func (c *Coordinator) movePolicies(all []map[uint64]*keygenv1.Epoch, r *coordinatorv1.Rotation, params string) error {
	newest := true
	for id, e := range all[0] {
		newer := id > r.GetEpoch() && id != r.GetSuccessor() && e.GetParams() == r.GetParams() && e.GetPurpose() == jobv1.Purpose_PURPOSE_TRIPLES
		newest = newest && !(newer && !slices.ContainsFunc(all, func(at map[uint64]*keygenv1.Epoch) bool {
			return at[id].GetState() != keygenv1.EpochState_EPOCH_STATE_ACTIVE
		}))
	}
	n, err := c.stock.MovePolicies(stock.Keys{Epoch: r.GetEpoch(), Params: r.GetParams()}, stock.Keys{Epoch: r.GetSuccessor(), Params: params}, newest)
	if err != nil || n == 0 {
		return err
	}
	_, err = c.updateRotation(r.GetEpoch(), func(x *coordinatorv1.Rotation) { x.Policies += uint32(n) })
	return err
}

// drain makes a party drain the old epoch. A party that never had the epoch, or has retired it,
// makes no tuples under it and is skipped.
func (c *Coordinator) drain(ctx context.Context, p *member, r *coordinatorv1.Rotation) error {
	call, stop := context.WithTimeout(ctx, c.timing.call)
	defer stop()
	_, err := keygenv1.NewKeygenServiceClient(p.conn).DrainEpoch(call, &keygenv1.DrainEpochRequest{Epoch: r.GetEpoch(), Successor: r.GetSuccessor(),
		Reason: fmt.Sprintf("epoch %d replaces it", r.GetSuccessor())})
	said := rpc.FromError(err)
	if said == nil || said.Code == rpc.NotFound || said.Code == rpc.Burnt {
		return nil
	}
	return rpc.Errorf(said.Code, said.Next, "party %d (%s) must drain epoch %d: %s", p.index, p.name, r.GetEpoch(), said.What)
}
