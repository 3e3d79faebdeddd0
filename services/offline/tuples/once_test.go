package tuples

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Of many calls at the same time one gets the share that is to be pooled.
func TestDrawMacKeyOnce(t *testing.T) {
	n := newNet(t)
	ctx := n.context(30 * time.Second)
	var got atomic.Int32
	var all sync.WaitGroup
	client := n.as("alice", 0)
	for range 16 {
		all.Go(func() {
			r, err := client.DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: "mac", Purpose: verify})
			if err == nil && len(r.GetShare()) > 0 {
				got.Add(1)
			} else if e := rpc.FromError(err); e == nil || e.Code != rpc.Burnt {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d calls got the share", got.Load())
	}
}

// Fetching says what became of the tuples.
func TestFetchErased(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	for i, id := range []string{"discarded", "late"} {
		n.propose(reservation(id, uint64(10*i), 5), 0, 1, 2)
	}
	_, err := n.as("coordinator", 0).Release(ctx, &tuplesv1.ReleaseRequest{Ids: []string{"discarded"}, Discard: true})
	must(t, err)
	got, err := fetch(ctx, n.as("alice", 0), "discarded", 0)
	if refusal(t, err, rpc.Erased); len(got) > 0 {
		t.Error("shares of tuples that are discarded")
	}
	_, err = n.as("alice", 0).Revoke(ctx, &tuplesv1.RevokeRequest{BatchIds: []string{"b"}, Reason: "a test"})
	must(t, err)
	got, err = fetch(ctx, n.as("alice", 0), "late", 0)
	if refusal(t, err, rpc.Erased); len(got) > 0 {
		t.Error("shares of a batch that is revoked")
	}
}
