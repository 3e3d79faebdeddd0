package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// timing holds the timeouts of the coordinator.
type timing struct {
	call  time.Duration // a call to a reachable party
	away  time.Duration // how long a party may be unreachable before or during a job
	grace time.Duration // the other parties' reports, after one party's session failed
	late  time.Duration // the parties' own reports, after a job's deadline
	stop  time.Duration // cancelling the sessions of a failed job, and stopping
	retry time.Duration // between attempts; increases when activating
	slow  time.Duration // before a job reports which party it cannot reach
}

var defaultTiming = timing{
	call: 30 * time.Second, grace: 3 * time.Second, late: 5 * time.Second,
	stop: 5 * time.Second, retry: 200 * time.Millisecond, slow: time.Second,
}

// reasonQueued is the reason of a waiting job that no party has received.
const reasonQueued = "waiting for the jobs before it"

// Reasons of jobs that were running when the coordinator stopped.
const (
	reasonRestarted = "the coordinator restarted in the middle of the job; submit it again"
	reasonStopped   = "the coordinator stopped in the middle of the job; submit it again"
)

// interrupted reports whether a job ended because the coordinator stopped or restarted.
func interrupted(j *coordinatorv1.Job) bool {
	why := j.GetFailure().GetReason()
	return why == reasonRestarted || why == reasonStopped
}

// maxAhead limits how far a party's last epoch may be ahead of the coordinator's records, which may
// have been lost. A single report from one party must not exhaust the epoch numbers.
const maxAhead = 1 << 20

// maxRetry bounds the time between attempts to activate.
const maxRetry = 5 * time.Second

var (
	errStopping = rpc.Errorf(rpc.Unavailable, "try again when it is back", "the coordinator is stopping")
	errGaveUp   = rpc.Errorf(rpc.Cancelled, "", "the coordinator gave up")
)

// spec returns the session spec, which is the same for every party.
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
	if q.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD {
		protocol = jobv1.Protocol_PROTOCOL_THRESHOLD
	}
	return &jobv1.SessionSpec{
		Ref: &jobv1.SessionRef{JobId: j.GetId(), Ordinal: j.GetOrdinal()}, Protocol: protocol, ProtocolVersion: job.ProtocolVersion,
		Params: q.GetParams(), ParamsHash: hash[:], RosterHash: roster[:], Field: q.GetField(), Kind: q.GetKind(), Dim: q.GetDim(),
		Shape: q.GetShape(), Count: q.GetCount(), Epoch: j.GetEpoch(), Purpose: q.GetPurpose(), Tenant: q.GetTenant(),
		Deadline: timestamppb.New(deadline), InputParty: q.GetInputParty(), NoSacrifice: q.GetNoSacrifice(),
		Threshold: q.GetThreshold(), Group: q.GetGroup(), Form: q.GetForm(), FromEpoch: q.GetFromEpoch(), FromDigest: q.GetFromDigest(),
		FromThreshold: q.GetFromThreshold(), FromHolders: q.GetFromHolders(), Galois: q.GetGalois(),
	}
}

// advance performs the next step of a job.
func (c *Coordinator) advance(ctx context.Context, e *entry) {
	j, _ := c.snapshot(e)
	switch nextStep(j.GetState()) {
	case stepLead:
		c.lead(ctx, e)
	case stepAbandon:
		c.cancelAll(j, "the coordinator restarted")
		c.end(e, failed, &jobv1.Failure{Outcome: outcomeInternal, Reason: reasonRestarted})
	}
	if j, _ := c.snapshot(e); nextStep(j.GetState()) == stepActivate {
		c.activations.Go(func() {
			c.activate(ctx, e)
			c.kick()
		})
	}
}

// lead runs a job's session until every party has a result. It ends the job if a session fails.
func (c *Coordinator) lead(process context.Context, e *entry) {
	j, _ := c.snapshot(e)
	deadline := c.deadline(e)
	conclude := func(state jobv1.JobState, f *jobv1.Failure) {
		if process.Err() != nil {
			<-c.stopped // closed soon
		}
		c.conclude(e, state, f, deadline)
	}
	ctx, cancel := context.WithCancel(process)
	defer cancel()
	before, release := c.hold(e, cancel)
	defer release()

	epoch, ends := c.reach(ctx, e, deadline)
	if state, f := verdict(ends); f != nil {
		conclude(state, f)
		return
	}
	if j.GetRequest().GetEpoch() != 0 {
		epoch = j.GetRequest().GetEpoch()
	}
	err := c.update(e, func(j *coordinatorv1.Job) { // durable before the first party receives it
		j.State, j.Ordinal, j.Epoch, j.Started = preparing, j.GetOrdinal()+1, epoch, timestamppb.Now()
		for _, p := range c.members(j.GetRequest()) {
			j.Parties = append(j.Parties, &coordinatorv1.PartyProgress{Party: uint32(p.index), Name: p.name, Reachable: true})
		}
	})
	if err != nil {
		conclude(failed, &jobv1.Failure{Outcome: outcomeInternal, Reason: "the job could not be recorded; see the coordinator's log and disk"})
		return
	}
	j, _ = c.snapshot(e)
	state, f := verdict(c.sessions(ctx, e, c.spec(j, deadline), deadline))
	if f == nil {
		j, _ = c.snapshot(e)
		//lodge:check coordinator/result/agreed [swap=agreed(j.GetParties())=>nil]
		//  [run=TestFailures] a result is activated although the parties disagree
		state, f = failed, agreed(j.GetParties())
	}
	if f == nil {
		f = c.settle(e)
	}
	if f == nil {
		return
	}
	if c.cancelAll(j, "the job failed: "+f.GetReason()) && full(f) && c.putBack(e, before, f.GetReason()) {
		return
	}
	conclude(state, f)
}

// hold lets clients cancel the job until release is called. It returns the jobs that already run.
func (c *Coordinator) hold(e *entry, cancel func()) (before []*entry, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.cancel = cancel
	if e.stop != "" {
		cancel()
	}
	return c.others(e), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.cancel, e.note = nil, ""
	}
}

// settle makes the parties' results the result of the job, unless a client has cancelled it. After
// settle the job completes.
func (c *Coordinator) settle(e *entry) (f *jobv1.Failure) {
	err := c.update(e, func(j *coordinatorv1.Job) {
		//lodge:check coordinator/result/cancelled [run=TestCancelled] a cancelled job completes
		if e.stop != "" {
			f = &jobv1.Failure{Outcome: outcomeCancelled, Reason: e.stop}
			return
		}
		first := j.GetParties()[0].GetStatus()
		j.State, j.Digest, j.Epoch, j.BatchId = activating, first.GetDigest(), first.GetEpoch(), first.GetBatchId()
	})
	if err != nil {
		f = &jobv1.Failure{Outcome: outcomeInternal, Reason: "the result could not be recorded; see the coordinator's log and disk"}
	}
	return f
}

// conclude ends a job without a result. A client's cancellation, a passed deadline and a stopping
// coordinator take precedence over the parties' reports, which are their consequences.
func (c *Coordinator) conclude(e *entry, state jobv1.JobState, f *jobv1.Failure, deadline time.Time) {
	j, _ := c.snapshot(e)
	c.mu.Lock()
	stop := e.stop
	c.mu.Unlock()
	consequence := f.GetOutcome() == outcomeCancelled || f.GetOutcome() == outcomePeerAbort
	switch {
	case stop != "":
		state, f = cancelled, &jobv1.Failure{Outcome: outcomeCancelled, Reason: stop}
	case consequence && c.stopping() && j.GetState() == pending:
		return // no party received this attempt: the next process leads it
	case consequence && !time.Now().Before(deadline):
		state, f = timedOut, &jobv1.Failure{Outcome: outcomeTimeout, Reason: "the job's deadline passed"}
	case consequence && c.stopping():
		f = &jobv1.Failure{Outcome: outcomeInternal, Reason: reasonStopped}
	}
	if f.GetRound() == "" { // the furthest round of any party
		for _, p := range j.GetParties() {
			if g := p.GetStatus().GetProgress(); g.GetRoundIndex() >= f.GetRoundIndex() {
				f.Round, f.RoundIndex = g.GetRound(), g.GetRoundIndex()
			}
		}
	}
	c.end(e, state, f)
}

// reach waits until all parties are reachable, asks them for the epochs that they know and returns
// the next epoch. Each party also cancels the locked results of failed jobs.
func (c *Coordinator) reach(ctx context.Context, e *entry, deadline time.Time) (next uint64, ends []ended) {
	call, stop := context.WithDeadline(ctx, minTime(deadline, time.Now().Add(c.timing.away)))
	defer stop()
	type answer struct {
		ended
		last uint64
	}
	members := c.members(e.request)
	answers := make(chan answer, len(members))
	made := c.lastEpoch()
	//lodge:check coordinator/epoch/made [as=next = 1] [run=TestEpochsAreNumberedOnce] an epoch
	//  has the number of one that the coordinator has made before
	next = made + 1
	missing := map[int]string{}
	for _, p := range members {
		missing[p.index] = p.name
		go func() {
			last, err := uint64(0), p.ready(call, c.timing.retry)
			if err == nil {
				last, err = p.lastEpoch(call)
			}
			if err == nil {
				if err := p.sweep(call, c.keeps); err != nil {
					c.log.Warn("cancelling what earlier jobs left", "party", p.name, "error", err)
				}
			} else if ctx.Err() != nil {
				err = errGaveUp
			}
			answers <- answer{ended{party: p.index, name: p.name, err: err}, last}
		}()
	}
	slow, show := time.After(c.timing.slow), false
	for len(missing) > 0 {
		select {
		case a := <-answers:
			delete(missing, a.party)
			//lodge:check coordinator/epoch/ahead [run=TestAPartyFarAhead] one party uses up the
			//  numbers of epochs
			if a.last > made+maxAhead {
				a.err = rpc.Errorf(rpc.Invalid, "check which cluster this data directory belongs to", "it knows epoch %d, but the last epoch in the coordinator's records is %d", a.last, made)
			} else {
				//lodge:check coordinator/epoch/next [run=TestEpochsAreNumberedOnce] an epoch has the
				//  number of one that a party knows
				next = max(next, a.last+1)
			}
			ends = append(ends, a.ended)
		case <-slow:
			show = true
		}
		if show {
			c.note(e, missing)
		}
	}
	return next, ends
}

// note records which parties a job cannot reach yet.
func (c *Coordinator) note(e *entry, missing map[int]string) {
	note := ""
	for i, name := range missing {
		if line := fmt.Sprintf("waiting to reach party %d (%s)", i, name); note == "" || line < note {
			note = line
		}
	}
	_ = c.update(e, func(*coordinatorv1.Job) { e.note = note })
}

// sessions starts a session at all parties with the same spec and follows it until every party's
// session has ended.
func (c *Coordinator) sessions(ctx context.Context, e *entry, spec *jobv1.SessionSpec, deadline time.Time) []ended {
	// ctx has no deadline: gRPC would send it with the calls, and parties would end them before the
	// coordinator does.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer time.AfterFunc(time.Until(deadline.Add(c.timing.late)), stop).Stop()
	members := c.members(e.request)
	ends := c.startAll(ctx, members, spec)
	//lodge:check coordinator/result/all [run=TestFailures|TestJobs] a session that failed at one
	//  party goes on at the others
	if slices.ContainsFunc(ends, func(e ended) bool { return !e.ok() }) {
		return ends
	}
	c.taken(e)
	all := make(chan ended, len(members))
	for _, p := range members {
		go func() { all <- c.follow(ctx, e, p, spec) }()
	}
	ends = ends[:0]
	var grace <-chan time.Time
	for len(ends) < len(members) {
		select {
		case end := <-all:
			ends = append(ends, end)
			if !end.ok() && grace == nil {
				grace = time.After(c.timing.grace)
			}
		case <-grace:
			stop()
		}
	}
	return ends
}

// startAll starts a session at its parties. Parties that have refused a session for lack of
// capacity are asked first: if other parties had begun it already, their sessions would end only
// after saying goodbye to all peers.
func (c *Coordinator) startAll(ctx context.Context, members []*member, spec *jobv1.SessionSpec) []ended {
	ends := make([]ended, len(members))
	ask := func(hesitant bool) (refused bool) {
		var wg sync.WaitGroup
		for i, p := range members {
			if p.full.Load() != hesitant {
				continue
			}
			wg.Go(func() {
				call, stop := context.WithTimeout(ctx, c.timing.away)
				defer stop()
				err := start(call, p.session(spec.GetProtocol()), spec)
				if err != nil && ctx.Err() != nil {
					err = errGaveUp
				}
				ends[i].err = err
			})
		}
		wg.Wait()
		return slices.ContainsFunc(ends, func(e ended) bool { return !e.ok() })
	}
	for i, p := range members {
		ends[i] = ended{party: p.index, name: p.name}
	}
	if ask(true) {
		for i, p := range members {
			if !p.full.Load() {
				ends[i].err = errGaveUp // this party was not asked
			}
		}
	} else {
		ask(false)
	}
	for i, p := range members {
		if e := rpc.FromError(ends[i].err); e != nil && e.Code == rpc.Busy {
			p.full.Store(true)
		}
	}
	return ends
}

// follow copies the status of one party's session into the job until the session has a result or
// has failed.
func (c *Coordinator) follow(ctx context.Context, e *entry, p *member, spec *jobv1.SessionSpec) ended {
	end := ended{party: p.index, name: p.name, begun: true}
	since, lost := time.Now(), error(nil)
	for {
		var last *jobv1.SessionStatus
		err := watch(ctx, p.session(spec.GetProtocol()), spec.GetRef(), func(st *jobv1.SessionStatus) bool {
			last, since, lost = heard(st, uint32(len(c.parties))), time.Now(), nil
			_ = c.update(e, func(j *coordinatorv1.Job) { observe(j, p.index, st, uint32(len(c.parties))) })
			return st.GetState() < activating
		})
		switch {
		case last.GetState() == activating || last.GetState() == completed:
			return end
		case job.Final(last.GetState()):
			end.status = last
			return end
		case ctx.Err() != nil && lost == nil:
			end.err = errGaveUp
			return end
		case ctx.Err() == nil:
			lost = err
			if err == nil {
				lost = errGone
			}
		}
		if ctx.Err() != nil || isGone(lost) || time.Since(since) > c.timing.away {
			end.err = lost
			return end
		}
		_ = c.update(e, func(j *coordinatorv1.Job) { progressOf(j, p.index).Reachable = false })
		select {
		case <-time.After(c.timing.retry):
		case <-ctx.Done():
		}
	}
}

var errGone = rpc.Errorf(rpc.Unavailable, "", "the party ended the stream")

// isGone reports whether a party responds that it has no such session.
func isGone(err error) bool {
	e := rpc.FromError(err)
	return e != nil && e.Code == rpc.NotFound
}

// cancelAll ends the job's sessions at all reachable parties, and reports whether none of its
// sessions remain.
func (c *Coordinator) cancelAll(j *coordinatorv1.Job, reason string) bool {
	spec := c.spec(j, time.Now())
	var wg sync.WaitGroup
	var left atomic.Bool
	for _, p := range c.parties {
		wg.Go(func() {
			call, stop := context.WithTimeout(context.Background(), c.timing.stop)
			defer stop()
			if err := cancel(call, p.session(spec.GetProtocol()), spec.GetRef(), reason); err != nil && !isGone(err) {
				c.log.Warn("cancelling a session", "job", j.GetId(), "party", p.name, "error", err)
				left.Store(true)
			}
		})
	}
	wg.Wait()
	return !left.Load()
}

func (c *Coordinator) end(e *entry, state jobv1.JobState, f *jobv1.Failure) {
	_ = c.update(e, func(j *coordinatorv1.Job) { j.State, j.Failure, j.Ended = state, f, timestamppb.Now() })
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
