package tuples

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

func writeFile(path string, b []byte) error { return os.WriteFile(path, b, 0o600) }

// Every party delivers its own shares to the client that fetched first, repeatedly and from any
// tuple on.
func TestFetch(t *testing.T) {
	n := newNet(t)
	n.propose(reservation("r", 10, 20), 0, 1, 2)
	ctx := n.context(20 * time.Second)
	for i, x := range n.nodes {
		want := x.shares("b", 10, 20, 32)
		for _, from := range []uint64{0, 0, 7, 19, 0} {
			got, err := fetch(ctx, n.as("alice", i), "r", from)
			if err != nil || !bytes.Equal(got, want[32*from:]) {
				t.Errorf("party %d, from %d: %d bytes, %v", i, from, len(got), err)
			}
		}
		for _, from := range []uint64{20, 21, 1 << 63} {
			_, err := fetch(ctx, n.as("alice", i), "r", from)
			refusal(t, err, rpc.Invalid)
		}
		_, err := fetch(ctx, n.as("bob", i), "r", 0)
		refusal(t, err, rpc.Delivered)
		_, err = fetch(ctx, n.as("eve", i), "r", 0)
		refusal(t, err, rpc.NotFound)
		_, err = fetch(ctx, n.as("weak", i), "r", 0)
		refusal(t, err, rpc.Forbidden)
		_, err = fetch(ctx, n.as("alice", i), "unknown", 0)
		refusal(t, err, rpc.NotFound)
	}
}

func TestNamedClients(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	one, each := reservation("one", 0, 5), reservation("each", 5, 5)
	one.Clients, each.Clients = []string{"bob"}, []string{"alice", "bob", "alice"}
	n.propose(one, 0, 1, 2)
	n.propose(each, 0, 1, 2)
	for i := range parties {
		for id, named := range map[string]string{"one": "bob", "each": each.GetClients()[i]} {
			other := map[string]string{"alice": "bob", "bob": "alice"}[named]
			_, err := fetch(ctx, n.as(other, i), id, 0)
			refusal(t, err, rpc.Delivered)
			_, err = fetch(ctx, n.as(named, i), id, 0)
			must(t, err)
		}
	}
}

// A quota counts the first delivery only. If the quota is too small, no share is delivered.
func TestFetchOverQuota(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	n.propose(reservation("four", 0, 4), 0, 1, 2)
	n.propose(reservation("two", 4, 2), 0, 1, 2)
	c := n.as("poor", 0)
	for range 3 {
		_, err := fetch(ctx, c, "four", 0)
		must(t, err)
	}
	got, err := fetch(ctx, c, "two", 0)
	if refusal(t, err, rpc.OverQuota); len(got) > 0 {
		t.Error("shares beyond the quota")
	}
	_, err = fetch(ctx, n.as("alice", 0), "two", 0)
	must(t, err)
}

// No byte leaves before every peer has recorded the same; when the last one does, it does.
func TestFetchWaitsForPeers(t *testing.T) {
	n := newNet(t)
	r := reservation("r", 0, 10)
	n.propose(r, 0, 1)
	done := make(chan error, 1)
	go func() {
		got, err := fetch(n.context(15*time.Second), n.as("alice", 0), "r", 0)
		if err == nil && !bytes.Equal(got, n.nodes[0].shares("b", 0, 10, 32)) {
			t.Error("other shares")
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("before party 2 has recorded it: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if x, err := n.nodes[0].vault.Reservation("r"); err != nil || x.State != stock.Reserved {
		t.Errorf("%+v, %v", x, err)
	}
	n.propose(r, 2)
	must(t, <-done)
}

func TestFetchNeedsPeersThatAgree(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	other := func(id string, first uint64, change func(*tuplesv1.Reservation)) {
		t.Helper()
		n.propose(reservation(id, first, 5), 0, 1)
		r := reservation(id, first, 5)
		change(r)
		n.propose(r, 2)
		for i := range parties {
			got, err := fetch(ctx, n.as("alice", i), id, 0)
			if refusal(t, err, rpc.Conflict); len(got) > 0 {
				t.Errorf("party %d gives %s", i, id)
			}
		}
	}
	other("ranges", 0, func(r *tuplesv1.Reservation) { r.Ranges[0].First = 50 })
	other("clients", 10, func(r *tuplesv1.Reservation) { r.Clients = []string{"alice"} })
	other("lease", 20, func(r *tuplesv1.Reservation) { r.Lease = timestamppb.New(r.GetLease().AsTime().Add(time.Second)) })
	other("owner", 30, func(r *tuplesv1.Reservation) { r.Owner = "bob" })

	r := reservation("ended", 40, 5)
	n.propose(r, 0, 1, 2)
	_, err := n.as("coordinator", 2).Withdraw(ctx, &tuplesv1.WithdrawRequest{Ids: []string{"ended"}})
	must(t, err)
	_, err = fetch(ctx, n.as("alice", 2), "ended", 0)
	refusal(t, err, rpc.Conflict)
	_, err = n.as("coordinator", 2).Release(ctx, &tuplesv1.ReleaseRequest{Ids: []string{"ended"}})
	must(t, err)
	_, err = fetch(ctx, n.as("alice", 2), "ended", 0)
	refusal(t, err, rpc.Conflict)
}

// A peer that is away keeps clients waiting; when it is back they are served.
func TestFetchWithoutAPeer(t *testing.T) {
	n := newNet(t)
	r := reservation("r", 0, 10)
	n.nodes[2].stop()
	n.propose(r, 0, 1)
	_, err := fetch(n.context(time.Second), n.as("alice", 0), "r", 0)
	refusal(t, err, rpc.TimedOut)
	n.start(n.nodes[2], nil)
	n.propose(r, 2)
	_, err = fetch(n.context(15*time.Second), n.as("alice", 0), "r", 0)
	must(t, err)
}

// A reservation that all peers have confirmed, and that was delivered before, still waits for peers
// that have not recorded the version of this store.
func TestFetchWaitsForPeersToRemember(t *testing.T) {
	n := newNet(t)
	n.propose(reservation("r", 0, 10), 0, 1, 2)
	_, err := fetch(n.context(20*time.Second), n.as("alice", 0), "r", 0)
	must(t, err)
	n.nodes[2].stop()
	n.nodes[0].service.Peers.forget(2)
	got, err := fetch(n.context(time.Second), n.as("alice", 0), "r", 0)
	if refusal(t, err, rpc.TimedOut); len(got) > 0 {
		t.Errorf("%d bytes", len(got))
	}
	n.start(n.nodes[2], nil)
	_, err = fetch(n.context(20*time.Second), n.as("alice", 0), "r", 0)
	must(t, err)
}

// big is a reservation of several messages, more than the network holds for a client that does not
// read.
func (n *net3) big() (id string, size int) {
	for _, x := range n.nodes {
		x.fill(n.t, "big", 200, 64<<10)
	}
	r := reservation("big", 0, 200)
	r.Ranges[0].BatchId = "big"
	n.propose(r, 0, 1, 2)
	return "big", 200 * 64 << 10
}

// If the lease ends while the party sends shares, it does not send the rest.
func TestLeaseEndsWithinAFetch(t *testing.T) {
	n := newNet(t)
	id, size := n.big()
	s, err := n.as("alice", 0).Fetch(n.context(20*time.Second), &tuplesv1.FetchRequest{ReservationId: id})
	must(t, err)
	got := 0
	for range 2 {
		r, err := s.Recv()
		must(t, err)
		got += len(r.GetChunk())
	}
	n.nodes[0].offset.Store(int64(2 * time.Hour))
	for err == nil {
		r, more := s.Recv()
		got, err = got+len(r.GetChunk()), more
	}
	if refusal(t, err, rpc.Expired); got == 0 || got >= size {
		t.Errorf("%d bytes of %d", got, size)
	}
	_, err = fetch(n.context(5*time.Second), n.as("alice", 0), id, 0)
	refusal(t, err, rpc.Expired)
}

// A client that reads slowly gets all; a client that gives up can resume where it stopped.
func TestSlowAndBrokenFetch(t *testing.T) {
	n := newNet(t)
	id, size := n.big()
	c := n.as("alice", 1)
	ctx, cancel := context.WithCancel(n.context(20 * time.Second))
	s, err := c.Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: id})
	must(t, err)
	var got []byte
	for len(got) < size/4 {
		r, err := s.Recv()
		must(t, err)
		got = append(got, r.GetChunk()...)
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	for err == nil {
		_, err = s.Recv()
	}
	refusal(t, err, rpc.Cancelled)
	from := uint64(len(got) / (64 << 10))
	rest, err := fetch(n.context(20*time.Second), c, id, from)
	must(t, err)
	if all := append(got[:from*64<<10], rest...); !bytes.Equal(all, n.nodes[1].shares("big", 0, 200, 64<<10)) {
		t.Errorf("%d and %d bytes do not make the shares", len(got), len(rest))
	}
}

// The end of a reservation ends its streams: only bytes already sent still arrive.
func TestDiscardEndsAFetch(t *testing.T) {
	n := newNet(t)
	id, size := n.big()
	s, err := n.as("alice", 0).Fetch(n.context(20*time.Second), &tuplesv1.FetchRequest{ReservationId: id})
	must(t, err)
	_, err = s.Recv()
	must(t, err)
	out, err := n.as("coordinator", 0).Release(n.context(5*time.Second), &tuplesv1.ReleaseRequest{Ids: []string{id}, Discard: true})
	if must(t, err); out.GetOutcomes()[0].GetCode() != "" {
		t.Fatal(out)
	}
	got := 0
	for err == nil {
		r, more := s.Recv()
		got, err = got+len(r.GetChunk()), more
	}
	if refusal(t, err, rpc.Burnt); got >= size {
		t.Errorf("%d bytes of %d", got, size)
	}
}
