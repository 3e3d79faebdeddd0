package coordinator

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// progress returns the progress of three parties from their statuses.
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

// For all reports of three parties, in any order, a job's state only advances and never passes
// STORING.
func TestObserve(t *testing.T) {
	states := []jobv1.JobState{0, preparing, jobv1.JobState_JOB_STATE_GENERATING, jobv1.JobState_JOB_STATE_VERIFYING, storing, activating, completed, failed}
	for _, a := range states {
		for _, b := range states {
			for _, c := range states {
				j := &coordinatorv1.Job{State: preparing, Parties: progress(nil, nil, nil)}
				last := j.State
				for i, s := range []jobv1.JobState{a, b, c} {
					observe(j, i, &jobv1.SessionStatus{State: s}, 3)
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
	}}, 2)
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
		t.Error("missing digests count as agreement")
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
		blame   int    // -1: no party
	}{
		{"all well", []ended{fine(0), fine(1)}, completed, "", "", -1},
		{"nobody", nil, completed, "", "", -1},
		{"blame before consequences", []ended{outcome(0, outcomePeerAbort), blames(1, 2), outcome(2, outcomeAbort)}, failed, outcomeBlame, "a bad proof", 2},
		{"abort before timeout", []ended{outcome(0, outcomeTimeout), outcome(1, outcomeAbort)}, failed, outcomeAbort, "abort here", -1},
		{"timeout before peers' words", []ended{outcome(0, outcomePeerAbort), outcome(1, outcomeTimeout)}, timedOut, outcomeTimeout, "timeout here", -1},
		{"an unknown outcome", []ended{fine(0), outcome(1, "fine")}, failed, "fine", "fine here", -1},
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
		{"an error without a code", []ended{calls(0, errors.New("odd"))}, failed, outcomeRefused, "odd", -1},
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

// For every report of a party, the job can be written, read and listed.
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
		t.Errorf("dropped valid fields: %v", f)
	}
	if got.GetStarted() != nil || got.GetProgress().GetSince() != nil {
		t.Error("a time that cannot be shown")
	}
	for i := range many {
		many[i] = 1
	}
	if list := heard(st, 3).GetProgress().GetWaitingFor(); len(list) > 3 {
		t.Errorf("a list of %d of 3 parties", len(list))
	}
	st.Failure.Blame.Party = 3
	if heard(st, 3).GetFailure().GetBlame() != nil {
		t.Error("blame of a party that does not exist")
	}
	again := heard(got, 3)
	if !proto.Equal(got, again) {
		t.Error("sanitising a report twice changes it")
	}
	if heard(nil, 3) == nil {
		t.Error("nothing heard")
	}
}

func TestDue(t *testing.T) {
	keys := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS}
	proof := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_PROOF, Epoch: 1, Field: "p128", Tenant: "a"}
	scalar := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Epoch: 1, Field: "p128", Tenant: "a"}
	matrix := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_MATRIX, Epoch: 1, Field: "p128", Tenant: "a"}
	p256 := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Epoch: 1, Field: "p256", Tenant: "a"}
	tenant := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Epoch: 1, Field: "p128", Tenant: "b"}
	second := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Epoch: 2, Field: "p128", Tenant: "a"}
	make := func(s step, begun bool, q *coordinatorv1.JobRequest) task {
		return task{job: &coordinatorv1.Job{Request: q, Epoch: max(1, q.GetEpoch())}, step: s, begun: begun}
	}
	waits := func(q *coordinatorv1.JobRequest) task { return make(stepLead, false, q) }
	runs := func(q *coordinatorv1.JobRequest) task { return make(stepLead, true, q) }
	activates := func(q *coordinatorv1.JobRequest) task { return make(stepActivate, true, q) }
	refused := func(q *coordinatorv1.JobRequest, r refusal) task {
		x := waits(q)
		x.refused = r
		return x
	}
	starts := runs(scalar)
	starts.starts = true
	all := map[slot]bool{{1, "p128", "a"}: true, {1, "p256", "a"}: true, {1, "p128", "b"}: true, {2, "p128", "a"}: true}
	for _, c := range []struct {
		name   string
		tasks  []task
		places int
		keyed  map[slot]bool
		want   []int
	}{
		{"nothing", nil, 2, nil, nil},
		{"one", []task{waits(scalar)}, 2, nil, []int{0}},
		{"in order", []task{waits(scalar), waits(matrix), waits(scalar)}, 2, all, []int{0}},
		{"only one job begins at a time", []task{starts, waits(matrix)}, 2, all, nil},
		{"one place", []task{waits(scalar), waits(scalar)}, 1, all, []int{0}},
		{"there is a free place", []task{runs(scalar), waits(scalar), waits(scalar)}, 2, all, []int{1}},
		{"there is no free place", []task{runs(scalar), runs(p256), waits(scalar)}, 2, all, nil},
		{"key generation runs exclusively", []task{waits(keys), waits(scalar)}, 2, all, []int{0}},
		{"key generation waits for running jobs, and no job overtakes it", []task{runs(scalar), waits(keys), waits(scalar)}, 2, all, nil},
		{"running key generation blocks other jobs", []task{runs(keys), waits(scalar), waits(keys)}, 3, all, nil},
		{"key generation is due when no job runs", []task{activates(scalar), waits(keys), waits(scalar)}, 2, all, []int{1}},
		{"the epoch is being activated", []task{activates(keys), waits(scalar), waits(proof), waits(second), waits(keys)}, 2, all, []int{3}},
		{"one job makes the MAC key; jobs of other slots overtake", []task{waits(scalar), waits(matrix), waits(p256), waits(tenant)}, 3, nil, []int{0}},
		{"another job of the slot waits for it", []task{runs(scalar), waits(matrix), waits(p256), waits(tenant)}, 3, nil, []int{2}},
		{"it is made", []task{runs(scalar), waits(scalar), waits(second)}, 2, nil, []int{2}},
		{"it is locked", []task{activates(scalar), waits(matrix), waits(proof)}, 2, nil, []int{2}},
		{"the MAC key exists", []task{activates(scalar), runs(scalar), waits(matrix)}, 2, all, []int{2}},
		{"the overtaken job comes next", []task{runs(p256), waits(matrix), waits(scalar)}, 2, nil, []int{1}},
		{"a proof needs no MAC key", []task{runs(scalar), waits(proof)}, 2, nil, []int{1}},
		{"no job overtakes a job that was refused next to another", []task{runs(p256), refused(scalar, refusedRunning), waits(tenant)}, 3, all, nil},
		{"the other job has ended", []task{refused(scalar, refusedNever), waits(tenant)}, 2, all, []int{0}},
		{"refused until another is active", []task{activates(scalar), refused(matrix, refusedActivating), waits(tenant)}, 2, all, []int{2}},
		{"except jobs of the same slot", []task{activates(scalar), refused(matrix, refusedActivating), waits(scalar)}, 2, all, nil},
		{"jobs that an earlier process left come first", []task{make(stepAbandon, false, scalar), make(stepActivate, false, keys), waits(p256)}, 2, all, []int{0, 1}},
		{"and alone", []task{make(stepAbandon, true, scalar), waits(p256)}, 2, all, nil},
		{"results that an earlier process left to activate delay no job", []task{make(stepActivate, false, scalar), waits(p256)}, 2, all, []int{0, 1}},
	} {
		if got := due(c.tasks, c.places, c.keyed); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// For all submissions and all orders of ends, every job eventually runs, at most places jobs run
// concurrently, key generation runs exclusively, and two jobs that may make the same MAC key never
// run concurrently.
func TestDueStarvesNobody(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var tasks []task
		for range 12 {
			q := &coordinatorv1.JobRequest{Kind: jobv1.Kind(1 + random.IntN(4)), Epoch: 1, Field: []string{"p64", "p128"}[random.IntN(2)], Tenant: "a"}
			tasks = append(tasks, task{job: &coordinatorv1.Job{Request: q}, step: stepLead})
		}
		places, known := 1+random.IntN(3), map[slot]bool{}
		for steps := 0; len(tasks) > 0; steps++ {
			if steps > 1000 {
				t.Fatalf("%d tasks are never due", len(tasks))
			}
			for list := due(tasks, places, known); len(list) > 0; list = due(tasks, places, known) {
				for _, i := range list {
					tasks[i].begun = true
				}
			}
			var running []int
			made := map[slot]int{}
			keys := 0
			for i, x := range tasks {
				if x.begun && x.step == stepLead {
					running = append(running, i)
					if x.job.Request.Kind == jobv1.Kind_KIND_KEYS {
						keys++
					}
				}
				if s, ok := slotOf(x.job.Request); ok && x.begun {
					made[s]++
				}
			}
			if len(running) > places || keys > 0 && len(running) > 1 {
				t.Fatalf("%d run in %d places, %d of them for keys", len(running), places, keys)
			}
			for s, n := range made {
				if n > 1 && !known[s] {
					t.Fatalf("%d jobs may make the MAC key of %v", n, s)
				}
			}
			var begun []int
			for i, x := range tasks {
				if x.begun {
					begun = append(begun, i)
				}
			}
			i := begun[random.IntN(len(begun))]
			if tasks[i].step == stepLead && random.IntN(3) > 0 {
				tasks[i].step = stepActivate
				continue
			}
			if s, ok := slotOf(tasks[i].job.Request); ok && made[s] == 1 {
				known[s] = tasks[i].step == stepActivate
			}
			tasks = slices.Delete(tasks, i, i+1)
		}
	}
}

func TestKeyed(t *testing.T) {
	at := func(q *coordinatorv1.JobRequest, s jobv1.JobState, ordinal uint32, ended int64) *coordinatorv1.Job {
		j := &coordinatorv1.Job{Request: q, State: s, Ordinal: ordinal}
		if ended > 0 {
			j.Ended = timestamppb.New(time.Unix(ended, 0))
		}
		return j
	}
	q, keys := scalarJob(1), keysJob()
	s, _ := slotOf(q)
	for _, c := range []struct {
		name string
		jobs []*coordinatorv1.Job
		want bool
	}{
		{"nothing", nil, false},
		{"made", []*coordinatorv1.Job{at(q, completed, 1, 5)}, true},
		{"on its way", []*coordinatorv1.Job{at(q, activating, 1, 0)}, false},
		{"perhaps burnt", []*coordinatorv1.Job{at(q, completed, 1, 5), at(q, failed, 1, 6)}, false},
		{"made again", []*coordinatorv1.Job{at(q, failed, 1, 6), at(q, completed, 1, 7)}, true},
		{"the later job ended first", []*coordinatorv1.Job{at(q, failed, 1, 7), at(q, completed, 1, 6)}, false},
		{"cancelled before it began", []*coordinatorv1.Job{at(q, completed, 1, 5), at(q, cancelled, 0, 6)}, true},
		{"keys", []*coordinatorv1.Job{at(keys, completed, 1, 5)}, false},
		{"another runs", []*coordinatorv1.Job{at(q, completed, 1, 5), at(q, storing, 1, 0)}, true},
	} {
		if got := keyed(c.jobs)[s]; got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
