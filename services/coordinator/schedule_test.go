package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// progress of three parties, from their statuses.
func progress(statuses ...*jobv1.SessionStatus) (list []*coordinatorv1.PartyProgress) {
	for i, st := range statuses {
		list = append(list, &coordinatorv1.PartyProgress{Party: uint32(i), Name: "p" + string(rune('0'+i)), Reachable: true, Status: st})
	}
	return list
}

func TestNextStep(t *testing.T) {
	for s := range jobv1.JobState_name {
		state := jobv1.JobState(s)
		want := stepAbandon
		switch {
		case state == pending:
			want = stepLead
		case state == activating:
			want = stepActivate
		case job.Final(state):
			want = stepNone
		}
		if got := nextStep(state); got != want {
			t.Errorf("%s: %d, want %d", state, got, want)
		}
	}
}

// Whatever three parties report, in whatever order, a job only moves forwards, and never past STORING.
func TestObserve(t *testing.T) {
	states := []jobv1.JobState{0, preparing, jobv1.JobState_JOB_STATE_GENERATING, jobv1.JobState_JOB_STATE_VERIFYING, storing, activating, completed, failed}
	for _, a := range states {
		for _, b := range states {
			for _, c := range states {
				j := &coordinatorv1.Job{State: preparing, Parties: progress(nil, nil, nil)}
				last := j.State
				for i, s := range []jobv1.JobState{a, b, c} {
					observe(j, i, &jobv1.SessionStatus{State: s})
					if j.State < last || j.State > storing {
						t.Fatalf("%s, %s, %s: from %s to %s", a, b, c, last, j.State)
					}
					last = j.State
				}
				if want := min(storing, max(preparing, min(a, b, c))); j.State != want {
					t.Errorf("%s, %s, %s: %s, want %s", a, b, c, j.State, want)
				}
			}
		}
	}
	j := &coordinatorv1.Job{State: preparing, Parties: progress(nil, nil)}
	observe(j, 1, &jobv1.SessionStatus{State: failed, Failure: &jobv1.Failure{
		Outcome: "blame", Reason: strings.Repeat("x", 1<<20), Blame: &jobv1.Blame{Party: 2},
	}})
	if f := j.Parties[1].Status.Failure; len(f.Reason) > maxReason || f.Blame != nil {
		t.Errorf("a failure of %d bytes, blaming %v", len(f.Reason), f.Blame)
	}
}

func TestWaiting(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(round uint32, ago int64, who ...uint32) *jobv1.SessionStatus {
		return &jobv1.SessionStatus{State: jobv1.JobState_JOB_STATE_GENERATING, Progress: &jobv1.Progress{
			Round: "open", RoundIndex: round, WaitingFor: who, Since: timestamppb.New(time.Unix(1000-ago, 0)),
		}}
	}
	gone := progress(at(3, 1, 1), at(3, 1, 0))
	gone[1].Reachable = false
	for _, c := range []struct {
		parties []*coordinatorv1.PartyProgress
		want    string
	}{
		{progress(nil, nil, nil), ""},
		{progress(at(3, 1), at(3, 1)), ""}, // computing
		{progress(at(3, 41, 2), at(3, 40, 2), at(4, 1, 0)), "waiting for party 2, round 3 (open), 41 s"},
		{progress(at(5, 1, 1), at(4, 7, 0, 2)), "waiting for parties 0, 2, round 4 (open), 7 s"},
		{progress(at(3, -5, 2)), "waiting for party 2, round 3 (open), 0 s"}, // clocks differ
		{gone, "party 1 (p1) cannot be reached"},
		{progress(&jobv1.SessionStatus{State: activating, Progress: at(9, 1, 1).Progress}), ""},
	} {
		if got := waiting(c.parties, now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAgreed(t *testing.T) {
	good := &jobv1.SessionStatus{Digest: make([]byte, 32), Epoch: 3, BatchId: "j-1", Count: 7}
	if f := agreed(progress(good, good, good)); f != nil {
		t.Fatal(f)
	}
	for name, change := range map[string]func(*jobv1.SessionStatus){
		"digest": func(s *jobv1.SessionStatus) { s.Digest[31]++ },
		"none":   func(s *jobv1.SessionStatus) { s.Digest = nil },
		"epoch":  func(s *jobv1.SessionStatus) { s.Epoch++ },
		"batch":  func(s *jobv1.SessionStatus) { s.BatchId += "x" },
		"count":  func(s *jobv1.SessionStatus) { s.Count++ },
	} {
		for who := range 3 {
			list := progress(proto.CloneOf(good), proto.CloneOf(good), proto.CloneOf(good))
			change(list[who].Status)
			if f := agreed(list); f.GetOutcome() != outcomeAbort || f.GetCheck() != "result" {
				t.Errorf("%s of party %d differs: %v", name, who, f)
			}
		}
	}
	none := proto.CloneOf(good)
	none.Digest = nil
	if agreed(progress(none, none)) == nil {
		t.Error("no digest at all is taken for agreement")
	}
}

func TestVerdict(t *testing.T) {
	fails := func(party int, f *jobv1.Failure) ended {
		return ended{party: party, name: "p" + string(rune('0'+party)), status: &jobv1.SessionStatus{State: failed, Failure: f}}
	}
	outcome := func(party int, o string) ended { return fails(party, &jobv1.Failure{Outcome: o, Reason: o + " here"}) }
	blames := func(party int, whom uint32) ended {
		return fails(party, &jobv1.Failure{Outcome: outcomeBlame, Reason: "a bad proof", Blame: &jobv1.Blame{Party: whom}})
	}
	calls := func(party int, err error) ended {
		return ended{party: party, name: "p" + string(rune('0'+party)), err: err}
	}
	fine := func(party int) ended { return ended{party: party} }
	for _, c := range []struct {
		name    string
		ends    []ended
		state   jobv1.JobState
		outcome string
		reason  string // contained
		blame   int    // -1 for nobody
	}{
		{"all well", []ended{fine(0), fine(1)}, completed, "", "", -1},
		{"nobody", nil, completed, "", "", -1},
		{"blame before consequences", []ended{outcome(0, outcomePeerAbort), blames(1, 2), outcome(2, outcomeAbort)}, failed, outcomeBlame, "a bad proof", 2},
		{"abort before timeout", []ended{outcome(0, outcomeTimeout), outcome(1, outcomeAbort)}, failed, outcomeAbort, "abort here", -1},
		{"timeout before peers' words", []ended{outcome(0, outcomePeerAbort), outcome(1, outcomeTimeout)}, timedOut, outcomeTimeout, "timeout here", -1},
		{"an outcome nobody knows", []ended{fine(0), outcome(1, "fine")}, failed, "fine", "fine here", -1},
		{"no failure given", []ended{fine(0), fails(1, nil)}, failed, outcomeInternal, "party 1 (p1) ended", -1},
		{"a party stops", []ended{outcome(0, outcomePeerAbort), outcome(1, outcomeCancelled)}, failed, outcomeCancelled, "party 1 (p1): cancelled here", -1},
		{"own fault", []ended{outcome(0, outcomeTimeout), outcome(1, outcomeInternal)}, failed, outcomeInternal, "party 1 (p1): internal", -1},
		{"majority", []ended{blames(0, 2), blames(1, 2), blames(2, 0)}, failed, outcomeBlame, "a bad proof; according to party 2 it is party 0", 2},
		{"minority first", []ended{blames(0, 1), blames(1, 0), blames(2, 0)}, failed, outcomeBlame, "according to party 0 it is party 1", 0},
		{"tie", []ended{blames(0, 1), blames(1, 0)}, failed, outcomeBlame, "according to party 0 it is party 1", 0},
		{"refused", []ended{calls(0, errGaveUp), calls(1, rpc.Errorf(rpc.PolicyRefused, "ask for less", "too many"))}, failed, outcomeRefused, "party 1 (p1) refuses: too many (ask for less)", -1},
		{"unreachable", []ended{outcome(0, outcomeTimeout), calls(1, status.Error(codes.Unavailable, "refused"))}, failed, outcomeTimeout, "party 1 (p1) cannot be reached", -1},
		{"restarted", []ended{outcome(0, outcomeTimeout), begun(calls(1, rpc.Errorf(rpc.NotFound, "", "no session")))}, failed, outcomeAbort, "party 1 (p1) has lost its session", -1},
		{"no such epoch", []ended{calls(0, errGaveUp), calls(1, rpc.Errorf(rpc.NotFound, "", "no epoch 9 at this party"))}, failed, outcomeRefused, "party 1 (p1) refuses: no epoch 9", -1},
		{"given up", []ended{calls(0, errGaveUp), calls(1, errGaveUp)}, failed, outcomeCancelled, "gave up", -1},
		{"an error of no kind", []ended{calls(0, errors.New("odd"))}, failed, outcomeRefused, "odd", -1},
	} {
		state, f := verdict(c.ends)
		blame := -1
		if f.GetBlame() != nil {
			blame = int(f.GetBlame().GetParty())
		}
		if state != c.state || f.GetOutcome() != c.outcome || !strings.Contains(f.GetReason(), c.reason) || blame != c.blame {
			t.Errorf("%s: %s, %v", c.name, state, f)
		}
	}
}

func begun(e ended) ended {
	e.begun = true
	return e
}

// Whatever a party says, its job can be written, read and listed.
func TestWhatIsHeardIsBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	many := make([]uint32, 1<<20)
	for i := range many {
		many[i] = 7
	}
	st := &jobv1.SessionStatus{
		Ref: &jobv1.SessionRef{JobId: long}, Digest: []byte(long), BatchId: "x" + long, KeygenSecurity: long, Started: &timestamppb.Timestamp{Seconds: 1 << 62},
		Progress: &jobv1.Progress{Round: long, WaitingFor: many, Since: &timestamppb.Timestamp{Nanos: -1}},
		Failure: &jobv1.Failure{Outcome: outcomeBlame, Round: long, Check: long, Reason: "x" + long, Suspects: append([]uint32{2}, many...),
			Blame: &jobv1.Blame{Party: 1, Check: long, Reason: long}},
	}
	got := heard(st, 3)
	b, err := proto.Marshal(got)
	if err != nil || len(b) > 4000 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if f := got.GetFailure(); f.GetBlame().GetParty() != 1 || len(f.GetSuspects()) != 1 || f.GetSuspects()[0] != 2 || !strings.HasPrefix(f.GetReason(), "xé") {
		t.Errorf("lost what it said: %v", f)
	}
	if got.GetStarted() != nil || got.GetProgress().GetSince() != nil {
		t.Error("a time that cannot be shown")
	}
	st.Failure.Blame.Party = 3
	if heard(st, 3).GetFailure().GetBlame() != nil {
		t.Error("blame of a party that does not exist")
	}
	again := heard(got, 3)
	if !proto.Equal(got, again) {
		t.Error("what was heard changes when it is heard again")
	}
	if heard(nil, 3) == nil {
		t.Error("nothing heard")
	}
}
