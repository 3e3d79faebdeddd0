package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/rpc"
)

const (
	pending    = jobv1.JobState_JOB_STATE_PENDING
	preparing  = jobv1.JobState_JOB_STATE_PREPARING
	activating = jobv1.JobState_JOB_STATE_ACTIVATING
	completed  = jobv1.JobState_JOB_STATE_COMPLETED
	failed     = jobv1.JobState_JOB_STATE_FAILED
	cancelled  = jobv1.JobState_JOB_STATE_CANCELLED
	timedOut   = jobv1.JobState_JOB_STATE_TIMED_OUT
)

// spec is what every party is asked, in the same words.
func (c *Coordinator) spec(j *coordinatorv1.Job, deadline time.Time) *jobv1.SessionSpec {
	q := j.GetRequest()
	hash, _ := config.Pin(c.file.Params, q.GetParams())
	roster := c.file.Roster.Hash()
	protocol := jobv1.Protocol_PROTOCOL_TRIPLES
	switch q.GetKind() {
	case jobv1.Kind_KIND_KEYS:
		protocol = jobv1.Protocol_PROTOCOL_KEYGEN
	case jobv1.Kind_KIND_PROOF:
		protocol = jobv1.Protocol_PROTOCOL_POPK
	}
	return &jobv1.SessionSpec{
		Ref: &jobv1.SessionRef{JobId: j.GetId(), Ordinal: j.GetOrdinal()}, Protocol: protocol, ProtocolVersion: job.ProtocolVersion,
		Params: q.GetParams(), ParamsHash: hash[:], RosterHash: roster[:], Field: q.GetField(), Kind: q.GetKind(), Dim: q.GetDim(),
		Shape: q.GetShape(), Count: q.GetCount(), Epoch: j.GetEpoch(), Purpose: q.GetPurpose(), Tenant: q.GetTenant(),
		Deadline: timestamppb.New(deadline),
	}
}

// run leads one job to its end, or goes on where an earlier process stopped.
func (c *Coordinator) run(ctx context.Context, e *entry) {
	j, _ := c.snapshot(e)
	switch j.GetState() {
	case pending:
	case activating:
		c.activate(ctx, e)
		return
	default: // an earlier process stopped in the middle
		c.cancelAll(ctx, j, "the coordinator restarted")
		c.end(e, failed, &jobv1.Failure{Outcome: "internal", Reason: "the coordinator restarted in the middle of the job; submit it again"})
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.Duration(c.file.JobTimeout)
	if t := j.GetRequest().GetTimeout().AsDuration(); t > 0 {
		timeout = min(timeout, t)
	}
	deadline := time.Now().Add(timeout)
	ctx, stop := context.WithDeadline(ctx, deadline)
	defer stop()
	c.mu.Lock()
	e.cancel = cancel
	if e.stop != "" {
		cancel(errors.New(e.stop))
	}
	c.mu.Unlock()

	last, err := c.lastEpoch(ctx) // also finds out early which party cannot be reached
	if err != nil {
		c.fail(ctx, e, err)
		return
	}
	epoch := j.GetRequest().GetEpoch()
	if epoch == 0 {
		epoch = last + 1
	}
	err = c.update(e, func(j *coordinatorv1.Job) {
		j.State, j.Ordinal, j.Epoch, j.Started = preparing, 1, epoch, timestamppb.Now()
		for _, p := range c.parties {
			j.Parties = append(j.Parties, &coordinatorv1.PartyProgress{Party: uint32(p.index), Name: p.name, Reachable: true})
		}
	})
	if err == nil {
		err = c.sessions(ctx, e, deadline)
	}
	if err != nil {
		c.fail(ctx, e, err)
		return
	}
	c.activate(context.WithoutCancel(ctx), e)
}

// lastEpoch is the highest epoch that any party knows. It also cancels what failed jobs left behind.
func (c *Coordinator) lastEpoch(ctx context.Context) (uint64, error) {
	ctx, stop := context.WithTimeout(ctx, startTimeout)
	defer stop()
	var last uint64
	for _, p := range c.parties {
		n, err := p.lastEpoch(ctx)
		if err != nil {
			return 0, &partyError{p, err}
		}
		last = max(last, n)
		if err := p.sweep(ctx); err != nil {
			c.log.Warn("cancelling what earlier jobs left", "party", p.name, "error", err)
		}
	}
	return last, nil
}

// partyError is an error of a call to a party.
type partyError struct {
	*member
	err error
}

func (e *partyError) Error() string {
	return fmt.Sprintf("party %d (%s): %s", e.index, e.name, rpc.FromError(e.err).What)
}
func (e *partyError) Unwrap() error { return e.err }

// sessionFailed is the failure that a party reports.
type sessionFailed struct {
	state   jobv1.JobState
	failure *jobv1.Failure
}

func (e *sessionFailed) Error() string { return e.failure.GetReason() }

// sessions starts the job's session everywhere and watches until all parties have a result, the same one.
func (c *Coordinator) sessions(ctx context.Context, e *entry, deadline time.Time) error {
	j, _ := c.snapshot(e)
	spec := c.spec(j, deadline)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	results := make([]error, len(c.parties))
	for i, p := range c.parties {
		wg.Go(func() {
			if results[i] = c.follow(ctx, e, p, spec); results[i] != nil {
				cancel(results[i])
			}
		})
	}
	wg.Wait()
	if err := worst(results); err != nil {
		return err
	}
	j, _ = c.snapshot(e)
	first := j.GetParties()[0].GetStatus()
	for _, p := range j.GetParties()[1:] {
		if !bytes.Equal(p.GetStatus().GetDigest(), first.GetDigest()) {
			return fmt.Errorf("parties %d and %d report different results", j.GetParties()[0].GetParty(), p.GetParty())
		}
	}
	return c.update(e, func(j *coordinatorv1.Job) {
		j.State, j.Digest, j.Epoch, j.BatchId, j.Reason = activating, first.GetDigest(), first.GetEpoch(), first.GetBatchId(), "activating"
	})
}

// gone reports whether a party says that it has no such session.
func gone(err error) bool {
	e := rpc.FromError(err)
	return e != nil && e.Code == rpc.NotFound
}

// worst picks the error that says most: a named blame before other failures, and those before consequences.
func worst(errs []error) error {
	rank := func(err error) int {
		var f *sessionFailed
		switch {
		case err == nil:
			return 0
		case errors.Is(err, context.Canceled):
			return 1
		case !errors.As(err, &f):
			return 4
		case f.failure.GetOutcome() == "blame":
			return 6
		case f.failure.GetOutcome() == "abort":
			return 5
		case f.failure.GetOutcome() == "peer_abort":
			return 2
		}
		return 3
	}
	var out error
	for _, err := range errs {
		if rank(err) > rank(out) {
			out = err
		}
	}
	return out
}

// follow starts the session at one party and copies its status until it has a result.
func (c *Coordinator) follow(ctx context.Context, e *entry, p *member, spec *jobv1.SessionSpec) error {
	call, stop := context.WithTimeout(ctx, startTimeout)
	_, err := p.session(spec.GetProtocol()).start(call, spec)
	stop()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &partyError{p, err}
	}
	lost := 0
	for {
		var last *jobv1.SessionStatus
		err := p.session(spec.GetProtocol()).watch(ctx, spec.GetRef(), func(st *jobv1.SessionStatus) bool {
			last, lost = st, 0
			c.observe(e, p, st)
			return st.GetState() < activating
		})
		switch {
		case last != nil && job.Final(last.GetState()) && last.GetState() != completed:
			return &sessionFailed{last.GetState(), last.GetFailure()}
		case last.GetState() >= activating:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if lost++; lost > 3 || gone(err) {
			return &partyError{p, fmt.Errorf("its session is gone: %w", err)}
		}
		c.unreachable(e, p)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// observe copies a party's status into the job.
func (c *Coordinator) observe(e *entry, p *member, st *jobv1.SessionStatus) {
	_ = c.update(e, func(j *coordinatorv1.Job) {
		j.Parties[p.index].Status, j.Parties[p.index].Reachable = st, true
		state := activating - 1
		for _, x := range j.Parties {
			state = min(state, max(preparing, x.GetStatus().GetState()))
		}
		if job.MayFollow(j.State, state) {
			j.State = state
		}
		j.Reason = c.waits(j.Parties)
	})
}

func (c *Coordinator) unreachable(e *entry, p *member) {
	_ = c.update(e, func(j *coordinatorv1.Job) {
		j.Parties[p.index].Reachable = false
		j.Reason = c.waits(j.Parties)
	})
}

// activate unlocks the result at every party. It does not give up: some may have unlocked theirs.
func (c *Coordinator) activate(ctx context.Context, e *entry) {
	j, _ := c.snapshot(e)
	spec := c.spec(j, time.Now())
	for _, p := range c.parties {
		for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			call, stop := context.WithTimeout(ctx, callTimeout)
			st, err := p.session(spec.GetProtocol()).activate(call, spec.GetRef(), j.GetDigest())
			stop()
			if err == nil {
				_ = c.update(e, func(j *coordinatorv1.Job) { j.Parties[p.index].Status = st })
				break
			}
			if gone(err) && c.holds(ctx, p, j) {
				break // activated by an earlier process of the coordinator, before the party restarted
			}
			_ = c.update(e, func(j *coordinatorv1.Job) {
				j.Reason = fmt.Sprintf("activating: party %d (%s): %v", p.index, p.name, err)
			})
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
	}
	c.end(e, completed, nil)
}

// cancelAll ends the job's sessions at all parties that can be reached.
func (c *Coordinator) cancelAll(ctx context.Context, j *coordinatorv1.Job, reason string) {
	spec := c.spec(j, time.Now())
	var wg sync.WaitGroup
	for _, p := range c.parties {
		wg.Go(func() {
			call, stop := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer stop()
			if err := p.session(spec.GetProtocol()).cancel(call, spec.GetRef(), reason); err != nil && !gone(err) {
				c.log.Warn("cancelling a session", "job", j.GetId(), "party", p.name, "error", err)
			}
		})
	}
	wg.Wait()
}

// fail ends a job without a result.
func (c *Coordinator) fail(ctx context.Context, e *entry, err error) {
	j, _ := c.snapshot(e)
	if j.GetOrdinal() > 0 {
		c.cancelAll(ctx, j, "the job failed: "+err.Error())
	}
	c.mu.Lock()
	stop := e.stop
	c.mu.Unlock()
	var f *sessionFailed
	switch {
	case stop != "":
		c.end(e, cancelled, &jobv1.Failure{Outcome: "cancelled", Reason: stop})
	case errors.As(err, &f):
		c.end(e, f.state, f.failure)
	case ctx.Err() == context.DeadlineExceeded:
		c.end(e, timedOut, &jobv1.Failure{Outcome: "timeout", Reason: "the job's time is over"})
	default:
		c.end(e, failed, &jobv1.Failure{Outcome: "refused", Reason: err.Error()})
	}
}

func (c *Coordinator) end(e *entry, state jobv1.JobState, f *jobv1.Failure) {
	_ = c.update(e, func(j *coordinatorv1.Job) {
		j.State, j.Failure, j.Reason = state, f, f.GetReason()
	})
}
