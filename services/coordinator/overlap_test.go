package coordinator

import (
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// gated makes the sessions of all parties wait in round 3 until the test releases their job.
type gated struct {
	*fakeNet
	mu    sync.Mutex
	gates map[string]chan struct{} // by job
}

// gate holds every session that starts from now on.
func (f *fakeNet) gate() *gated {
	g := &gated{fakeNet: f, gates: map[string]chan struct{}{}}
	for _, p := range f.parties {
		p.change(func(p *fakeParty) {
			p.onRun = func(s *fakeSession) {
				s.waits(3, 1)
				select {
				case <-g.of(s.spec.GetRef().GetJobId()):
					s.succeed()
				case <-f.Context().Done():
				}
			}
		})
	}
	return g
}

func (g *gated) of(id string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates[id] == nil {
		g.gates[id] = make(chan struct{})
	}
	return g.gates[id]
}

func (g *gated) open(id string) { close(g.of(id)) }

// runs waits until the sessions of a job run.
func (g *gated) runs(id string) { g.Helper(); g.until(id, waitsFor("round 3")) }

// completes releases a job and waits for its end.
func (g *gated) completes(id string) *coordinatorv1.Job {
	g.Helper()
	g.open(id)
	j := g.until(id, over)
	if j.GetState() != completed {
		g.Errorf("%s: %s, %v", id, j.GetState(), j.GetFailure())
	}
	return j
}

// pending checks that jobs do not begin for a while.
func (g *gated) pending(ids ...string) {
	g.Helper()
	time.Sleep(100 * time.Millisecond)
	for _, id := range ids {
		if j := g.get(id); j.GetState() != pending {
			g.Errorf("job %s is %s", id, j.GetState())
		}
	}
}

func in(field string, epoch uint64) *coordinatorv1.JobRequest {
	q := scalarJob(epoch)
	q.Field = field
	return q
}

// Two jobs run concurrently and in order; key generation runs exclusively; later jobs see the
// results of earlier ones.
func TestTwoAtATime(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	g := f.gate()
	first, second, other := f.submit(scalarJob(epoch)), f.submit(scalarJob(epoch)), f.submit(in("p256", epoch))
	g.runs(first)
	g.runs(other) // the second waits for the MAC key of the first
	g.pending(second)
	if n := f.running.running(); n != 2 {
		t.Errorf("%d jobs run", n)
	}
	g.completes(first)
	g.runs(second)
	keys, last := f.submit(keysJob()), f.submit(scalarJob(epoch))
	g.completes(other)
	g.pending(keys, last)
	if got := f.jobsMetric("pending") + f.jobsMetric("generating"); got != 3 {
		t.Errorf("lodge_jobs counts %v jobs", got)
	}
	g.completes(second)
	g.runs(keys)
	g.pending(last)
	if j := g.completes(keys); j.GetEpoch() != epoch+1 {
		t.Errorf("epoch %d after %d", j.GetEpoch(), epoch)
	}
	g.runs(last)
	beside := f.submit(scalarJob(epoch))
	g.runs(beside) // the MAC key exists now
	g.completes(beside)
	g.completes(last)
	if n := f.locked(); n != 0 {
		t.Errorf("%d results stay locked", n)
	}
}

// jobsMetric returns the value of lodge_jobs for a state.
func (f *fakeNet) jobsMetric(state string) (value float64) {
	f.Helper()
	all, err := f.running.metrics.Registry().Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range all {
		for _, x := range m.GetMetric() {
			if m.GetName() == "lodge_jobs" && x.GetLabel()[1].GetValue() == state {
				value += x.GetGauge().GetValue()
			}
		}
	}
	return value
}

// With one place, jobs run sequentially.
func TestOneAtATime(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	f.stop()
	f.file.MaxConcurrent = 1
	f.begin()
	g := f.gate()
	first, second := f.submit(in("p128", epoch)), f.submit(in("p256", epoch))
	g.runs(first)
	g.pending(second)
	g.completes(first)
	g.completes(second)
}

// If a party refuses a job because of a concurrent job, the job waits for the other to end and
// starts again under a new ordinal. If no other job runs, the refusal is a failure.
func TestRefusedForRoom(t *testing.T) {
	f := newNet(t, 3)
	epoch := f.complete(keysJob()).GetEpoch()
	g := f.gate()
	first := f.submit(in("p128", epoch))
	g.runs(first)
	var most int // the largest number of sessions at party 2
	f.parties[2].change(func(p *fakeParty) {
		most = 1
		p.onStart = func(*jobv1.SessionSpec) error {
			n := 0
			for _, s := range p.sessions {
				if s.status.GetState() < activating {
					n++
				}
			}
			if n >= most {
				return rpc.Errorf(rpc.Busy, "try again when something has ended", "running jobs hold about 7 bytes")
			}
			return nil
		}
	})
	second, third := f.submit(in("p256", epoch)), f.submit(in("p512", epoch))
	j := f.until(second, waitsFor("waiting for concurrent jobs: party 2 (p2) refuses: running jobs hold about 7 bytes"))
	if j.GetState() != pending || j.GetOrdinal() != 1 || len(j.GetParties()) != 0 || j.GetStarted() != nil || j.GetFailure() != nil {
		t.Errorf("put back: %v", j)
	}
	g.pending(second, third) // no later job overtakes it
	for _, p := range f.parties[:2] {
		p.change(func(p *fakeParty) {
			if s := p.sessions[second+"-1"]; s == nil || s.status.GetState() != cancelled {
				t.Errorf("party %d: the refused session is %v", p.index, s)
			}
		})
	}
	g.completes(first)
	g.runs(second)
	if j := g.completes(second); j.GetOrdinal() != 2 || j.GetBatchId() != second+"-2" {
		t.Errorf("after the other: ordinal %d, batch %s", j.GetOrdinal(), j.GetBatchId())
	}
	g.completes(third)
	f.parties[2].change(func(*fakeParty) { most = 0 })
	j = f.until(f.submit(in("p1024", epoch)), over)
	if j.GetState() != failed || j.GetFailure().GetCheck() != string(rpc.Busy) {
		t.Errorf("refused with no other job running: %s, %v", j.GetState(), j.GetFailure())
	}
	f.parties[0].change(func(p *fakeParty) {
		if p.sessions[j.GetId()+"-1"] != nil {
			t.Error("a party was asked before the party that had refused earlier")
		}
	})
	if n := f.locked(); n != 0 {
		t.Errorf("%d results stay locked", n)
	}
}

// A session that a party ends because of concurrent sessions is retried too. A job that was put
// back can be cancelled, and the next job does not wait for it.
func TestPutBackAndCancelled(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	g := f.gate()
	first := f.submit(in("p128", epoch))
	g.runs(first)
	f.parties[0].change(func(p *fakeParty) {
		run := p.onRun
		p.onRun = func(s *fakeSession) {
			if s.spec.GetField() != "p256" || s.spec.GetRef().GetOrdinal() > 1 {
				run(s)
				return
			}
			s.fails(&jobv1.Failure{Outcome: outcomeRefused, Check: string(rpc.Busy), Reason: "another session makes the MAC key"})
		}
	})
	again, mistaken := f.submit(in("p256", epoch)), f.submit(in("p256", epoch))
	f.until(again, waitsFor("party 0 (p0) refuses: another session makes the MAC key"))
	if _, err := f.client.CancelJob(t.Context(), &coordinatorv1.CancelJobRequest{Id: again, Reason: "a mistake"}); err != nil {
		t.Fatal(err)
	}
	if j := f.get(again); j.GetState() != cancelled || j.GetFailure().GetReason() != "cancelled: a mistake" {
		t.Errorf("%s, %v", j.GetState(), j.GetFailure())
	}
	f.until(mistaken, waitsFor("refuses: another session makes the MAC key"))
	g.completes(first)
	g.runs(mistaken)
	g.completes(mistaken)
}

// If one of two jobs ends in any way, the other continues. Each job has its own deadline.
func TestTheOtherGoesOn(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	f.complete(scalarJob(epoch))
	g := f.gate()
	ends := map[string]func(id string){
		"cancelled": func(id string) {
			if _, err := f.client.CancelJob(t.Context(), &coordinatorv1.CancelJobRequest{Id: id}); err != nil {
				t.Error(err)
			}
		},
		"failed": func(id string) {
			f.parties[1].change(func(p *fakeParty) {
				p.sessions[id+"-1"].setLocked(func(st *jobv1.SessionStatus) {
					st.State, st.Failure = failed, &jobv1.Failure{Outcome: outcomeAbort, Check: "mac", Reason: "not zero"}
				})
			})
		},
		"timed_out": func(string) {},
	}
	for want, end := range ends {
		q := scalarJob(epoch)
		if want == "timed_out" {
			q.Timeout = durationpb.New(200 * time.Millisecond)
		}
		other, id := f.submit(in("p256", epoch)), f.submit(q)
		g.runs(other)
		g.runs(id)
		end(id)
		if j := f.until(id, over); metricName(j.GetState()) != want {
			t.Errorf("%s: %s, %v", want, j.GetState(), j.GetFailure())
		}
		if j := f.get(other); j.GetState() != jobv1.JobState_JOB_STATE_GENERATING {
			t.Errorf("%s: the other job is %s", want, j.GetState())
		}
		g.completes(other)
		g.completes(f.submit(scalarJob(epoch))) // makes a MAC key if the last one was burnt
	}
}

// A job that begins sweeps the parties. The stored results of another job, whose last party still
// computes, stay.
func TestSweepKeepsWhatRuns(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	g := f.gate()
	hold := f.parties[0].onRun
	f.parties[0].change(func(p *fakeParty) { p.onRun = nil }) // finishes immediately
	first := f.submit(in("p128", epoch))
	g.runs(first)
	f.parties[0].change(func(p *fakeParty) { p.onRun = hold })
	second := f.submit(in("p256", epoch))
	g.runs(second)
	if n := f.locked(); n != 1 {
		t.Errorf("%d results are locked", n)
	}
	g.completes(first)
	g.completes(second)
}

// A stop, or a crash, with two jobs in flight: each job ends with a clear reason and its sessions
// end at all parties. A job that was put back still waits, and waiting jobs continue.
func TestRestartWithTwoInFlight(t *testing.T) {
	for _, crash := range []bool{false, true} {
		f := newNet(t, 2)
		epoch := f.complete(keysJob()).GetEpoch()
		g := f.gate()
		running := []string{f.submit(in("p128", epoch)), f.submit(in("p256", epoch))}
		for _, id := range running {
			g.runs(id)
		}
		waiting := f.submit(in("p512", epoch))
		var before []*coordinatorv1.Job
		for _, id := range running {
			before = append(before, f.get(id))
		}
		f.stop()
		r, err := openRecords(f.file.DataDir + "/jobs.db")
		if err != nil {
			t.Fatal(err)
		}
		if crash { // a crash leaves the records unchanged, and sessions without a leader
			for i, j := range before {
				if err := r.put(j, ""); err != nil {
					t.Fatal(err)
				}
				spec := f.running.spec(j, time.Now().Add(time.Minute))
				for _, p := range f.parties {
					p.change(func(p *fakeParty) { delete(p.sessions, running[i]+"-1") })
					if _, err := p.start(spec); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		back := &coordinatorv1.Job{Id: "j9000000000000-0000", Request: in("p1024", epoch), State: pending, Ordinal: 4}
		if err := r.put(back, ""); err != nil {
			t.Fatal(err)
		}
		r.close()
		f.begin()
		g.completes(waiting)
		if j := g.completes(back.GetId()); j.GetOrdinal() != 5 {
			t.Errorf("ordinal %d after 4", j.GetOrdinal())
		}
		for _, id := range running {
			if j := f.get(id); j.GetState() != failed || !strings.Contains(j.GetReason(), "submit it again") {
				t.Errorf("crash %t: %s, %q", crash, j.GetState(), j.GetReason())
			}
			for _, p := range f.parties {
				p.change(func(p *fakeParty) {
					if st := p.sessions[id+"-1"].status.GetState(); !job.Final(st) {
						t.Errorf("crash %t: party %d: an orphan is %s", crash, p.index, st)
					}
				})
			}
		}
		if n := f.locked(); n != 0 {
			t.Errorf("%d results stay locked", n)
		}
	}
}
