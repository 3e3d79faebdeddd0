package session

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// Entry is a session in the registry.
type Entry struct {
	Spec     *jobv1.SessionSpec
	registry *Registry
	digest   [32]byte
	cancel   context.CancelCauseFunc
	id       round.Digest // all zero before its parties have agreed on it

	ending    sync.Mutex // held while a result comes in, is activated or is discarded
	cancelled bool       // before it had a result; written under ending and mu
	reason    string     // of that

	mu          sync.Mutex
	interrupted bool // cancelled before its MAC check
	status      *jobv1.SessionStatus
	changed     chan struct{} // closed and replaced at every change
	stored      *Stored
	// proofKey returns the public key under which parties prove; nil if they prove nothing.
	proofKey func() (seed, half []byte)
	signed   []runner.Broadcast // of the protocol's run
}

// Broadcasts returns the signed broadcasts of all parties with this name in the protocol's run.
func (s *Entry) Broadcasts(name string) (list []runner.Broadcast) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.signed {
		if b.Envelope.Name == name {
			list = append(list, b)
		}
	}
	return list
}

// Status returns a copy of the present status.
func (s *Entry) Status() *jobv1.SessionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.Clone(s.status).(*jobv1.SessionStatus)
}

// Watch calls send with the status now and at every change, until the session ends, send fails or
// ctx is done.
func (s *Entry) Watch(ctx context.Context, send func(*jobv1.SessionStatus) error) error {
	for {
		s.mu.Lock()
		now, changed := proto.Clone(s.status).(*jobv1.SessionStatus), s.changed
		s.mu.Unlock()
		if err := send(now); err != nil || job.Final(now.GetState()) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.registry.stopped:
			if now := s.Status(); job.Final(now.GetState()) {
				return send(now)
			}
			return errStopping
		}
	}
}

// update changes the status and wakes the watchers.
func (s *Entry) update(change func(st *jobv1.SessionStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.status)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Enter moves to a later state.
func (s *Entry) Enter(state jobv1.JobState) {
	s.update(func(st *jobv1.SessionStatus) {
		if job.MayFollow(st.State, state) {
			st.State = state
		}
	})
}

// run drives the protocol. release frees the session's slot before the end of the session becomes
// visible.
func (s *Entry) run(ctx context.Context, p Protocol, release func()) {
	stored, err := func() (*Stored, error) {
		defer release()
		return p.Run(ctx, s)
	}()
	s.mu.Lock()
	s.signed = nil // stored records contain all that is needed
	s.mu.Unlock()
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.complete(stored)
}

// complete records a result, which waits for activation unless it is final. If the session has been
// cancelled, the result is discarded.
func (s *Entry) complete(stored *Stored) {
	s.ending.Lock()
	defer s.ending.Unlock()
	//lodge:check session/complete/cancelled [run=TestResults] a result that arrives after
	//  cancellation is kept
	if s.cancelled {
		if err := s.discard(stored, s.reason); err != nil {
			s.lost("its result could not be erased; see this party's log")
		}
		return
	}
	s.update(func(st *jobv1.SessionStatus) {
		s.stored = stored
		st.State = jobv1.JobState_JOB_STATE_ACTIVATING
		st.Digest, st.Epoch, st.BatchId, st.Count = stored.Digest[:], stored.Epoch, stored.BatchID, stored.Count
		st.KeygenSecurity, st.StatisticalSecurityBits = stored.Security, uint32(stored.StatBits)
		_, st.PeakRssBytes = metrics.ResidentBytes()
		if stored.Activate == nil {
			st.State, st.Ended = jobv1.JobState_JOB_STATE_COMPLETED, timestamppb.Now()
		}
	})
}

// Refused is the outcome of a session that this party ends because of other present or past
// sessions here. No party is at fault in this session.
const Refused runner.Outcome = "refused"

// Refuse ends a session with a typed reason, which is the failure's check.
func Refuse(why *rpc.Error) *runner.Failure {
	reason := why.What
	if why.Next != "" {
		reason += " (" + why.Next + ")"
	}
	return &runner.Failure{Outcome: Refused, Check: string(why.Code), Reason: reason}
}

// fail ends the session without a result.
func (s *Entry) fail(ctx context.Context, err error) {
	var f *runner.Failure
	if !errors.As(err, &f) {
		f = &runner.Failure{Outcome: runner.Internal, Reason: "this party failed; its log says more", Cause: err}
		var known *rpc.Error
		if errors.As(err, &known) {
			f.Reason = known.What
		}
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			f.Outcome, f.Reason = runner.Timeout, "the session's deadline is over"
		case ctx.Err() != nil:
			f.Outcome, f.Reason = runner.Cancelled, "cancelled"
		}
		s.registry.Log.Error("session failed", "session", s.Spec.GetRef().GetJobId(), "error", err)
	}
	//lodge:check session/fail/conduct [run=TestFailuresAreNoted] a failure is published before it
	//  is counted
	if s.registry.Conduct != nil {
		s.registry.Conduct.Ended(s.Spec, s.id, f)
	}
	s.update(func(st *jobv1.SessionStatus) {
		st.State, st.Failure, st.Ended = f.State(), f.Proto(s.registry.Self), timestamppb.Now()
		_, st.PeakRssBytes = metrics.ResidentBytes()
	})
}

// Opens enters the state VERIFYING: this party is about to open values under a MAC key. From here
// on Cancel waits for the result of the check. Opens returns an error for a session that was
// cancelled before, which must not open anything.
func (s *Entry) Opens() error {
	s.Enter(jobv1.JobState_JOB_STATE_VERIFYING)
	s.mu.Lock()
	defer s.mu.Unlock()
	//lodge:check session/cancel/opens [run=TestCancelDuringACheck] an interrupted session begins its
	//  MAC check, which cannot end
	if s.interrupted {
		return rpc.Errorf(rpc.Cancelled, "", "%s", s.reason)
	}
	return nil
}

// Cancel ends a session that is not active and erases its stored results. It does not interrupt a
// MAC check, because a check that does not end can burn the MAC key: the result of such a session
// is erased when it arrives. Cancel returns when all of the session's goroutines have stopped, so
// that a later query sees everything that it stored, or when ctx is done.
func (s *Entry) Cancel(ctx context.Context, reason string) (*jobv1.SessionStatus, error) {
	if err := CheckReason(reason); err != nil {
		return nil, err
	}
	all := func(jobv1.JobState) bool { return true }
	//lodge:check session/cancel/checking [tests=./services/session,./services/offline/triples]
	//  [swap=s.end(reason, all, unchecked)=>s.end(reason, all, all)]
	//  [run=TestCancelDuringACheck|TestACancelKeeps] cancelling a job in its MAC check burns the key
	if _, err := s.end(reason, all, unchecked); err != nil {
		return nil, err
	}
	s.wait(ctx)
	return s.Status(), nil
}

// wait returns when the session has ended or ctx is done.
func (s *Entry) wait(ctx context.Context) {
	_ = s.Watch(ctx, func(*jobv1.SessionStatus) error { return nil }) // the end of ctx needs no action: the session ends by itself
}

// stop begins to end the session.
func (s *Entry) stop(reason string) error {
	_, err := s.stopIf(reason, func(jobv1.JobState) bool { return true })
	return err
}

// stopIf begins to end the session if which selects its state, and reports whether it did.
func (s *Entry) stopIf(reason string, which func(jobv1.JobState) bool) (done bool, err error) {
	return s.end(reason, which, which)
}

// end is stopIf, but lets the protocol go on in the states that interrupt does not select. The
// result of the protocol is then discarded.
func (s *Entry) end(reason string, which, interrupt func(jobv1.JobState) bool) (done bool, err error) {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.mu.Lock()
	state, stored := s.status.GetState(), s.stored
	if done = which(state); done && !job.Final(state) && stored == nil { // before it enters another
		s.cancelled, s.reason = true, reason
		if s.interrupted = s.interrupted || interrupt(state); s.interrupted {
			s.cancel(rpc.Errorf(rpc.Cancelled, "", "%s", reason))
		}
	}
	s.mu.Unlock()
	switch {
	case !done:
		return false, nil
	//lodge:check session/cancel/complete [run=TestResults] a result that is active everywhere is
	//  erased
	case state == jobv1.JobState_JOB_STATE_COMPLETED:
		return true, rpc.Errorf(rpc.Conflict, "retire the epoch or revoke the batch instead", "the session is complete")
	case job.Final(state) || stored == nil:
		return true, nil
	}
	return true, s.discard(stored, reason)
}

// discard erases a result that was stored.
func (s *Entry) discard(stored *Stored, reason string) error {
	if stored.Discard != nil {
		if err := stored.Discard("cancelled: " + reason); err != nil {
			s.registry.Log.Error("discarding a result", "session", s.status.GetRef().GetJobId(), "error", err)
			return err
		}
	}
	s.update(func(st *jobv1.SessionStatus) {
		st.State, st.Ended = jobv1.JobState_JOB_STATE_CANCELLED, timestamppb.Now()
		st.Failure = &jobv1.Failure{Outcome: string(runner.Cancelled), Reason: reason, Reporter: uint32(s.registry.Self)}
	})
	return nil
}

// lost ends a session whose result is erased or must be.
func (s *Entry) lost(reason string) {
	s.update(func(st *jobv1.SessionStatus) {
		st.State, st.Ended = jobv1.JobState_JOB_STATE_FAILED, timestamppb.Now()
		st.Failure = &jobv1.Failure{Outcome: string(runner.Internal), Reason: reason, Reporter: uint32(s.registry.Self)}
	})
}

// Activate unlocks the session's stored results if the digest equals the one that it reported.
func (s *Entry) Activate(digest []byte) (*jobv1.SessionStatus, error) {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.mu.Lock()
	state, stored := s.status.GetState(), s.stored
	s.mu.Unlock()
	switch {
	case state == jobv1.JobState_JOB_STATE_COMPLETED:
		return s.Status(), nil
	//lodge:check session/activate/erased [run=TestResults] a call waits for a result that was
	//  erased
	case stored != nil && job.Final(state):
		return nil, rpc.Errorf(rpc.Burnt, "make another", "the result of the session is erased: %s", s.Status().GetFailure().GetReason())
	//lodge:check session/activate/state [run=TestResults] a result is activated before it exists
	case state != jobv1.JobState_JOB_STATE_ACTIVATING:
		return nil, rpc.Errorf(rpc.Conflict, "wait until the session is ACTIVATING", "the session is %s", state)
	//lodge:check session/activate/digest [run=TestResults] a result is activated that the party did
	//  not compute
	case string(digest) != string(stored.Digest[:]):
		return nil, rpc.Errorf(rpc.Conflict, "cancel the session everywhere", "the digest differs from this party's")
	}
	if err := stored.Activate(); err != nil {
		if e := rpc.FromError(err); e != nil && e.Code == rpc.Burnt {
			s.lost(e.What)
		}
		return nil, err
	}
	if stored.OnActivate != nil {
		stored.OnActivate()
	}
	s.update(func(st *jobv1.SessionStatus) {
		st.State, st.Ended = jobv1.JobState_JOB_STATE_COMPLETED, timestamppb.Now()
	})
	return s.Status(), nil
}
