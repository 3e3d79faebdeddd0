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
