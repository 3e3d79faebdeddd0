package threshold

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// The oldest masks are proposed first, in at most the maximum number of spans. If that is not
// enough, the largest spans are proposed.
func TestFirstMasks(t *testing.T) {
	some := []decrypt.Span{{Batch: "a", First: 5, Count: 3}, {Batch: "a", First: 9, Count: 1}, {Batch: "b", First: 0, Count: 40}}
	for _, c := range []struct {
		n    uint64
		want []decrypt.Span
	}{
		{1, []decrypt.Span{{Batch: "a", First: 5, Count: 1}}},
		{3, some[:1]},
		{4, some[:2]},
		{5, []decrypt.Span{some[0], some[1], {Batch: "b", First: 0, Count: 1}}},
		{44, some},
		{1000, some},
	} {
		if got := first(slices.Clone(some), c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v", c.n, got)
		}
	}
	if got := first(nil, 5); got != nil {
		t.Errorf("without spans: %v", got)
	}
	var many []decrypt.Span
	for i := range uint64(100) {
		many = append(many, decrypt.Span{Batch: fmt.Sprint(i), First: i, Count: 1 + i})
	}
	if got := first(slices.Clone(many), 64*65/2); !slices.Equal(got, many[:64]) {
		t.Errorf("the first spans are enough: %v", got)
	}
	got := first(slices.Clone(many), 64*65/2+1)
	if len(got) != 24 || got[0] != many[99] || got[23] != (decrypt.Span{Batch: "76", First: 76, Count: 34}) {
		t.Errorf("only the largest spans are enough: %v", got)
	}
	if got := first(slices.Clone(many), 1<<20); len(got) != decrypt.MaxSpans || got[0] != many[99] {
		t.Errorf("too few: %v", got)
	}
}

// silent is a stream that receives no messages.
type silent struct {
	thresholdv1.ThresholdService_DecryptServer
	ctx context.Context
}

func (s silent) Context() context.Context { return s.ctx }

func (s silent) RecvMsg(any) error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

// A client that opens a stream and sends nothing is disconnected after the time limit for uploads.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun := time.Now()
		err := (&Service{}).decrypt(silent{ctx: ctx})
		if e := rpc.FromError(err); err == nil || e.Code != rpc.TimedOut || time.Since(begun) != uploadTime {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// If the roster has too few holders of an epoch, the suggested next step depends on which holders
// are missing.
func TestDisplaced(t *testing.T) {
	e := &keys.Epoch{ID: 7, Threshold: 1}
	for _, c := range []struct {
		places     []int
		what, next string
	}{
		{[]int{0, -1, -1}, "1 of the 3 holders of epoch 7 are in this party's roster, and 2 must decrypt", "put holders back"},
		{[]int{1, 2, -1}, "this party is not a holder of epoch 7", "lodge keys show"},
	} {
		if err := displaced(e, c.places, 0); err.Code != rpc.PinMismatch || !strings.Contains(err.What, c.what) || !strings.Contains(err.Next, c.next) {
			t.Errorf("%v: %v", c.places, err)
		}
	}
}
