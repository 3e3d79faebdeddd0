package session

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// judgment is a Conduct that admits a limited number of sessions, and records its calls.
type judgment struct {
	mu     sync.Mutex
	admits int
	ended  []runner.Outcome
	state  func() jobv1.JobState // of the session, as others see it at that moment
	seen   jobv1.JobState
}

var errExcluded = rpc.Errorf(rpc.Excluded, "", "a party is excluded")

func (j *judgment) Admit(*jobv1.SessionSpec) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.admits--; j.admits < 0 {
		return errExcluded
	}
	return nil
}

func (j *judgment) Ended(_ *jobv1.SessionSpec, _ round.Digest, f *runner.Failure) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = append(j.ended, f.Outcome)
	j.seen = j.state()
}

// work is a Protocol that uses the given memory and ends with the given result.
type work struct {
	memory uint64
	end    chan error
	stored *Stored
	ran    chan struct{}
}

func newWork() *work { return &work{memory: 1, end: make(chan error, 1), ran: make(chan struct{})} }

func (w *work) Memory() (uint64, error) { return w.memory, nil }

func (w *work) Run(ctx context.Context, _ *Entry) (*Stored, error) {
	close(w.ran)
	select {
	case err := <-w.end:
		return w.stored, err
	case <-ctx.Done():
		if w.stored != nil { // it was too late to stop
			return w.stored, nil
		}
		return nil, ctx.Err()
	}
}

func newRegistry(conduct Conduct) (*Registry, *jobv1.SessionSpec) {
	pin := config.ParamsPin{Name: "S14-32", Hash: strings.Repeat("11", 32)}
	hash, roster := pin.Sum(), [32]byte{}
	r := NewRegistry(Config{Names: []string{"p0"}, Keys: make([]ed25519.PublicKey, 1), Conduct: conduct, Metrics: metrics.New("test", metrics.Both), Log: slog.New(slog.DiscardHandler), Gate: job.NewGate(job.Terms{
		Policy: config.Policy{
			Params: []config.ParamsPin{pin}, Kinds: []string{"scalar"}, Fields: []string{"p128"}, Purposes: []string{"triples"},
			Tenants: []string{"acme"}, MaxCount: 1, MaxDim: 1, MaxConcurrent: 10, JobsPerHour: 100, MaxMemory: 1 << 20,
		},
		AllowPassiveKeygen: true, Insecure: func(string) bool { return false }, Now: time.Now,
	})})
	return r, &jobv1.SessionSpec{
		Ref: &jobv1.SessionRef{JobId: "job-1", Ordinal: 1}, Protocol: jobv1.Protocol_PROTOCOL_TRIPLES, ProtocolVersion: job.ProtocolVersion,
		Params: pin.Name, ParamsHash: hash[:], RosterHash: roster[:], Field: "p128", Kind: jobv1.Kind_KIND_SCALAR, Dim: 1, Count: 1,
		Epoch: 1, Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: "acme", Deadline: timestamppb.New(time.Now().Add(time.Hour)),
	}
}

func isRefused(t *testing.T, what string, err error, code rpc.Code) {
	t.Helper()
	if e := rpc.FromError(err); e == nil || e.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// A session begins once, at the service of its protocol, within the party's policy and memory
// limit, and without excluded parties, even if a party is excluded only just before.
func TestStart(t *testing.T) {
	const triples = jobv1.Protocol_PROTOCOL_TRIPLES
	for what, c := range map[string]struct {
		of     jobv1.Protocol
		admits int
		memory uint64
		change func(s *jobv1.SessionSpec)
		code   rpc.Code
	}{
		"the service of another protocol":    {jobv1.Protocol_PROTOCOL_POPK, 9, 1, func(*jobv1.SessionSpec) {}, rpc.Invalid},
		"another tenant":                     {triples, 9, 1, func(s *jobv1.SessionSpec) { s.Tenant = "others" }, rpc.PolicyRefused},
		"too much memory":                    {triples, 9, 2 << 20, func(*jobv1.SessionSpec) {}, rpc.PolicyRefused},
		"a party that is excluded":           {triples, 0, 1, func(*jobv1.SessionSpec) {}, rpc.Excluded},
		"a party that is excluded meanwhile": {triples, 1, 1, func(*jobv1.SessionSpec) {}, rpc.Excluded},
	} {
		r, spec := newRegistry(&judgment{admits: c.admits})
		c.change(spec)
		w := newWork()
		w.memory = c.memory
		_, err := r.Start(c.of, spec, w)
		isRefused(t, what, err, c.code)
		if r.Running() != 0 {
			t.Errorf("%s: a session runs", what)
		}
		r.Close()
		_, err = r.Start(triples, spec, newWork())
		if err == nil {
			t.Errorf("%s: a session begins at a party that has stopped", what)
		}
	}
	r, spec := newRegistry(nil)
	w := newWork()
	if _, err := r.Start(triples, spec, w); err != nil {
		t.Fatal(err)
	}
	if st, err := r.Start(triples, spec, newWork()); err != nil || st.GetState() == 0 || r.Running() != 1 {
		t.Errorf("the same again: %v, %v", st, err)
	}
	other := proto.CloneOf(spec)
	other.Epoch++
	_, err := r.Start(triples, other, newWork())
	isRefused(t, "another under the same name", err, rpc.Conflict)
	r.Close()
	other.Ref.Ordinal++
	_, err = r.Start(triples, other, newWork())
	isRefused(t, "at a party that has stopped", err, rpc.Unavailable)
}

// A failure is recorded before the end of the session becomes visible.
func TestFailuresAreNoted(t *testing.T) {
	j := &judgment{admits: 9}
	r, spec := newRegistry(j)
	defer r.Close()
	w := newWork()
	if _, err := r.Start(jobv1.Protocol_PROTOCOL_TRIPLES, spec, w); err != nil {
		t.Fatal(err)
	}
	s, err := r.Get(spec.GetRef())
	if err != nil {
		t.Fatal(err)
	}
	j.state = func() jobv1.JobState { return s.Status().GetState() }
	w.end <- &runner.Failure{Outcome: runner.Aborted, Check: "mac"}
	s.wait(t.Context())
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.ended, []runner.Outcome{runner.Aborted}) || job.Final(j.seen) {
		t.Errorf("heard of %v when the session was %s", j.ended, j.seen)
	}
}

// A result can be activated as soon as it exists, by its digest. An activated result cannot be
// discarded. A result that arrives after cancellation is erased.
func TestResults(t *testing.T) {
	r, spec := newRegistry(nil)
	defer r.Close()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	begin := func() (*Entry, *work, *[]string) {
		spec = proto.CloneOf(spec)
		spec.Ref.Ordinal++
		done := new([]string)
		w := newWork()
		w.stored = &Stored{
			Digest: [32]byte{7}, Activate: func() error { *done = append(*done, "activated"); return nil },
			Discard: func(string) error { *done = append(*done, "erased"); return nil },
		}
		if _, err := r.Start(jobv1.Protocol_PROTOCOL_TRIPLES, spec, w); err != nil {
			t.Fatal(err)
		}
		s, err := r.Get(spec.GetRef())
		if err != nil {
			t.Fatal(err)
		}
		<-w.ran
		return s, w, done
	}
	until := func(s *Entry, state jobv1.JobState) {
		t.Helper()
		there := errors.New("there")
		if err := s.Watch(ctx, func(st *jobv1.SessionStatus) error {
			if st.GetState() == state {
				return there
			}
			return nil
		}); !errors.Is(err, there) {
			t.Fatalf("it is %s: %v", s.Status().GetState(), err)
		}
	}
	digest := [32]byte{7}
	s, w, done := begin()
	w.stored.Digest = digest
	_, err := s.Activate(digest[:])
	isRefused(t, "before there is a result", err, rpc.Conflict)
	w.end <- nil
	until(s, jobv1.JobState_JOB_STATE_ACTIVATING)
	_, err = s.Activate(make([]byte, 32))
	isRefused(t, "another digest", err, rpc.Conflict)
	if len(*done) != 0 {
		t.Errorf("refused, and %q", *done)
	}
	if _, err := s.Activate(digest[:]); err != nil {
		t.Error(err)
	}
	_, err = s.Cancel(ctx, "changed my mind")
	isRefused(t, "what is complete", err, rpc.Conflict)
	if !slices.Equal(*done, []string{"activated"}) {
		t.Errorf("%q", *done)
	}

	s, _, done = begin()
	st, err := s.Cancel(ctx, "too late")
	if err != nil || st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED || !slices.Equal(*done, []string{"erased"}) {
		t.Errorf("a result that comes after it was cancelled: %s, %v, %q", st.GetState(), err, *done)
	}
	_, err = s.Activate(digest[:])
	isRefused(t, "what is cancelled", err, rpc.Conflict)

	s, w, done = begin()
	waiting, _, _ := begin()
	w.end <- nil
	until(s, jobv1.JobState_JOB_STATE_ACTIVATING)
	r.CancelAll("somebody cheats")
	until(s, jobv1.JobState_JOB_STATE_CANCELLED)
	until(waiting, jobv1.JobState_JOB_STATE_CANCELLED)
	if !slices.Equal(*done, []string{"erased"}) {
		t.Errorf("of a session with a convicted party: %q", *done)
	}
	_, err = s.Activate(digest[:])
	isRefused(t, "what is erased", err, rpc.Burnt)
}
