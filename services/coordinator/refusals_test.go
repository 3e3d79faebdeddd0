package coordinator

import (
	"strings"
	"testing"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Jobs are rejected if at any party their keys are missing, draining or from another roster.
func TestAnEpochThatIsNotThere(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	for what, c := range map[string]struct {
		change func(e *keygenv1.Epoch)
		code   rpc.Code
	}{
		"retired":           {func(e *keygenv1.Epoch) { e.State = keygenv1.EpochState_EPOCH_STATE_RETIRED }, rpc.Burnt},
		"draining":          {func(e *keygenv1.Epoch) { e.State = keygenv1.EpochState_EPOCH_STATE_DRAINING }, rpc.Conflict},
		"of another roster": {func(e *keygenv1.Epoch) { e.Standing = keygenv1.RosterStanding_ROSTER_STANDING_OTHER }, rpc.PinMismatch},
	} {
		var before *keygenv1.Epoch
		f.parties[1].change(func(p *fakeParty) {
			before = p.epochs[0]
			other := &keygenv1.Epoch{Epoch: before.GetEpoch(), State: before.GetState(), Standing: before.GetStanding(), Params: before.GetParams(), Purpose: before.GetPurpose(), Dim: before.GetDim()}
			c.change(other)
			p.epochs[0] = other
		})
		if _, err := f.client.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: scalarJob(epoch)}); !is(err, c.code) {
			t.Errorf("%s: %v, want %s", what, err, c.code)
		}
		f.parties[1].change(func(p *fakeParty) { p.epochs[0] = before })
	}
	f.complete(scalarJob(epoch))
}

// A party does not hold a result that is locked or missing.
func TestHolds(t *testing.T) {
	f := newNet(t, 2)
	keys := f.complete(keysJob())
	scalars := f.complete(scalarJob(keys.GetEpoch()))
	m, p := f.running.parties[1], f.parties[1]
	for _, j := range []*coordinatorv1.Job{keys, scalars} {
		if !m.holds(t.Context(), j) {
			t.Errorf("%s is active", j.GetId())
		}
	}
	p.change(func(p *fakeParty) {
		p.epochs[0].State = keygenv1.EpochState_EPOCH_STATE_LOCKED
		for _, b := range p.batches {
			b.State = tuplesv1.BatchState_BATCH_STATE_LOCKED
		}
	})
	for _, j := range []*coordinatorv1.Job{keys, scalars} {
		if m.holds(t.Context(), j) {
			t.Errorf("%s is locked", j.GetId())
		}
	}
	p.change(func(p *fakeParty) { p.epochs, p.batches = nil, nil })
	for _, j := range []*coordinatorv1.Job{keys, scalars} {
		if m.holds(t.Context(), j) {
			t.Errorf("%s is missing", j.GetId())
		}
	}
}

// A state that cannot be recorded does not take effect, so that no party receives work that the
// next process would not know of.
func TestRecordedBeforeItIsSeen(t *testing.T) {
	f := newNet(t, 2)
	g := f.gate()
	id := f.submit(keysJob())
	g.runs(id)
	c := f.running
	e, err := c.find(id)
	if err != nil {
		t.Fatal(err)
	}
	c.records.close()
	before, _ := c.snapshot(e)
	err = c.update(e, func(j *coordinatorv1.Job) { j.State = activating })
	if after, _ := c.snapshot(e); err == nil || after.GetState() != before.GetState() {
		t.Errorf("%v, and the job is %s after %s", err, after.GetState(), before.GetState())
	}
}

// A job that a client has cancelled does not complete, even if all parties have their results by
// then.
func TestCancelledBeforeItSettles(t *testing.T) {
	f := newNet(t, 2)
	g := f.gate()
	id := f.submit(keysJob())
	g.runs(id)
	c := f.running
	e, err := c.find(id)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	e.stop = "cancelled: a mistake"
	c.mu.Unlock()
	why := c.settle(e)
	if j, _ := c.snapshot(e); why.GetOutcome() != outcomeCancelled || why.GetReason() != "cancelled: a mistake" || j.GetState() >= activating {
		t.Errorf("%v, and the job is %s", why, j.GetState())
	}
}

// A long reason is shortened to fit a record.
func TestLongReasons(t *testing.T) {
	f := newNet(t, 2)
	f.gate()
	id := f.submit(keysJob())
	_, err := f.client.CancelJob(t.Context(), &coordinatorv1.CancelJobRequest{Id: id, Reason: strings.Repeat("x", maxReason+1)})
	refused(t, err, rpc.TooLarge)
}
