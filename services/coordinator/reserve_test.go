package coordinator

import (
	"context"
	"testing"
	"time"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

func (f *fakeNet) reserve(ctx context.Context, key string, count uint64) (*tuplesv1.Reservation, error) {
	f.Helper()
	r, err := f.stock("keeper").Reserve(ctx, &stockv1.ReserveRequest{Class: scalars(), Count: count, IdempotencyKey: key})
	return r.GetReservation(), err
}

// heldEverywhere says whether all parties hold a reservation.
func (f *fakeNet) heldEverywhere(id string) bool {
	for _, p := range f.parties {
		p.mu.Lock()
		state := p.reserved[id]
		p.mu.Unlock()
		if state != tuplesv1.ReservationState_RESERVATION_STATE_RESERVED {
			return false
		}
	}
	return true
}

// A request that is repeated after an error gives a reservation that all parties hold, not the attempt that failed.
func TestReserveAgainAfterAFailure(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(marks(300, 500))
	f.watchStock(has(500))
	first, err := f.reserve(t.Context(), "k", 10)
	if err != nil || !f.heldEverywhere(first.GetId()) {
		t.Fatal(err)
	}
	again, err := f.reserve(t.Context(), "k", 10)
	if err != nil || again.GetId() != first.GetId() {
		t.Fatalf("%v after %v: %v", again, first, err)
	}
	f.kill(1)
	if _, err := f.reserve(t.Context(), "l", 10); !is(err, rpc.Unavailable) {
		t.Fatalf("with a party away: %v", err)
	}
	for range 500 { // as soon as the coordinator knows, it does not say that there is too little
		if _, err = f.reserve(t.Context(), "m", 100_000); is(err, rpc.Unavailable) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !is(err, rpc.Unavailable) {
		t.Fatalf("with a party away, and more than there is: %v", err)
	}
	if _, err := f.reserve(t.Context(), "l", 10); !is(err, rpc.Unavailable) {
		t.Fatalf("again with a party away: %v", err)
	}
	f.restart(1)
	late := time.Now().Add(10 * time.Second)
	for {
		r, err := f.reserve(t.Context(), "l", 10)
		if err == nil {
			time.Sleep(50 * time.Millisecond) // of which nothing is being ended any more
			if !f.heldEverywhere(r.GetId()) {
				t.Errorf("%v is not held by all", r)
			}
			again, err := f.reserve(t.Context(), "l", 10)
			if err != nil || again.GetId() != r.GetId() {
				t.Errorf("%v after %v: %v", again, r, err)
			}
			break
		}
		if !is(err, rpc.Unavailable) && !is(err, rpc.OutOfStock) || time.Now().After(late) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A client that gives up does not make the stock vanish for others.
func TestReserveGivenUp(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(marks(300, 500))
	f.watchStock(has(500))
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		f.reserve(ctx, "", 1)
		cancel()
		r, err := f.stock("keeper").GetStock(t.Context(), &stockv1.GetStockRequest{})
		if err != nil || len(r.GetStock()) != 1 || r.GetStock()[0].GetAvailable() < 400 {
			t.Fatalf("%v, %v", r, err)
		}
	}
}
