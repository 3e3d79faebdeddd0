package coordinator

import (
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A job does not begin while a party is stopping, and waits until the party is back.
func TestJobsWaitForAPartyThatStops(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	f.stop()
	f.file.PartyTimeout = config.Duration(time.Hour)
	f.begin()
	p := f.parties[1]
	p.server.SetReady(false)
	p.mu.Lock()
	p.onStart = func(*jobv1.SessionSpec) error {
		if !p.server.Ready() {
			return rpc.Errorf(rpc.Unavailable, "", "this party is stopping")
		}
		return nil
	}
	p.mu.Unlock()
	id := f.submit(in("p128", epoch))
	f.until(id, func(j *coordinatorv1.Job) bool { return over(j) || waitsFor("waiting to reach party 1 (p1)")(j) })
	p.server.SetReady(true)
	if j := f.until(id, over); j.GetState() != completed {
		t.Errorf("%s, %v", j.GetState(), j.GetFailure())
	}
}

// A stopping coordinator waits for running jobs and begins no others; the next process begins them.
// Meanwhile it still serves its clients.
func TestStopWaitsForWhatRuns(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	f.stop()
	f.file.StopAfter, f.file.MaxConcurrent = config.Duration(time.Hour), 1
	f.begin()
	g := f.gate()
	running, waiting := f.submit(in("p128", epoch)), f.submit(in("p256", epoch))
	g.runs(running)
	stopped := make(chan struct{})
	go func() {
		f.stop()
		close(stopped)
	}()
	health := healthpb.NewHealthClient(f.conn("operator"))
	for serving := true; serving; time.Sleep(time.Millisecond) {
		r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		serving = r.GetStatus() == healthpb.HealthCheckResponse_SERVING
	}
	if j := f.get(running); j.GetState() >= activating {
		t.Errorf("what runs: %s", j.GetState())
	}
	g.open(running)
	<-stopped
	f.file.StopAfter = 0
	f.begin()
	if j := f.until(running, over); j.GetState() != completed {
		t.Errorf("what ran: %s, %v", j.GetState(), j.GetFailure())
	}
	if j := f.until(waiting, func(j *coordinatorv1.Job) bool { return j.GetState() != pending }); j.GetOrdinal() != 1 {
		t.Errorf("what waited: attempt %d", j.GetOrdinal())
	}
	g.completes(waiting)
}
