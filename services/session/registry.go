// Package session runs the sessions of one party: it starts them from specs, drives their protocols
// through the runner, reports their status to watchers, and activates or discards their stored
// results. The protocol services are adapters over it.
package session

import (
	"context"
	"crypto/ed25519"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/traces"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// maxKept is how many ended sessions the registry remembers.
const maxKept = 1000

// Config is shared by all sessions of a party.
type Config struct {
	Gate     *job.Gate
	Exchange *exchange.Exchange
	Self     round.Party
	Names    []string
	Signer   ed25519.PrivateKey
	Keys     []ed25519.PublicKey
	Roster   [32]byte
	Limits   runner.Limits
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	Traces   *traces.Tracer // may be nil
	// Conduct of the parties in earlier sessions. If it is nil, cheats have no consequences.
	Conduct Conduct
	// Accuse receives evidence of a party's cheat when a session has failed because of it; nil
	// drops the evidence. It reads the file before it returns.
	Accuse func(found *evidence.Finding, file io.Reader)
	// Cheat is for tests only; see runner.Options.
	Cheat func(s *round.Session)
	// EvidenceDir is the directory for unnamed files with large messages, which are kept until
	// their session has judged them.
	EvidenceDir string
}

// Conduct decides from the ends of earlier sessions whether a session may begin.
type Conduct interface {
	// Admit returns an error if a party of the session is excluded, or no session may begin. It is
	// called again just before the session begins.
	Admit(*jobv1.SessionSpec) error
	// Ended records how a session failed before the failure becomes visible elsewhere, and adds the
	// parties that may be responsible to it.
	Ended(spec *jobv1.SessionSpec, session round.Digest, f *runner.Failure)
}

// Stored describes a protocol's locked results in the vault.
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
	// Memory validates the spec for the protocol and returns the estimated peak in bytes.
	Memory() (uint64, error)
	// Run drives the protocol and stores its result, locked.
	Run(ctx context.Context, s *Entry) (*Stored, error)
}

// Claimant is a Protocol whose sessions cannot all run concurrently, even with enough memory.
type Claimant interface {
	Protocol
	// Claim reserves the session's place among the running ones, or returns an rpc.Busy error.
	// Release is called once, when Run has returned, or when the session is not admitted.
	Claim() (release func(), err error)
}

// Registry holds a party's sessions.
type Registry struct {
	Config
	mu       sync.Mutex
	sessions map[job.Ref]*Entry
	order    []job.Ref
	running  sync.WaitGroup
	closed   bool
	stopped  chan struct{} // closed when Close has ended all sessions
	calling  context.Context
	hangUp   context.CancelCauseFunc // ends calling, and with it what Join drives
}

var errStopping = rpc.Errorf(rpc.Unavailable, "try again when the party is back", "this party is stopping")

// NewRegistry returns a registry without sessions.
func NewRegistry(c Config) *Registry {
	r := &Registry{Config: c, sessions: map[job.Ref]*Entry{}, stopped: make(chan struct{})}
	r.calling, r.hangUp = context.WithCancelCause(context.Background())
	return r
}

// Start admits a spec of a service's protocol and begins its session. If the spec has begun a
// session before, Start returns the status of that session.
func (r *Registry) Start(of jobv1.Protocol, spec *jobv1.SessionSpec, p Protocol) (*jobv1.SessionStatus, error) {
	ref, err := job.RefOf(spec.GetRef())
	if err != nil {
		return nil, err
	}
	//lodge:check session/start/protocol [run=TestStart] a service starts a session of another
	//  protocol
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
	//lodge:check session/start/gate [run=TestStart] [redundant=the gate checks again when it admits
	//  the session] a session starts against the party's policy
	if err := r.Gate.Check(spec); err != nil {
		return nil, err
	}
	if err := r.takesPart(spec); err != nil {
		return nil, err
	}
	//lodge:check session/start/conduct-before [run=TestStart] [redundant=the check is repeated just
	//  before the session starts] keys are loaded for a session with a convicted party
	if err := r.behaved(spec); err != nil {
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
	//lodge:check session/start/closed [run=TestStart] a session starts at a party that is shutting
	//  down
	if r.closed {
		return nil, errStopping
	}
	//lodge:check session/start/conduct [run=TestStart] a session starts with a party that was
	//  convicted meanwhile
	if err := r.behaved(spec); err != nil {
		return nil, err
	}
	release, err := r.admit(spec, memory, p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ctx, stop := context.WithDeadline(ctx, spec.GetDeadline().AsTime())
	s := &Entry{
		Spec: spec, registry: r, digest: digest, cancel: cancel, changed: make(chan struct{}),
		status: &jobv1.SessionStatus{Ref: spec.GetRef(), State: jobv1.JobState_JOB_STATE_PREPARING, Started: timestamppb.Now()},
	}
	r.sessions[ref] = s
	r.order = append(r.order, ref)
	r.forget()
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		defer stop()
		s.run(ctx, p, release)
	}()
	return s.Status(), nil
}

// takesPart refuses a session with parties that are not in the roster, or without this one.
func (r *Registry) takesPart(spec *jobv1.SessionSpec) error {
	if _, err := r.group(job.Participants(spec)); err != nil {
		return rpc.Errorf(rpc.Invalid, "name parties of the roster in order, and ask these", "%s", strings.TrimPrefix(err.Error(), "session: "))
	}
	return nil
}

// enter counts a call as running, so that the party waits for it when it stops.
func (r *Registry) enter() (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errStopping
	}
	r.running.Add(1)
	return r.running.Done, nil
}

// behaved refuses a session because of the conduct of its parties.
func (r *Registry) behaved(spec *jobv1.SessionSpec) error {
	if r.Conduct == nil {
		return nil
	}
	return r.Conduct.Admit(spec)
}

// admit reserves a session's slot among the running sessions, and its memory.
func (r *Registry) admit(spec *jobv1.SessionSpec, memory uint64, p Protocol) (release func(), err error) {
	leave := func() {}
	if c, ok := p.(Claimant); ok {
		if leave, err = c.Claim(); err != nil {
			return nil, err
		}
	}
	free, err := r.Gate.Admit(spec, memory)
	//lodge:check session/start/room [as=if err != nil { free = func() {} }] [run=TestStart] a
	//  session exceeds the party's memory
	if err != nil {
		leave()
		return nil, err
	}
	// The gate does not charge memory that earlier sessions left cached. This session reuses the
	// cached memory of its own ring degree.
	degree := 0
	if set, err := params.Lookup(spec.GetParams()); err == nil {
		degree = set.N()
	}
	spare := r.Gate.Spare()
	if own, other := ring.Kept(degree); uint64(other) > spare || uint64(own+other) > spare+memory {
		ring.Trim()
	}
	return func() { leave(); free() }, nil
}

// begun returns the status of the session that this spec has begun, or nil. The caller holds the
// lock.
func (r *Registry) begun(ref job.Ref, digest [32]byte) (*jobv1.SessionStatus, error) {
	old, ok := r.sessions[ref]
	switch {
	case !ok:
		return nil, nil
	//lodge:check session/start/again [run=TestStart] one reference names two sessions
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

// CancelEpoch cancels every session under an epoch that has not ended, and waits until none runs
// any more or ctx is done.
func (r *Registry) CancelEpoch(ctx context.Context, epoch uint64, reason string) {
	r.stopEpoch(ctx, epoch, reason, func(s jobv1.JobState) bool { return !job.Final(s) })
}

// DrainEpoch cancels the sessions under an epoch that have not begun their MAC check, and waits as
// CancelEpoch does. A check that ends without a verdict would burn the MAC key and the earlier
// tuples under it, so sessions in their check continue to their verdict, but cannot store anything.
// The coordinator activates or discards results that are already stored.
func (r *Registry) DrainEpoch(ctx context.Context, epoch uint64, reason string) {
	r.stopEpoch(ctx, epoch, reason, unchecked)
}

func (r *Registry) stopEpoch(ctx context.Context, epoch uint64, reason string, which func(jobv1.JobState) bool) {
	r.mu.Lock()
	var under []*Entry
	for _, s := range r.sessions {
		//lodge:check session/cancel/epoch [tests=./services/party] [run=TestRetiringEnds] sessions
		//  under a retired epoch go on
		if s.Spec.GetEpoch() == epoch {
			under = append(under, s)
		}
	}
	r.mu.Unlock()
	var stopped []*Entry
	for _, s := range under {
		if done, _ := s.stopIf(reason, which); done { // completed results stay; stored ones are erased with the epoch
			stopped = append(stopped, s)
		}
	}
	for _, s := range stopped {
		s.wait(ctx)
	}
}

// CancelAll cancels every session that has not ended. It does not wait.
func (r *Registry) CancelAll(reason string) {
	r.mu.Lock()
	var running []*Entry
	for _, s := range r.sessions {
		//lodge:check session/cancel/all [run=TestResults] sessions with a convicted party go on
		if !job.Final(s.Status().GetState()) {
			running = append(running, s)
		}
	}
	r.mu.Unlock()
	for _, s := range running {
		_ = s.stop(reason) // completed results stay
	}
}

// maxReason limits the length of another process's reason, which is recorded.
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
func (r *Registry) Get(ref *jobv1.SessionRef) (*Entry, error) {
	k, err := job.RefOf(ref)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[k]
	if !ok {
		return nil, noSession(ref)
	}
	return s, nil
}

// noSession is the error for a session that does not exist or is not visible to the caller.
func noSession(ref *jobv1.SessionRef) error {
	k, err := job.RefOf(ref)
	if err != nil {
		return err
	}
	return rpc.Errorf(rpc.NotFound, "sessions do not survive a restart of the party", "no session %s", k)
}

// checkTime is how long Drain waits for verdicts of MAC checks after its deadline.
const checkTime = 5 * time.Second

// Drain begins no more sessions and waits until none runs any more. When ctx is done it cancels
// those that have not begun their MAC check, as DrainEpoch does, and leaves the others a little
// more time for their verdict.
func (r *Registry) Drain(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		r.activated(ctx)
		return
	case <-ctx.Done():
	}
	for _, s := range r.all() {
		_, _ = s.stopIf(reasonStopping, unchecked)
	}
	select {
	case <-done:
	case <-time.After(checkTime):
	}
}

// activated waits briefly for the coordinator to activate stored results. Without activation they
// stay locked until the party has restarted, and the other parties wait.
func (r *Registry) activated(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	for _, s := range r.all() {
		s.wait(ctx)
	}
}

func (r *Registry) all() []*Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.sessions))
}

// unchecked reports whether a session in state s has not begun its MAC check.
//
//lodge:check session/cancel/verifying [swap=s < jobv1.JobState_JOB_STATE_VERIFYING=>!job.Final(s)] [tests=./services/offline/triples] [run=TestADrainKeeps] draining an epoch cancels a session that is opening its MAC key, which burns the key
func unchecked(s jobv1.JobState) bool { return s < jobv1.JobState_JOB_STATE_VERIFYING }

const reasonStopping = "the party is stopping"

// Close cancels running sessions, waits for their end, and releases all watchers. It must be called
// once.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	for _, s := range r.sessions {
		s.cancel(rpc.Errorf(rpc.Cancelled, "", reasonStopping))
	}
	r.hangUp(errStopping)
	r.mu.Unlock()
	r.running.Wait()
	close(r.stopped)
}

// Name returns a session's reference in the form of stored records.
func Name(ref *jobv1.SessionRef) string {
	return ref.GetJobId() + "-" + strconv.FormatUint(uint64(ref.GetOrdinal()), 10)
}

// Restore restores a session whose result an earlier process stored, and which was never activated.
func (r *Registry) Restore(name string, stored *Stored) {
	at := strings.LastIndexByte(name, '-')
	ordinal, err := strconv.ParseUint(name[at+1:], 10, 32)
	if at < 0 || err != nil {
		r.Log.Error("a stored result has no session", "name", name)
		return
	}
	ref := job.Ref{JobID: name[:at], Ordinal: uint32(ordinal)}
	s := &Entry{registry: r, changed: make(chan struct{}), cancel: func(error) {}, status: &jobv1.SessionStatus{Ref: ref.Proto()}}
	s.Spec = &jobv1.SessionSpec{Ref: ref.Proto(), Epoch: stored.Epoch} // the rest of the spec is not stored
	s.complete(stored)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[ref] = s
	r.order = append(r.order, ref)
}
