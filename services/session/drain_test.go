package session

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// A party that stops begins no more sessions and waits for the running ones. At its deadline it
// ends the sessions that have not begun their MAC check. The others get a little longer, because a
// check that ends without a verdict costs the MAC key.
func TestDrain(t *testing.T) {
	const triples = jobv1.Protocol_PROTOCOL_TRIPLES
	r, spec := newRegistry(nil)
	start := func(ordinal uint32) (*work, *Entry) {
		t.Helper()
		s := proto.CloneOf(spec)
		s.Ref.Ordinal = ordinal
		w := newWork()
		if _, err := r.Start(triples, s, w); err != nil {
			t.Fatal(err)
		}
		<-w.ran
		x, err := r.Get(s.GetRef())
		if err != nil {
			t.Fatal(err)
		}
		return w, x
	}
	ends, _ := start(1)
	_, begun := start(2)
	checked, checking := start(3)
	checking.Enter(jobv1.JobState_JOB_STATE_GENERATING)
	checking.Enter(jobv1.JobState_JOB_STATE_VERIFYING)

	ctx, over := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		r.Drain(ctx)
		close(done)
	}()
	err := error(nil)
	for ordinal := uint32(4); err == nil || rpc.FromError(err).Code == rpc.Busy; ordinal++ { // until it has begun
		late, w := proto.CloneOf(spec), newWork()
		late.Ref.Ordinal = ordinal
		w.end <- rpc.Errorf(rpc.Internal, "", "before the signal")
		_, err = r.Start(triples, late, w)
	}
	isRefused(t, "a session after the signal", err, rpc.Unavailable)
	ends.end <- rpc.Errorf(rpc.Internal, "", "it has ended by itself")
	if st := begun.Status(); job.Final(st.GetState()) {
		t.Errorf("ended before its time: %v", st)
	}
	over()
	begun.wait(t.Context())
	if st := begun.Status(); st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED {
		t.Errorf("what had begun: %v", st)
	}
	if st := checking.Status(); job.Final(st.GetState()) {
		t.Errorf("session in its MAC check: %v", st)
	}
	checked.stored = &Stored{}
	checked.end <- nil
	<-done
	if st := checking.Status(); st.GetState() != jobv1.JobState_JOB_STATE_COMPLETED {
		t.Errorf("session after its MAC check: %v", st)
	}
	r.Close()
}

// A cancellation does not interrupt a MAC check: the result is erased when it arrives. A session
// that was cancelled before its check does not begin one.
func TestCancelDuringACheck(t *testing.T) {
	r, spec := newRegistry(nil)
	start := func(ordinal uint32) (*work, *Entry) {
		t.Helper()
		s := proto.CloneOf(spec)
		s.Ref.Ordinal = ordinal
		w := newWork()
		if _, err := r.Start(jobv1.Protocol_PROTOCOL_TRIPLES, s, w); err != nil {
			t.Fatal(err)
		}
		<-w.ran
		x, err := r.Get(s.GetRef())
		if err != nil {
			t.Fatal(err)
		}
		return w, x
	}
	w, checking := start(1)
	if err := checking.Opens(); err != nil {
		t.Fatal(err)
	}
	over, end := context.WithCancel(t.Context())
	end() // the caller does not wait
	st, err := checking.Cancel(over, "a mistake")
	if err != nil || st.GetState() != jobv1.JobState_JOB_STATE_VERIFYING {
		t.Errorf("a session in its MAC check: %v, %v", st, err)
	}
	if err := checking.Opens(); err != nil {
		t.Errorf("the rest of the check: %v", err)
	}
	discarded := ""
	w.stored = &Stored{Discard: func(reason string) error { discarded = reason; return nil }}
	w.end <- nil
	checking.wait(t.Context())
	if st := checking.Status(); st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED || discarded != "cancelled: a mistake" {
		t.Errorf("after its MAC check: %v, discarded because of %q", st, discarded)
	}

	_, begun := start(2)
	begun.Enter(jobv1.JobState_JOB_STATE_GENERATING)
	if st, err := begun.Cancel(t.Context(), "a mistake"); err != nil || st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED {
		t.Errorf("a session before its MAC check: %v, %v", st, err)
	}
	isRefused(t, "a check after the cancellation", begun.Opens(), rpc.Cancelled)
	r.Close()
}
