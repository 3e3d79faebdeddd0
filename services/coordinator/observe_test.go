package coordinator

import (
	"testing"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// A waiting job has exactly one of a fixed set of reasons.
func TestWaitsFor(t *testing.T) {
	const generating = jobv1.JobState_JOB_STATE_GENERATING
	party := func(reachable bool, waits ...uint32) *coordinatorv1.PartyProgress {
		return &coordinatorv1.PartyProgress{Reachable: reachable, Status: &jobv1.SessionStatus{
			State: generating, Progress: &jobv1.Progress{WaitingFor: waits},
		}}
	}
	for want, e := range map[string]*entry{
		waitsQueue:      {job: &coordinatorv1.Job{State: pending}},
		waitsRoom:       {job: &coordinatorv1.Job{State: pending}, refused: "full"},
		waitsStart:      {job: &coordinatorv1.Job{State: pending}, begun: true},
		waitsReachable:  {job: &coordinatorv1.Job{State: generating, Parties: []*coordinatorv1.PartyProgress{party(true, 1), party(false)}}},
		waitsMessages:   {job: &coordinatorv1.Job{State: generating, Parties: []*coordinatorv1.PartyProgress{party(true, 1), party(true)}}},
		waitsNothing:    {job: &coordinatorv1.Job{State: generating, Parties: []*coordinatorv1.PartyProgress{party(true), party(true)}}},
		waitsActivation: {job: &coordinatorv1.Job{State: activating}},
		waitsEnd:        {job: &coordinatorv1.Job{State: generating}, stop: "obsolete"},
	} {
		if got := e.waitsFor(); got != want {
			t.Errorf("%v waits for %s, not %s", e.job, got, want)
		}
	}
}

// A job progresses when its state changes or a party reports progress. An unreachable party is not
// progress.
func TestMoved(t *testing.T) {
	job := func(state jobv1.JobState, reachable bool, bytes uint64) *coordinatorv1.Job {
		return &coordinatorv1.Job{State: state, Parties: []*coordinatorv1.PartyProgress{{
			Reachable: reachable, Status: &jobv1.SessionStatus{Progress: &jobv1.Progress{ReceivedBytes: bytes}},
		}}}
	}
	old := job(preparing, true, 5)
	for _, c := range []struct {
		next  *coordinatorv1.Job
		moved bool
	}{
		{job(preparing, true, 5), false}, {job(preparing, false, 5), false}, {job(preparing, true, 6), true}, {job(storing, true, 5), true},
	} {
		if moved(old, c.next) != c.moved {
			t.Errorf("%v after %v", c.next, old)
		}
	}
}
