package coordinator

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var now = timestamppb.Now

func is(err error, code rpc.Code) bool { return err != nil && rpc.FromError(err).Code == code }

func keysJob() *coordinatorv1.JobRequest {
	return &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: "S14-32", Purpose: jobv1.Purpose_PURPOSE_TRIPLES}
}

func scalarJob(epoch uint64) *coordinatorv1.JobRequest {
	return &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_SCALAR, Params: "S14-32", Field: "p128", Dim: 1, Count: 10, Epoch: epoch,
		Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: "dev",
	}
}

func (f *fakeNet) submit(q *coordinatorv1.JobRequest) string {
	f.Helper()
	r, err := f.client.SubmitJob(f.Context(), &coordinatorv1.SubmitJobRequest{Job: q})
	if err != nil {
		f.Fatal(err)
	}
	return r.GetJob().GetId()
}

func (f *fakeNet) get(id string) *coordinatorv1.Job {
	f.Helper()
	r, err := f.client.GetJob(f.Context(), &coordinatorv1.GetJobRequest{Id: id})
	if err != nil {
		f.Fatal(err)
	}
	return r.GetJob()
}

// until watches a job until ok returns true.
func (f *fakeNet) until(id string, ok func(*coordinatorv1.Job) bool) *coordinatorv1.Job {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
	defer cancel()
	stream, err := f.client.WatchJob(ctx, &coordinatorv1.WatchJobRequest{Id: id})
	var last *coordinatorv1.Job
	for err == nil {
		var r *coordinatorv1.WatchJobResponse
		if r, err = stream.Recv(); err == nil {
			if last = r.GetJob(); ok(last) {
				return last
			}
		}
	}
	f.Fatalf("%v; last %v", err, last)
	return nil
}

func over(j *coordinatorv1.Job) bool { return job.Final(j.GetState()) }

func waitsFor(reason string) func(*coordinatorv1.Job) bool {
	return func(j *coordinatorv1.Job) bool { return strings.Contains(j.GetReason(), reason) }
}

// complete runs a job that must succeed and checks that no result stays locked.
func (f *fakeNet) complete(q *coordinatorv1.JobRequest) *coordinatorv1.Job {
	f.Helper()
	j := f.until(f.submit(q), over)
	if j.GetState() != completed {
		f.Fatalf("%s: %v", j.GetState(), j.GetFailure())
	}
	if n := f.locked(); n != 0 {
		f.Fatalf("%d results stay locked", n)
	}
	return j
}

// locked returns the number of locked results at all parties.
func (f *fakeNet) locked() (n int) {
	for _, p := range f.parties {
		p.mu.Lock()
		for _, e := range p.epochs {
			if e.State == keygenv1.EpochState_EPOCH_STATE_LOCKED {
				n++
			}
		}
		for _, b := range p.batches {
			if b.State == tuplesv1.BatchState_BATCH_STATE_LOCKED {
				n++
			}
		}
		p.mu.Unlock()
	}
	return n
}

// change changes the behaviour of a party under its lock.
func (p *fakeParty) change(f func(p *fakeParty)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

func TestJobs(t *testing.T) {
	f := newNet(t, 3)
	keys := f.complete(keysJob())
	if keys.GetEpoch() != 1 || keys.GetSubmittedBy() != "operator" || len(keys.GetDigest()) != 32 || keys.GetOrdinal() != 1 {
		t.Errorf("%v", keys)
	}
	if again := f.complete(keysJob()); again.GetEpoch() != 2 {
		t.Errorf("the second epoch is %d", again.GetEpoch())
	}
	id := f.submit(scalarJob(2))
	last := pending
	j := f.until(id, func(j *coordinatorv1.Job) bool {
		if j.GetState() < last {
			t.Errorf("from %s back to %s", last, j.GetState())
		}
		last = j.GetState()
		return over(j)
	})
	if j.GetState() != completed || j.GetBatchId() != id+"-1" || j.GetCreated() == nil || j.GetStarted() == nil || j.GetEnded() == nil {
		t.Errorf("%v", j)
	}
	for _, p := range j.GetParties() {
		if p.GetStatus().GetState() != completed {
			t.Errorf("party %d is %s", p.GetParty(), p.GetStatus().GetState())
		}
	}
	for _, p := range f.parties[1:] { // all parties receive the same request
		for i, s := range p.specs {
			if !proto.Equal(s, f.parties[0].specs[i]) {
				t.Errorf("party %d was asked for %v", p.index, s)
			}
			if err := job.Validate(s, time.Now()); err != nil {
				t.Error(err)
			}
		}
	}
}

// Each row is one way to fail: the behaviour of party 1, or of parties 1 and 2, how the job ends,
// and which party is named. After each failure another job must complete.
func TestFailures(t *testing.T) {
	f := newNet(t, 3)
	epoch := f.complete(keysJob()).GetEpoch()
	peers := func(s *fakeSession) {
		s.fails(&jobv1.Failure{Outcome: outcomePeerAbort, Reason: "p1 ended the session"})
	}
	for _, c := range []struct {
		name    string
		bad     func(p *fakeParty)
		others  func(*fakeSession)
		timeout time.Duration
		state   jobv1.JobState
		want    *jobv1.Failure // Reason is contained
	}{
		{name: "refused by policy", bad: func(p *fakeParty) {
			p.onStart = func(*jobv1.SessionSpec) error { return rpc.Errorf(rpc.PolicyRefused, "ask for less", "too many") }
		}, state: failed, want: &jobv1.Failure{Outcome: "refused", Check: "policy_refused", Reason: "party 1 (p1) refuses: too many (ask for less)", Reporter: 1}},
		{name: "a later report that adds details", bad: func(p *fakeParty) {
			p.onRun = func(s *fakeSession) {
				time.Sleep(50 * time.Millisecond)
				s.fails(&jobv1.Failure{Outcome: "blame", Round: "open", RoundIndex: 4, Check: "proof", Reason: "bad proof", Reporter: 1,
					Blame: &jobv1.Blame{Party: 2, Check: "proof", Reason: "bad proof"}})
			}
		}, others: peers, state: failed, want: &jobv1.Failure{Outcome: "blame", Round: "open", RoundIndex: 4, Check: "proof", Reason: "bad proof",
			Reporter: 1, Blame: &jobv1.Blame{Party: 2, Check: "proof", Reason: "bad proof"}}},
		{name: "other parties stall after a failure", bad: func(p *fakeParty) {
			p.onRun = func(s *fakeSession) {
				s.fails(&jobv1.Failure{Outcome: "abort", Check: "mac_check", Reason: "not zero"})
			}
		}, others: func(s *fakeSession) { s.waits(7, 1) }, state: failed,
			want: &jobv1.Failure{Outcome: "abort", Round: "open", RoundIndex: 7, Check: "mac_check", Reason: "not zero"}},
		{name: "another result", bad: func(p *fakeParty) {
			p.onRun = func(s *fakeSession) { s.waits(1, 0); s.store([32]byte{1}) }
		}, state: failed, want: &jobv1.Failure{Outcome: "abort", Check: "result", Round: "open", RoundIndex: 1, Reason: "parties 0 and 1 report different results"}},
		{name: "all parties stall", bad: func(p *fakeParty) {
			p.onRun = func(s *fakeSession) { s.waits(2, 0) }
		}, others: func(s *fakeSession) { s.waits(3, 1) }, timeout: 200 * time.Millisecond, state: timedOut,
			want: &jobv1.Failure{Outcome: "timeout", Round: "open", RoundIndex: 3, Reason: "the job's deadline passed"}},
		{name: "the parties' own deadline", bad: func(p *fakeParty) {
			p.onRun = func(s *fakeSession) { s.waits(2, 0) }
		}, others: func(s *fakeSession) {
			s.waits(3, 1)
			time.Sleep(time.Until(s.spec.GetDeadline().AsTime()))
			s.fails(&jobv1.Failure{Outcome: "timeout", Round: "open", RoundIndex: 3, Reason: "the session's deadline is over", Suspects: []uint32{1}})
		}, timeout: 200 * time.Millisecond, state: timedOut,
			want: &jobv1.Failure{Outcome: "timeout", Round: "open", RoundIndex: 3, Reason: "deadline", Suspects: []uint32{1}}},
		{name: "killed and away", bad: func(p *fakeParty) {
			p.onRun = func(s *fakeSession) { s.waits(2, 0); time.Sleep(50 * time.Millisecond); f.kill(1) }
		}, others: func(s *fakeSession) { s.waits(2, 1) }, state: failed,
			want: &jobv1.Failure{Outcome: "timeout", Round: "open", RoundIndex: 2, Reason: "party 1 (p1) cannot be reached", Reporter: 1, Suspects: []uint32{1}}},
		{name: "restarted", bad: func(p *fakeParty) {
			p.onRun = func(s *fakeSession) {
				s.waits(2, 0)
				p.change(func(p *fakeParty) { p.sessions = map[string]*fakeSession{} })
				s.set(func(*jobv1.SessionStatus) {}) // wakes the watcher
			}
		}, others: func(s *fakeSession) { s.waits(2, 1) }, state: failed,
			want: &jobv1.Failure{Outcome: "abort", Round: "open", RoundIndex: 2, Reason: "lost its session", Reporter: 1, Suspects: []uint32{1}}},
	} {
		for _, p := range f.parties {
			p.change(func(p *fakeParty) {
				if p.index == 1 {
					c.bad(p)
				} else {
					p.onRun = c.others
				}
			})
		}
		q := scalarJob(epoch)
		if c.timeout > 0 {
			q.Timeout = durationpb.New(c.timeout)
		}
		j := f.until(f.submit(q), over)
		got := proto.CloneOf(j.GetFailure())
		if strings.Contains(got.GetReason(), c.want.GetReason()) {
			got.Reason = c.want.Reason
		}
		if j.GetState() != c.state || !proto.Equal(got, c.want) || j.GetReason() != j.GetFailure().GetReason() {
			t.Errorf("%s: %s, %v", c.name, j.GetState(), j.GetFailure())
		}
		for _, p := range f.parties {
			p.change(func(p *fakeParty) {
				for id, s := range p.sessions {
					if !job.Final(s.status.GetState()) && (p.index != 1 || c.name != "killed and away") {
						t.Errorf("%s: session %s of party %d runs on", c.name, id, p.index)
					}
				}
				p.onStart, p.onRun = nil, nil
			})
		}
		if c.name == "killed and away" {
			f.restart(1)
		}
		f.complete(scalarJob(epoch))
	}
}

func TestUnreachable(t *testing.T) {
	f := newNet(t, 2)
	f.kill(1)
	id := f.submit(keysJob())
	f.until(id, waitsFor("waiting to reach party 1 (p1)"))
	j := f.until(id, over)
	if g := j.GetFailure(); j.GetState() != failed || g.GetOutcome() != "timeout" || len(g.GetSuspects()) != 1 || g.GetSuspects()[0] != 1 ||
		!strings.Contains(g.GetReason(), "party 1 (p1) cannot be reached") {
		t.Errorf("%s, %v", j.GetState(), g)
	}
	f.restart(1)
	f.complete(keysJob())
}

// While a party stalls, a watcher receives how long the job has waited.
func TestReason(t *testing.T) {
	f := newNet(t, 2)
	for _, p := range f.parties {
		p.onRun = func(s *fakeSession) { s.waits(3, 1) }
	}
	id := f.submit(keysJob())
	f.until(id, waitsFor("waiting for party 1, round 3 (open), 0 s"))
	f.until(id, waitsFor("waiting for party 1, round 3 (open), 1 s"))
	behind := f.submit(keysJob())
	if r := f.get(behind).GetReason(); r != "waiting for the jobs before it" {
		t.Errorf("a job that has not begun: %q", r)
	}
}

func TestCancel(t *testing.T) {
	f := newNet(t, 2)
	f.parties[1].onRun = func(s *fakeSession) { s.waits(3, 0) }
	running, queued, last := f.submit(keysJob()), f.submit(keysJob()), f.submit(keysJob())
	f.until(running, waitsFor("round 3"))
	cancel := func(id, reason string) (*coordinatorv1.Job, error) {
		r, err := f.client.CancelJob(t.Context(), &coordinatorv1.CancelJobRequest{Id: id, Reason: reason})
		return r.GetJob(), err
	}
	if j, err := cancel(queued, ""); err != nil || j.GetState() != cancelled || j.GetEnded() == nil {
		t.Errorf("a job that has not begun: %v, %v", j, err)
	}
	f.parties[1].change(func(p *fakeParty) { p.onRun = nil })
	if _, err := cancel(running, "a mistake"); err != nil {
		t.Error(err)
	}
	j := f.until(running, over)
	if g := j.GetFailure(); j.GetState() != cancelled || g.GetOutcome() != "cancelled" || g.GetReason() != "cancelled: a mistake" {
		t.Errorf("%s, %v", j.GetState(), g)
	}
	if j := f.until(last, over); j.GetState() != completed {
		t.Errorf("the job after: %s, %v", j.GetState(), j.GetFailure())
	}
	for _, id := range []string{running, last, "j1"} {
		if _, err := cancel(id, ""); err == nil {
			t.Errorf("job %s, which is over, was cancelled", id)
		}
	}
	if n := f.locked(); n != 0 {
		t.Errorf("%d results stay locked", n)
	}
}

// A job that is cancelled during the MAC check of a party ends when the check has ended, because a
// check that the cancellation interrupts can burn the MAC key.
func TestCancelDuringACheck(t *testing.T) {
	f := newNet(t, 2)
	p := f.parties[1]
	checked := make(chan struct{})
	p.onRun = func(s *fakeSession) {
		s.set(func(st *jobv1.SessionStatus) { st.State = jobv1.JobState_JOB_STATE_VERIFYING })
		<-checked
		s.store(job.Digest(s.spec))
	}
	id := f.submit(keysJob())
	f.until(id, func(j *coordinatorv1.Job) bool {
		return len(j.GetParties()) == 2 && j.GetParties()[1].GetStatus().GetState() == jobv1.JobState_JOB_STATE_VERIFYING
	})
	r, err := f.client.CancelJob(t.Context(), &coordinatorv1.CancelJobRequest{Id: id, Reason: "a mistake"})
	if err != nil || over(r.GetJob()) {
		t.Errorf("cancelled during the check: %v, %v", r, err)
	}
	time.Sleep(100 * time.Millisecond) // a cancellation would reach the party meanwhile
	p.change(func(p *fakeParty) {
		for _, s := range p.sessions {
			if st := s.status.GetState(); st != jobv1.JobState_JOB_STATE_VERIFYING {
				t.Errorf("the session is %s during its check", st)
			}
		}
	})
	close(checked)
	j := f.until(id, over)
	if g := j.GetFailure(); j.GetState() != cancelled || g.GetReason() != "cancelled: a mistake" {
		t.Errorf("%s, %v", j.GetState(), g)
	}
	if n := f.locked(); n != 0 {
		t.Errorf("%d results stay locked", n)
	}
}

// A party that cannot activate delays only its own job, also across restarts of the coordinator and
// of the party.
func TestActivationIsResumed(t *testing.T) {
	f := newNet(t, 3)
	epoch := f.complete(keysJob()).GetEpoch()
	f.complete(scalarJob(epoch)) // from here on a MAC key exists
	refuse := func() error { return rpc.Errorf(rpc.Internal, "", "disk full") }
	f.parties[2].change(func(p *fakeParty) { p.onActivate = refuse })
	id := f.submit(scalarJob(epoch))
	f.until(id, waitsFor("activating: party 2 (p2): disk full"))
	if _, err := f.client.CancelJob(t.Context(), &coordinatorv1.CancelJobRequest{Id: id}); !is(err, rpc.Conflict) {
		t.Errorf("cancelling a job that other parties have activated: %v", err)
	}
	other := f.submit(scalarJob(epoch))
	f.until(other, func(j *coordinatorv1.Job) bool { return j.GetState() == activating })
	f.stop()
	f.begin()
	for _, id := range []string{id, other} {
		if j := f.get(id); j.GetState() != activating {
			t.Errorf("after a restart: %s, %v", j.GetState(), j.GetFailure())
		}
	}
	for end := time.Now().Add(30 * time.Second); f.locked() != 2; time.Sleep(time.Millisecond) { // the results of party 2
		if time.Now().After(end) {
			t.Fatalf("%d results are locked", f.locked())
		}
	}
	f.parties[2].change(func(p *fakeParty) { p.onActivate = nil })
	for _, id := range []string{id, other} {
		if j := f.until(id, over); j.GetState() != completed {
			t.Errorf("%s, %v", j.GetState(), j.GetFailure())
		}
	}
	if n := f.locked(); n != 0 {
		t.Errorf("%d results stay locked", n)
	}

	// Party 0 activates, the coordinator stops before it can record this, and party 0 restarts and
	// loses its sessions.
	f.parties[2].change(func(p *fakeParty) { p.onActivate = refuse })
	keys := f.submit(keysJob())
	refused := waitsFor("activating: party 2")
	f.until(keys, func(j *coordinatorv1.Job) bool {
		return refused(j) && j.GetParties()[0].GetStatus().GetState() == completed
	})
	f.stop()
	f.kill(0)
	f.restart(0)
	f.parties[2].change(func(p *fakeParty) { p.onActivate = nil })
	f.begin()
	if j := f.until(keys, over); j.GetState() != completed {
		t.Errorf("%s, %v", j.GetState(), j.GetFailure())
	}
}

// If a job fails while a party is unavailable, the result that the party stored is cancelled before
// the next job.
func TestSweep(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	p := f.parties[1]
	for id, q := range map[string]*coordinatorv1.JobRequest{"jtuples": scalarJob(epoch), "jkeys": keysJob()} {
		s := &fakeSession{party: p, spec: f.running.spec(&coordinatorv1.Job{Id: id, Ordinal: 3, Request: q, Epoch: 7}, time.Now()),
			changed: make(chan struct{}), status: &jobv1.SessionStatus{}}
		p.change(func(p *fakeParty) { p.sessions[id+"-3"] = s })
		s.store([32]byte{})
	}
	if n := f.locked(); n != 2 {
		t.Fatalf("%d results are locked", n)
	}
	f.complete(scalarJob(epoch))
}

func TestRestart(t *testing.T) {
	f := newNet(t, 2)
	for _, p := range f.parties {
		p.onRun = func(s *fakeSession) { s.waits(3, 1) }
	}
	running, queued := f.submit(keysJob()), f.submit(keysJob())
	f.until(running, waitsFor("round 3"))
	watched := make(chan error, 1)
	stream, err := f.client.WatchJob(t.Context(), &coordinatorv1.WatchJobRequest{Id: queued})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for err == nil {
			_, err = stream.Recv()
		}
		watched <- err
	}()
	f.stop()
	if err := <-watched; !is(err, rpc.Unavailable) {
		t.Errorf("a watcher of a coordinator that stops: %v", err)
	}
	for _, p := range f.parties {
		p.change(func(p *fakeParty) {
			p.onRun = nil
			for id, s := range p.sessions {
				if s.status.GetState() != cancelled {
					t.Errorf("session %s of party %d is %s", id, p.index, s.status.GetState())
				}
			}
		})
	}
	// A crash leaves such a record, and sessions without a leader.
	crashed := &coordinatorv1.Job{Id: "j0000000000000-0000", Request: keysJob(), State: jobv1.JobState_JOB_STATE_GENERATING, Ordinal: 1, Epoch: 9}
	orphan := f.running.spec(crashed, time.Now().Add(time.Minute))
	for _, p := range f.parties {
		p.change(func(p *fakeParty) { p.onRun = func(*fakeSession) {} })
		if _, err := p.start(orphan); err != nil {
			t.Fatal(err)
		}
		p.change(func(p *fakeParty) { p.onRun = nil })
	}
	r, err := openRecords(f.file.DataDir + "/jobs.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.put(crashed, ""); err != nil {
		t.Fatal(err)
	}
	r.close()
	f.begin()
	if j := f.get(running); j.GetState() != failed || !strings.Contains(j.GetReason(), "the coordinator stopped") {
		t.Errorf("the job that ran: %s, %q", j.GetState(), j.GetReason())
	}
	if j := f.until(queued, over); j.GetState() != completed {
		t.Errorf("the job that waited: %s, %v", j.GetState(), j.GetFailure())
	}
	if j := f.get(crashed.Id); j.GetState() != failed || !strings.Contains(j.GetReason(), "the coordinator restarted") {
		t.Errorf("the job of the crash: %s, %q", j.GetState(), j.GetReason())
	}
	for _, p := range f.parties {
		if st := p.sessions[name(orphan.GetRef())].status; st.GetState() != cancelled {
			t.Errorf("party %d: an orphan is %s", p.index, st.GetState())
		}
	}
}

func TestAPI(t *testing.T) {
	f := newNet(t, 2)
	ask := func(change func(*coordinatorv1.JobRequest)) *coordinatorv1.SubmitJobRequest {
		q := scalarJob(1)
		change(q)
		return &coordinatorv1.SubmitJobRequest{Job: q}
	}
	for name, c := range map[string]struct {
		r    *coordinatorv1.SubmitJobRequest
		want rpc.Code
	}{
		"no job":         {&coordinatorv1.SubmitJobRequest{}, rpc.PolicyRefused},
		"unpinned set":   {ask(func(q *coordinatorv1.JobRequest) { q.Params = "S14-64" }), rpc.PolicyRefused},
		"no epoch":       {ask(func(q *coordinatorv1.JobRequest) { q.Epoch = 0 }), rpc.Invalid},
		"no count":       {ask(func(q *coordinatorv1.JobRequest) { q.Count = 0 }), rpc.Invalid},
		"no kind":        {ask(func(q *coordinatorv1.JobRequest) { q.Kind = 0 }), rpc.Invalid},
		"no tenant":      {ask(func(q *coordinatorv1.JobRequest) { q.Tenant = "" }), rpc.Invalid},
		"tenant":         {ask(func(q *coordinatorv1.JobRequest) { q.Tenant = "../x" }), rpc.Forbidden},
		"purpose":        {ask(func(q *coordinatorv1.JobRequest) { q.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION }), rpc.KeyPurpose},
		"negative time":  {ask(func(q *coordinatorv1.JobRequest) { q.Timeout = durationpb.New(-1) }), rpc.Invalid},
		"long key":       {&coordinatorv1.SubmitJobRequest{Job: scalarJob(1), IdempotencyKey: strings.Repeat("k", 65)}, rpc.TooLarge},
		"no products":    {ask(func(q *coordinatorv1.JobRequest) { q.Kind, q.NoSacrifice = jobv1.Kind_KIND_RANDOM, true }), rpc.Invalid},
		"no such party":  {ask(func(q *coordinatorv1.JobRequest) { q.Kind, q.InputParty = jobv1.Kind_KIND_INPUT, 2 }), rpc.Invalid},
		"matrix, no dim": {ask(func(q *coordinatorv1.JobRequest) { q.Kind = jobv1.Kind_KIND_MATRIX; q.Dim = 3 }), rpc.Invalid},
	} {
		if _, err := f.client.SubmitJob(t.Context(), c.r); !is(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	viewer, other := f.dial("viewer"), f.dial("other")
	if _, err := viewer.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: keysJob()}); !is(err, rpc.Forbidden) {
		t.Errorf("a client without permission: %v", err)
	}
	submit := func(c coordinatorv1.CoordinatorServiceClient, q *coordinatorv1.JobRequest) (string, error) {
		r, err := c.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: q, IdempotencyKey: "k"})
		return r.GetJob().GetId(), err
	}
	first, err := submit(f.client, keysJob())
	if err != nil {
		t.Fatal(err)
	}
	f.until(first, over)
	if again, err := submit(f.client, keysJob()); err != nil || again != first {
		t.Errorf("the same key: %s, %v", again, err)
	}
	if _, err := submit(f.client, scalarJob(1)); !is(err, rpc.Conflict) {
		t.Errorf("the same key for another job: %v", err)
	}
	nine := scalarJob(1)
	nine.Epoch = 9
	if _, err := f.client.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: nine}); !is(err, rpc.NotFound) {
		t.Errorf("an epoch that no party has: %v", err)
	}
	theirs, err := submit(other, keysJob())
	if err != nil || theirs == first {
		t.Errorf("the same key of another client: %s, %v", theirs, err)
	}
	f.until(theirs, over)
	third := f.complete(keysJob()).GetId()
	list := func(r *coordinatorv1.ListJobsRequest) (string, string) {
		out, err := viewer.ListJobs(t.Context(), r)
		if err != nil {
			t.Error(err)
		}
		var ids []string
		for _, j := range out.GetJobs() {
			ids = append(ids, j.GetId())
		}
		return strings.Join(ids, " "), out.GetNext()
	}
	for _, c := range []struct {
		r          *coordinatorv1.ListJobsRequest
		want, next string
	}{
		{&coordinatorv1.ListJobsRequest{}, third + " " + theirs + " " + first, ""},
		{&coordinatorv1.ListJobsRequest{Limit: 2}, third + " " + theirs, theirs},
		{&coordinatorv1.ListJobsRequest{Limit: 2, Before: theirs}, first, ""},
		{&coordinatorv1.ListJobsRequest{States: []jobv1.JobState{failed}}, "", ""},
		{&coordinatorv1.ListJobsRequest{States: []jobv1.JobState{completed}, Limit: 3}, third + " " + theirs + " " + first, ""},
	} {
		if got, next := list(c.r); got != c.want || next != c.next {
			t.Errorf("%v: %q and %q, want %q and %q", c.r, got, next, c.want, c.next)
		}
	}
	if _, err := viewer.ListJobs(t.Context(), &coordinatorv1.ListJobsRequest{Limit: 1001}); err == nil {
		t.Error("a limit of 1001 was accepted")
	}
	if _, err := viewer.GetJob(t.Context(), &coordinatorv1.GetJobRequest{Id: "j0"}); !is(err, rpc.NotFound) {
		t.Errorf("a missing job: %v", err)
	}
}

// A party that has erased its result ends the job, which would otherwise be activated forever.
func TestAnErasedResultEndsTheJob(t *testing.T) {
	f := newNet(t, 3)
	epoch := f.complete(keysJob()).GetEpoch()
	f.parties[1].change(func(p *fakeParty) {
		p.onActivate = func() error { return rpc.Errorf(rpc.Burnt, "", "the batch is erased") }
	})
	j := f.until(f.submit(scalarJob(epoch)), over)
	if j.GetState() != failed || !strings.Contains(j.GetFailure().GetReason(), "party 1 (p1) has erased its result") {
		t.Errorf("%s, %v", j.GetState(), j.GetFailure())
	}
}

// A party cannot exhaust the epoch numbers.
func TestAPartyFarAhead(t *testing.T) {
	f := newNet(t, 3)
	first := f.complete(keysJob()).GetEpoch()
	f.parties[2].change(func(p *fakeParty) {
		p.epochs = append(p.epochs, &keygenv1.Epoch{Epoch: 1<<64 - 2, State: keygenv1.EpochState_EPOCH_STATE_ACTIVE})
	})
	j := f.until(f.submit(keysJob()), over)
	if j.GetState() != failed || !strings.Contains(j.GetFailure().GetReason(), "party 2") {
		t.Errorf("%s, %v", j.GetState(), j.GetFailure())
	}
	f.parties[2].change(func(p *fakeParty) { p.epochs = p.epochs[:len(p.epochs)-1] })
	if next := f.complete(keysJob()).GetEpoch(); next != first+1 {
		t.Errorf("epoch %d after %d", next, first)
	}
}

// A new epoch has a number that neither the coordinator nor any party has seen: not even if the
// parties have lost the epochs before, or if a session under the number failed.
func TestEpochsAreNumberedOnce(t *testing.T) {
	f := newNet(t, 3)
	first := f.complete(keysJob()).GetEpoch()
	f.parties[1].change(func(p *fakeParty) {
		p.epochs = append(p.epochs, &keygenv1.Epoch{Epoch: first + 5, State: keygenv1.EpochState_EPOCH_STATE_RETIRED})
	})
	if next := f.complete(keysJob()).GetEpoch(); next != first+6 {
		t.Errorf("epoch %d, but a party knows epoch %d", next, first+5)
	}
	for _, p := range f.parties {
		p.change(func(p *fakeParty) { p.epochs = nil })
	}
	if next := f.complete(keysJob()).GetEpoch(); next != first+7 {
		t.Errorf("epoch %d, but epoch %d was made before", next, first+6)
	}
}
