package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// rotate requests a rotation as the given client.
func (f *fakeNet) rotate(client string, q *coordinatorv1.RotateKeysRequest) (*coordinatorv1.Rotation, error) {
	r, err := coordinatorv1.NewCoordinatorServiceClient(f.conn(client)).RotateKeys(f.Context(), q)
	return r.GetRotation(), err
}

// rotates waits until ok accepts a rotation.
func (f *fakeNet) rotates(epoch uint64, ok func(*coordinatorv1.Rotation) bool) *coordinatorv1.Rotation {
	f.Helper()
	var last *coordinatorv1.Rotation
	for range 3000 {
		if last = f.running.rotations.of(epoch); ok(last) {
			return last
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Fatalf("the rotation stays %v", last)
	return nil
}

func inState(s coordinatorv1.RotationState) func(*coordinatorv1.Rotation) bool {
	return func(r *coordinatorv1.Rotation) bool { return r.GetState() == s }
}

// epochs returns the number of epochs that each party has, and each party's state of epoch id.
func (f *fakeNet) epochs(id uint64) (count int, states []string) {
	for _, p := range f.parties {
		p.mu.Lock()
		count = max(count, len(p.epochs))
		for _, e := range p.epochs {
			if e.GetEpoch() == id {
				states = append(states, strings.TrimPrefix(e.GetState().String(), "EPOCH_STATE_"))
			}
		}
		p.mu.Unlock()
	}
	return count, states
}

func (f *fakeNet) policies() (list []*stockv1.Policy) {
	f.Helper()
	r, err := f.stock("keeper").ListPolicies(f.Context(), &stockv1.ListPoliciesRequest{})
	if err != nil {
		f.Fatal(err)
	}
	return r.GetPolicies()
}

// paused returns a policy of an epoch with marks that cause no jobs.
func paused(kind jobv1.Kind, epoch uint64) *stockv1.Policy {
	p := marks(10, 20)
	p.Class.Kind, p.Epoch, p.Paused = kind, epoch, true
	return p
}

// An epoch is replaced once: policies move, parties drain the old epoch and refuse jobs under it,
// and repeating the request changes nothing.
func TestRotate(t *testing.T) {
	f := newNet(t, 2)
	keys := keysJob()
	keys.Dim = 8
	f.complete(keys)
	f.set(paused(jobv1.Kind_KIND_SCALAR, 0))
	f.set(paused(jobv1.Kind_KIND_SQUARE, 1))
	q := &coordinatorv1.RotateKeysRequest{Epoch: 1, Security: proved}
	r, err := f.rotate("rotator", q)
	if err != nil || r.GetState() != rotationMaking && r.GetSuccessor() == 0 || r.GetAttempt() != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	r = f.rotates(1, inState(rotationCompleted))
	if r.GetSuccessor() != 2 || r.GetPolicies() != 1 || r.GetParams() != "S14-32" || r.GetSubmittedBy() != "rotator" || r.GetEnded() == nil {
		t.Errorf("%v", r)
	}
	j := f.get(r.GetJobId())
	if j.GetEpoch() != 2 || j.GetRequest().GetDim() != 8 || j.GetRequest().GetPurpose() != jobv1.Purpose_PURPOSE_TRIPLES {
		t.Errorf("the job is %v", j)
	}
	list := f.policies()
	if len(list) != 2 || !proto.Equal(list[0], paused(jobv1.Kind_KIND_SCALAR, 0)) || !proto.Equal(list[1], paused(jobv1.Kind_KIND_SQUARE, 2)) {
		t.Errorf("policies %v", list)
	}
	if n, states := f.epochs(1); n != 2 || !slices.Equal(states, []string{"DRAINING", "DRAINING"}) {
		t.Errorf("%d epochs; the old one is %v", n, states)
	}
	again, err := f.rotate("rotator", q)
	if err != nil || !proto.Equal(again, r) {
		t.Errorf("again: %v, %v", again, err)
	}
	f.stop()
	f.begin()
	if again, err = f.rotate("rotator", q); err != nil || !proto.Equal(again, r) {
		t.Errorf("after a restart: %v, %v", again, err)
	}
	if n, _ := f.epochs(1); n != 2 {
		t.Errorf("%d epochs", n)
	}
	_, err = f.rotate("rotator", &coordinatorv1.RotateKeysRequest{Epoch: 1})
	refused(t, err, rpc.Conflict)
	_, err = f.client.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: scalarJob(1)})
	refused(t, err, rpc.Conflict)
	f.complete(scalarJob(2))

	all, err := f.client.ListEpochs(t.Context(), &coordinatorv1.ListEpochsRequest{})
	if e := all.GetEpochs(); err != nil || len(e) != 2 || len(all.GetAway()) != 0 || e[0].GetRotation().GetSuccessor() != 2 ||
		len(e[0].GetParties()) != 2 || e[0].GetParties()[1].GetName() != "p1" || e[1].GetParties()[0].GetEpoch().GetDim() != 8 {
		t.Errorf("%v, %v", all, err)
	}
	f.kill(1)
	if all, err = f.client.ListEpochs(t.Context(), &coordinatorv1.ListEpochsRequest{}); err != nil || !slices.Equal(all.GetAway(), []string{"p1"}) {
		t.Errorf("%v, %v", all, err)
	}
}

// If the parameter set changes, policies follow. Policies for the newest epoch of the set follow
// too if the old epoch is the newest.
func TestRotateToAnotherSet(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.complete(keysJob())
	for epoch := range uint64(3) {
		f.set(paused(jobv1.Kind_KIND_SCALAR, epoch))
	}
	names := func() (out []string) {
		for _, p := range f.policies() {
			out = append(out, p.GetClass().GetParams()+"/"+string(rune('0'+p.GetEpoch())))
		}
		return out
	}
	for _, c := range []struct {
		epoch uint64
		want  []string
	}{
		{1, []string{"S14-32/0", "S14-32/2", "S13-8/3"}}, // the old epoch was not the newest
		{2, []string{"S13-8/0", "S13-8/3", "S13-8/4"}},
	} {
		if _, err := f.rotate("rotator", &coordinatorv1.RotateKeysRequest{Epoch: c.epoch, Params: unproved, Dim: 4}); err != nil {
			t.Fatal(err)
		}
		f.rotates(c.epoch, inState(rotationCompleted))
		if got := names(); !slices.Equal(got, c.want) {
			t.Errorf("policies %v, want %v", got, c.want)
		}
	}
	if _, err := f.rotate("rotator", &coordinatorv1.RotateKeysRequest{Epoch: 4, Security: proved}); err != nil {
		t.Fatal(err)
	}
	if r := f.rotates(4, inState(rotationFailed)); !strings.Contains(r.GetReason(), "not proved") {
		t.Errorf("%v", r)
	}
	if _, states := f.epochs(4); !slices.Equal(states, []string{"ACTIVE", "ACTIVE"}) || !slices.Equal(names(), []string{"S13-8/0", "S13-8/3", "S13-8/4"}) {
		t.Errorf("a policy moved to keys that are not proved: %v, %v", states, names())
	}
}

func TestRotateRefuses(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	for name, c := range map[string]struct {
		client string
		q      *coordinatorv1.RotateKeysRequest
		want   rpc.Code
	}{
		"without policy":     {"submitter", &coordinatorv1.RotateKeysRequest{Epoch: 1}, rpc.Forbidden},
		"without submit":     {"keeper", &coordinatorv1.RotateKeysRequest{Epoch: 1}, rpc.Forbidden},
		"no epoch":           {"rotator", &coordinatorv1.RotateKeysRequest{}, rpc.NotFound},
		"another epoch":      {"rotator", &coordinatorv1.RotateKeysRequest{Epoch: 9}, rpc.NotFound},
		"a word":             {"rotator", &coordinatorv1.RotateKeysRequest{Epoch: 1, Security: "best"}, rpc.Invalid},
		"not pinned":         {"rotator", &coordinatorv1.RotateKeysRequest{Epoch: 1, Params: "S99"}, rpc.PolicyRefused},
		"not a power of two": {"rotator", &coordinatorv1.RotateKeysRequest{Epoch: 1, Dim: 3}, rpc.Invalid},
	} {
		if _, err := f.rotate(c.client, c.q); rpc.FromError(err) == nil || rpc.FromError(err).Code != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	state := func(party int, s keygenv1.EpochState) {
		f.parties[party].change(func(p *fakeParty) { p.epochs[0].State = s })
	}
	ask := func() error {
		_, err := f.rotate("rotator", &coordinatorv1.RotateKeysRequest{Epoch: 1})
		return err
	}
	state(0, keygenv1.EpochState_EPOCH_STATE_RETIRED)
	state(1, keygenv1.EpochState_EPOCH_STATE_RETIRED)
	refused(t, ask(), rpc.Burnt)
	state(1, keygenv1.EpochState_EPOCH_STATE_LOCKED)
	refused(t, ask(), rpc.Conflict)
	state(1, keygenv1.EpochState_EPOCH_STATE_ACTIVE)
	var dim uint32
	f.parties[1].change(func(p *fakeParty) { dim, p.epochs[0].Dim = p.epochs[0].Dim, 64 })
	refused(t, ask(), rpc.Conflict)
	f.parties[1].change(func(p *fakeParty) { p.epochs[0].Dim, p.epochs[0].Digest = dim, []byte("other keys") })
	refused(t, ask(), rpc.Conflict)
	f.kill(1)
	refused(t, ask(), rpc.Unavailable)
	if len(f.running.rotations.by) != 0 {
		t.Errorf("refused rotations are recorded: %v", f.running.rotations.by)
	}
}

// A rotation continues after any process ends, and makes no more epochs than necessary.
func TestRotateGoesOn(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(paused(jobv1.Kind_KIND_SCALAR, 1))
	block := make(chan struct{})
	for _, p := range f.parties {
		p.change(func(p *fakeParty) {
			p.onRun = func(s *fakeSession) {
				<-block
				s.succeed()
			}
			p.onDrain = func() error { return rpc.Errorf(rpc.Unavailable, "", "the party is not ready") }
		})
	}
	if _, err := f.rotate("rotator", &coordinatorv1.RotateKeysRequest{Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	first := f.rotates(1, inState(rotationMaking))
	f.until(first.GetJobId(), func(j *coordinatorv1.Job) bool { return len(j.GetParties()) > 0 })
	f.stop() // in the middle of the job, which ends with the coordinator
	for _, p := range f.parties {
		p.change(func(p *fakeParty) { p.onRun = nil })
	}
	close(block)
	f.begin()
	r := f.rotates(1, inState(rotationMoving))
	f.rotates(1, func(r *coordinatorv1.Rotation) bool { return strings.Contains(r.GetReason(), "is not ready") })
	if r.GetAttempt() != 2 || r.GetJobId() == first.GetJobId() {
		t.Errorf("%v", r)
	}
	f.stop() // while parties drain
	f.begin()
	f.rotates(1, func(r *coordinatorv1.Rotation) bool { return strings.Contains(r.GetReason(), "is not ready") })
	f.parties[0].change(func(p *fakeParty) { p.onDrain = nil })
	f.kill(1) // and a party
	f.rotates(1, func(r *coordinatorv1.Rotation) bool { return strings.Contains(r.GetReason(), "p1") })
	f.parties[1].change(func(p *fakeParty) { p.onDrain = nil })
	f.restart(1)
	r = f.rotates(1, inState(rotationCompleted))
	n, states := f.epochs(1)
	if !slices.Equal(states, []string{"DRAINING", "DRAINING"}) || n != 2 || r.GetAttempt() != 2 || r.GetPolicies() != 1 {
		t.Errorf("%d epochs; the old one is %v; %v", n, states, r)
	}
	if p := f.policies(); len(p) != 1 || p[0].GetEpoch() != r.GetSuccessor() {
		t.Errorf("policies %v", p)
	}
}

// If the roster changes after an epoch was made and before the policies move, the policies stay.
// The next attempt moves them to an epoch of the present roster.
func TestRotateWhileTheRosterChanges(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(paused(jobv1.Kind_KIND_SCALAR, 1))
	q := &coordinatorv1.RotateKeysRequest{Epoch: 1}
	other := make(chan struct{})
	f.parties[0].change(func(p *fakeParty) {
		p.onRun = func(s *fakeSession) {
			s.succeed()
			p.change(func(p *fakeParty) { p.epochs[1].Standing = keygenv1.RosterStanding_ROSTER_STANDING_OTHER })
			close(other)
		}
	})
	f.parties[1].change(func(p *fakeParty) {
		p.onRun = func(s *fakeSession) {
			<-other // delays the end of the job
			s.succeed()
		}
	})
	if _, err := f.rotate("rotator", q); err != nil {
		t.Fatal(err)
	}
	if r := f.rotates(1, inState(rotationFailed)); !strings.Contains(r.GetReason(), "another roster") {
		t.Errorf("%v", r)
	}
	if p := f.policies(); len(p) != 1 || p[0].GetEpoch() != 1 {
		t.Errorf("policies %v", p)
	}
	for _, p := range f.parties {
		p.change(func(p *fakeParty) { p.onRun = nil })
	}
	if _, err := f.rotate("rotator", q); err != nil {
		t.Fatal(err)
	}
	r := f.rotates(1, inState(rotationCompleted))
	if p := f.policies(); r.GetSuccessor() != 3 || len(p) != 1 || p[0].GetEpoch() != 3 {
		t.Errorf("%v, policies %v", r, p)
	}
}

// A failed job ends the rotation; repeating the request starts another attempt.
func TestRotateAgainAfterFailure(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.parties[0].change(func(p *fakeParty) {
		p.onRun = func(s *fakeSession) { s.fails(&jobv1.Failure{Outcome: outcomeAbort, Reason: "a check failed"}) }
	})
	q := &coordinatorv1.RotateKeysRequest{Epoch: 1}
	if _, err := f.rotate("rotator", q); err != nil {
		t.Fatal(err)
	}
	if r := f.rotates(1, inState(rotationFailed)); !strings.Contains(r.GetReason(), "a check failed") || r.GetSuccessor() != 0 {
		t.Errorf("%v", r)
	}
	if _, states := f.epochs(1); !slices.Equal(states, []string{"ACTIVE", "ACTIVE"}) {
		t.Errorf("the old epoch is %v", states)
	}
	f.parties[0].change(func(p *fakeParty) { p.onRun = nil })
	q.Dim = 2 // a different request is accepted now
	if _, err := f.rotate("rotator", q); err != nil {
		t.Fatal(err)
	}
	if r := f.rotates(1, inState(rotationCompleted)); r.GetAttempt() != 2 || f.get(r.GetJobId()).GetRequest().GetDim() != 2 {
		t.Errorf("%v", r)
	}
}

// After a roster change, neither a party that never had the old epoch nor a party that has retired
// it delays the rotation.
func TestRotateAcrossRosters(t *testing.T) {
	f := newNet(t, 3)
	f.complete(keysJob())
	f.parties[2].change(func(p *fakeParty) { p.epochs = nil })
	f.parties[1].change(func(p *fakeParty) { p.epochs[0].State = keygenv1.EpochState_EPOCH_STATE_RETIRED })
	f.parties[1].change(func(p *fakeParty) {
		p.onDrain = func() error { return rpc.Errorf(rpc.Burnt, "", "it is retired") }
	})
	f.parties[0].change(func(p *fakeParty) { p.epochs[0].Standing = keygenv1.RosterStanding_ROSTER_STANDING_OTHER })
	_, err := f.client.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: scalarJob(1)})
	if e := rpc.FromError(err); e == nil {
		t.Error("a job is accepted under an epoch of another roster")
	}
	if _, err := f.rotate("rotator", &coordinatorv1.RotateKeysRequest{Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	f.rotates(1, inState(rotationCompleted))
	f.complete(scalarJob(2))
}

// refused fails the test unless err has the code.
func refused(t *testing.T, err error, code rpc.Code) {
	t.Helper()
	if e := rpc.FromError(err); e == nil || e.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// A rotation drains an epoch that all tenants use, so it needs a client that acts for every tenant
// of the coordinator.
func TestRotationNeedsEveryTenant(t *testing.T) {
	f := newNet(t, 2)
	keys := f.complete(keysJob())
	if _, err := f.rotate("stranger", &coordinatorv1.RotateKeysRequest{Epoch: keys.GetEpoch()}); !is(err, rpc.Forbidden) {
		t.Errorf("a client of one tenant: %v", err)
	}
	if r := f.running.rotations.of(keys.GetEpoch()); r != nil {
		t.Errorf("a rotation began: %v", r)
	}
}
