// Package session runs the sessions of one party: it starts them from specs, drives their protocols through
// the runner, keeps their status for whoever watches, and activates or discards what they stored. The
// protocol services are adapters over it.
package session

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/exchange"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/runner"
)

// maxKept is how many ended sessions the registry remembers.
const maxKept = 1000

// Config is what all sessions of a party share.
type Config struct {
	Gate     *job.Gate
	Exchange *exchange.Exchange
	Self     round.Party
	Names    []string
	Signer   ed25519.PrivateKey
	Keys     []ed25519.PublicKey
	Roster   [32]byte
	SpoolDir string
	Limits   runner.Limits
	Metrics  *metrics.Metrics
	Log      *slog.Logger
}

// Stored is what a protocol left in the vault, locked.
type Stored struct {
	Digest     [32]byte
	Epoch      uint64
	BatchID    string
	Count      uint64
	Security   string // of key generation
	StatBits   int
	Activate   func() error // nil when nothing was stored: the session is complete
	Discard    func(reason string) error
	OnActivate func() // after the first activation; may be nil
}

// Protocol is one session's work.
type Protocol interface {
	// Memory checks what the spec asks of the protocol and estimates the peak in bytes.
	Memory() (uint64, error)
	// Run drives the protocol and stores its result, locked.
	Run(ctx context.Context, s *Session) (*Stored, error)
}

// Registry holds a party's sessions.
type Registry struct {
	Config
	mu       sync.Mutex
	sessions map[job.Ref]*Session
	order    []job.Ref
	running  sync.WaitGroup
	closed   bool
	stopped  chan struct{} // closed when Close has ended all sessions
}

var errStopping = rpc.Errorf(rpc.Unavailable, "try again when the party is back", "this party is stopping")

// NewRegistry is empty.
func NewRegistry(c Config) *Registry {
	return &Registry{Config: c, sessions: map[job.Ref]*Session{}, stopped: make(chan struct{})}
}

// Session is one session.
type Session struct {
	Spec     *jobv1.SessionSpec
	registry *Registry
	digest   [32]byte
	cancel   context.CancelCauseFunc

	ending    sync.Mutex // held while a result comes in, is activated or is discarded
	cancelled bool       // before there was a result
	reason    string     // of that

	mu      sync.Mutex
	status  *jobv1.SessionStatus
	changed chan struct{} // closed and replaced at every change
	stored  *Stored
}

// Start admits a spec of a service's protocol and begins its session. The same spec again gives the status of the
// session that it began.
func (r *Registry) Start(of jobv1.Protocol, spec *jobv1.SessionSpec, p Protocol) (*jobv1.SessionStatus, error) {
	ref, err := job.RefOf(spec.GetRef())
	if err != nil {
		return nil, err
	}
	if spec.GetProtocol() != of {
		return nil, rpc.Errorf(rpc.Invalid, "ask the service of that protocol", "a spec of %s was sent to the service of %s", spec.GetProtocol(), of)
	}
	digest := job.Digest(spec)
	r.mu.Lock()
	st, err := r.begun(ref, digest)
	r.mu.Unlock()
	if st != nil || err != nil {
		return st, err
	}
	if err := r.Gate.Check(spec); err != nil {
		return nil, err
	}
	memory, err := p.Memory() // may load keys: not under the lock
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if st, err := r.begun(ref, digest); st != nil || err != nil {
		return st, err
	}
	if r.closed {
		return nil, errStopping
	}
	release, err := r.Gate.Admit(spec, memory)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ctx, stop := context.WithDeadline(ctx, spec.GetDeadline().AsTime())
	s := &Session{
		Spec: spec, registry: r, digest: digest, cancel: cancel, changed: make(chan struct{}),
		status: &jobv1.SessionStatus{Ref: spec.GetRef(), State: jobv1.JobState_JOB_STATE_PREPARING, Started: timestamppb.Now()},
	}
	r.sessions[ref] = s
	r.order = append(r.order, ref)
	r.forget()
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		defer release()
		defer stop()
		s.run(ctx, p)
	}()
	return s.Status(), nil
}

// begun gives the status of a session that this spec began before, or nil. The caller holds the lock.
func (r *Registry) begun(ref job.Ref, digest [32]byte) (*jobv1.SessionStatus, error) {
	old, ok := r.sessions[ref]
	switch {
	case !ok:
		return nil, nil
	case old.digest != digest:
		return nil, rpc.Errorf(rpc.Conflict, "use a new ordinal", "session %s was started with another spec", ref)
	}
	return old.Status(), nil
}

// forget drops the oldest ended sessions beyond maxKept.
func (r *Registry) forget() {
	for i := 0; len(r.order) > maxKept && i < len(r.order); {
		ref := r.order[i]
		if !job.Final(r.sessions[ref].Status().GetState()) {
			i++
			continue
		}
		delete(r.sessions, ref)
		r.order = append(r.order[:i], r.order[i+1:]...)
	}
}

// CancelEpoch cancels every session under an epoch that has not ended, and waits until none runs any more or ctx is done.
func (r *Registry) CancelEpoch(ctx context.Context, epoch uint64, reason string) {
	r.mu.Lock()
	var under []*Session
	for _, s := range r.sessions {
		if s.Spec.GetEpoch() == epoch && !job.Final(s.Status().GetState()) {
			under = append(under, s)
		}
	}
	r.mu.Unlock()
	for _, s := range under {
		_ = s.stop(reason) // what is complete stays; what was stored is gone with the epoch
	}
	for _, s := range under {
		s.wait(ctx)
	}
}

// maxReason bounds what somebody else gives as a reason, which is recorded.
const maxReason = 1000

// CheckReason refuses a reason that is too long.
func CheckReason(reason string) error {
	if len(reason) > maxReason {
		return rpc.Errorf(rpc.TooLarge, "", "a reason has at most %d bytes, not %d", maxReason, len(reason))
	}
	return nil
}

// Running counts the sessions that have not ended.
func (r *Registry) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, s := range r.sessions {
		if !job.Final(s.Status().GetState()) {
			n++
		}
	}
	return n
}

// Get finds a session.
func (r *Registry) Get(ref *jobv1.SessionRef) (*Session, error) {
	k, err := job.RefOf(ref)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[k]
	if !ok {
		return nil, rpc.Errorf(rpc.NotFound, "sessions do not survive a restart of the party", "no session %s", k)
	}
	return s, nil
}

// Close cancels what runs, waits for it to end, and lets go of those who watch. It is called once.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	for _, s := range r.sessions {
		s.cancel(rpc.Errorf(rpc.Cancelled, "", "the party is stopping"))
	}
	r.mu.Unlock()
	r.running.Wait()
	close(r.stopped)
}

// Name is the form of a session's reference in stored records.
func Name(ref *jobv1.SessionRef) string {
	return ref.GetJobId() + "-" + strconv.FormatUint(uint64(ref.GetOrdinal()), 10)
}

// Restore brings a session back whose result an earlier process stored and nobody activated.
func (r *Registry) Restore(name string, stored *Stored) {
	at := strings.LastIndexByte(name, '-')
	ordinal, err := strconv.ParseUint(name[at+1:], 10, 32)
	if at < 0 || err != nil {
		r.Log.Error("a stored result has no session", "name", name)
		return
	}
	ref := job.Ref{JobID: name[:at], Ordinal: uint32(ordinal)}
	s := &Session{registry: r, changed: make(chan struct{}), cancel: func(error) {}, status: &jobv1.SessionStatus{Ref: ref.Proto()}}
	s.complete(stored)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[ref] = s
	r.order = append(r.order, ref)
}

// Status is a copy of the present status.
func (s *Session) Status() *jobv1.SessionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return proto.Clone(s.status).(*jobv1.SessionStatus)
}

// Watch calls send with the status now and at every change, until the session ends, send fails or ctx is done.
func (s *Session) Watch(ctx context.Context, send func(*jobv1.SessionStatus) error) error {
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
func (s *Session) update(change func(st *jobv1.SessionStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.status)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Enter moves to a later state.
func (s *Session) Enter(state jobv1.JobState) {
	s.update(func(st *jobv1.SessionStatus) {
		if job.MayFollow(st.State, state) {
			st.State = state
		}
	})
}

func (s *Session) run(ctx context.Context, p Protocol) {
	stored, err := p.Run(ctx, s)
	if err != nil {
		s.fail(ctx, err)
		return
	}
	s.complete(stored)
}

// complete has a result that waits for activation, unless it is final. A result that comes after the session was
// cancelled is discarded.
func (s *Session) complete(stored *Stored) {
	s.ending.Lock()
	defer s.ending.Unlock()
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

// fail ends the session without a result.
func (s *Session) fail(ctx context.Context, err error) {
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
	s.update(func(st *jobv1.SessionStatus) {
		st.State, st.Failure, st.Ended = f.State(), f.Proto(s.registry.Self), timestamppb.Now()
		_, st.PeakRssBytes = metrics.ResidentBytes()
	})
}

// Cancel ends a session that is not active and erases what it stored. It returns when nothing of the session runs any
// more, so that whoever asks what there is next sees all that it made, or when ctx is done.
func (s *Session) Cancel(ctx context.Context, reason string) (*jobv1.SessionStatus, error) {
	if err := CheckReason(reason); err != nil {
		return nil, err
	}
	if err := s.stop(reason); err != nil {
		return nil, err
	}
	s.wait(ctx)
	return s.Status(), nil
}

// wait returns when the session has ended or ctx is done.
func (s *Session) wait(ctx context.Context) {
	_ = s.Watch(ctx, func(*jobv1.SessionStatus) error { return nil }) // an end of ctx changes nothing: the session ends without us
}

// stop begins to end the session.
func (s *Session) stop(reason string) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.mu.Lock()
	state, stored := s.status.GetState(), s.stored
	s.mu.Unlock()
	switch {
	case state == jobv1.JobState_JOB_STATE_COMPLETED:
		return rpc.Errorf(rpc.Conflict, "retire the epoch or revoke the batch instead", "the session is complete")
	case job.Final(state):
	case stored != nil:
		return s.discard(stored, reason)
	default:
		s.cancelled, s.reason = true, reason
		s.cancel(rpc.Errorf(rpc.Cancelled, "", "%s", reason))
	}
	return nil
}

// discard erases a result that was stored.
func (s *Session) discard(stored *Stored, reason string) error {
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

// lost ends a session whose result is gone, or should be.
func (s *Session) lost(reason string) {
	s.update(func(st *jobv1.SessionStatus) {
		st.State, st.Ended = jobv1.JobState_JOB_STATE_FAILED, timestamppb.Now()
		st.Failure = &jobv1.Failure{Outcome: string(runner.Internal), Reason: reason, Reporter: uint32(s.registry.Self)}
	})
}

// Activate unlocks what the session stored, if the digest is the one it reported.
func (s *Session) Activate(digest []byte) (*jobv1.SessionStatus, error) {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.mu.Lock()
	state, stored := s.status.GetState(), s.stored
	s.mu.Unlock()
	switch {
	case state == jobv1.JobState_JOB_STATE_COMPLETED:
		return s.Status(), nil
	case state != jobv1.JobState_JOB_STATE_ACTIVATING:
		return nil, rpc.Errorf(rpc.Conflict, "wait until the session is ACTIVATING", "the session is %s", state)
	case string(digest) != string(stored.Digest[:]):
		return nil, rpc.Errorf(rpc.Conflict, "cancel the session everywhere", "the digest is not the one that this party computed")
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

// Source is a fresh source of randomness, the only place where a session's secrets come from.
func Source() (*sample.Source, error) {
	seed := make([]byte, 2*sample.SeedSize)
	defer clear(seed)
	if _, err := rand.Read(seed); err != nil {
		return nil, err
	}
	return sample.NewSource(seed), nil
}

// Drive runs one chain with the peers. params is the hash of what the protocol computes with, beyond the set.
func Drive[R any](ctx context.Context, s *Session, protocol string, params [32]byte, start runner.Start[R]) (R, error) {
	var none R
	c := s.registry.Config
	ref, err := job.RefOf(s.Spec.GetRef())
	if err != nil {
		return none, err
	}
	x, err := c.Exchange.Open(ref, exchange.Pins{ParamsHash: params, SpecDigest: s.digest})
	if err != nil {
		return none, err
	}
	s.Enter(jobv1.JobState_JOB_STATE_GENERATING)
	result, report, err := runner.Run(ctx, runner.Options{
		Terms: round.Terms{
			Version: job.ProtocolVersion, Protocol: protocol, Params: params, Roster: c.Roster,
			Epoch: s.Spec.GetEpoch(), Job: s.digest,
		},
		Session: x, Self: c.Self, Names: c.Names, Signer: c.Signer, Keys: c.Keys, Random: rand.Reader,
		SpoolDir: c.SpoolDir, Limits: c.Limits, Metrics: c.Metrics, Log: c.Log, Progress: s.progress,
	}, start)
	s.update(func(st *jobv1.SessionStatus) {
		st.Rounds = uint32(report.Rounds)
		if st.Progress == nil {
			st.Progress = &jobv1.Progress{}
		}
		st.Progress.SentBytes, st.Progress.ReceivedBytes = uint64(report.Sent), uint64(report.Received)
	})
	return result, err
}

// progress copies the runner's view into the status.
func (s *Session) progress(p runner.Progress) {
	waiting := make([]uint32, len(p.WaitingFor))
	for i, w := range p.WaitingFor {
		waiting[i] = uint32(w)
	}
	s.update(func(st *jobv1.SessionStatus) {
		st.Progress = &jobv1.Progress{
			Round: p.Round, RoundIndex: uint32(p.Index), WaitingFor: waiting, Since: timestamppb.New(p.Since),
			SentBytes: uint64(p.Sent), ReceivedBytes: uint64(p.Received),
			RoundReceivedBytes: uint64(p.RoundReceived), RoundLimitBytes: uint64(p.RoundLimit),
		}
		st.Rounds = uint32(p.Index)
		if strings.Contains(p.Round, "mac/") && st.State == jobv1.JobState_JOB_STATE_GENERATING {
			st.State = jobv1.JobState_JOB_STATE_VERIFYING
		}
	})
}

// Now is when a record is made.
func Now() time.Time { return time.Now().UTC() }
