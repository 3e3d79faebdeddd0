package coordinator

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A job's timeout counts from its submission. Time spent waiting is not added when the job begins,
// and a job that still waits at the deadline ends.
func TestAJobsTimeCountsFromItsSubmission(t *testing.T) {
	f := newNet(t, 2)
	g := f.gate()
	first := f.submit(keysJob())
	g.runs(first)
	patient, hasty := keysJob(), keysJob()
	patient.Timeout, hasty.Timeout = durationpb.New(10*time.Second), durationpb.New(300*time.Millisecond)
	second, third := f.submit(patient), f.submit(hasty)
	j := f.until(third, over)
	if j.GetState() != timedOut || j.GetOrdinal() != 0 || j.GetStarted() != nil || j.GetFailure().GetOutcome() != outcomeTimeout ||
		j.GetReason() != "the job's timeout of 300ms from its submission expired; it was waiting for the jobs before it" {
		t.Errorf("%v", j)
	}
	if took := j.GetEnded().AsTime().Sub(j.GetCreated().AsTime()); took < 300*time.Millisecond || took > 2*time.Second {
		t.Errorf("it ended after %s", took)
	}
	g.completes(first)
	g.runs(second)
	j = f.get(second)
	f.parties[0].change(func(p *fakeParty) {
		deadline := p.sessions[second+"-1"].spec.GetDeadline().AsTime()
		if d := deadline.Sub(j.GetCreated().AsTime()); d < 9*time.Second || d > 10*time.Second+100*time.Millisecond {
			t.Errorf("parties have %s from the submission", d)
		}
	})
	g.completes(second)
}

// The same holds for a job that parties refuse repeatedly.
func TestAJobThatIsPutBackEndsInTime(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	g := f.gate()
	first := f.submit(in("p128", epoch))
	g.runs(first)
	f.parties[1].change(func(p *fakeParty) {
		p.onStart = func(*jobv1.SessionSpec) error { return rpc.Errorf(rpc.Busy, "", "no room") }
	})
	q := in("p256", epoch)
	q.Timeout = durationpb.New(400 * time.Millisecond)
	j := f.until(f.submit(q), over)
	if j.GetState() != timedOut || j.GetOrdinal() == 0 || !strings.Contains(j.GetReason(), "it was waiting for concurrent jobs: party 1 (p1) refuses: no room") {
		t.Errorf("%v", j)
	}
	g.completes(first)
}

// The same holds across a restart. A job without a timeout has the coordinator's job_timeout for
// each attempt.
func TestAJobsTimeAcrossARestart(t *testing.T) {
	f := newNet(t, 2)
	g := f.gate()
	first := f.submit(keysJob())
	g.runs(first)
	hasty := keysJob()
	hasty.Timeout = durationpb.New(500 * time.Millisecond)
	second, third := f.submit(hasty), f.submit(keysJob())
	f.stop()
	time.Sleep(600 * time.Millisecond)
	f.file.JobTimeout = config.Duration(700 * time.Millisecond)
	f.begin()
	if j := f.until(second, over); j.GetState() != timedOut || j.GetStarted() != nil {
		t.Errorf("%v", j)
	}
	j := f.until(third, over)
	if took := j.GetEnded().AsTime().Sub(j.GetStarted().AsTime()); j.GetState() != timedOut || took < 500*time.Millisecond {
		t.Errorf("after %s: %v", took, j)
	}
}

func TestDeadlines(t *testing.T) {
	c := &Coordinator{file: &config.CoordinatorFile{JobTimeout: config.Duration(time.Hour)}}
	now := time.Now()
	for name, x := range map[string]struct {
		created, timeout, want time.Duration // from now on; 0: no timeout
	}{
		"no timeout in the request":              {created: -5 * time.Hour, want: time.Hour},
		"longer than job_timeout":                {created: -time.Minute, timeout: 5 * time.Hour, want: time.Hour},
		"the remaining part of a longer timeout": {created: -4*time.Hour - 30*time.Minute, timeout: 5 * time.Hour, want: 30 * time.Minute},
		"shorter":                                {created: -time.Minute, timeout: 5 * time.Minute, want: 4 * time.Minute},
		"over":                                   {created: -time.Hour, timeout: 5 * time.Minute, want: -55 * time.Minute},
		"submitted in the future":                {created: time.Hour, timeout: 5 * time.Minute, want: 5 * time.Minute},
		"the longest time that can be encoded":   {created: -time.Minute, timeout: 1<<63 - 1, want: time.Hour},
	} {
		q := &coordinatorv1.JobRequest{}
		if x.timeout > 0 {
			q.Timeout = durationpb.New(x.timeout)
		}
		e := newEntry(&coordinatorv1.Job{Created: timestamppb.New(now.Add(x.created)), Request: q}, "")
		if got := c.deadline(e).Sub(now); (got - x.want).Abs() > 10*time.Second {
			t.Errorf("%s: %s from now on, want %s", name, got, x.want)
		}
	}
}
