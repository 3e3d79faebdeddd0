package histories

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// scenario runs a case that random histories rarely reach, with 40 tuples of tenant a in stock at
// all parties.
func scenario(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, [parties]backend{inMemory(), inMemory(), inMemory()})
		defer w.end()
		w.sizes = map[string]uint64{"a": 40, "b": 40}
		w.pass(100 * time.Millisecond)
		w.produce("a", 40, []int{0, 1, 2}, []int{0, 1, 2})
		w.pass(time.Second)
		f(t, w)
		if wrong := w.model.verdict(); wrong != "" || t.Failed() {
			t.Errorf("%s\n%s", wrong, w.lines())
		}
	})
}

// delay delays the coordinator's calls to a party.
func (w *world) delay(to int, by time.Duration) {
	w.net.Lock()
	defer w.net.Unlock()
	w.late[to] = by
}

// states returns the state of a reservation at each party; empty if the party does not know it.
func (w *world) states(id string) (list [parties]stock.ReservationState) {
	for i, p := range w.parties {
		if r, err := p.vault().Reservation(id); err == nil {
			list[i] = r.State
		}
	}
	return list
}

// everywhere returns all reservations that at least one party knows.
func (w *world) everywhere() map[string]bool {
	ids := map[string]bool{}
	for _, p := range w.parties {
		if err := p.vault().Reservations("", func(r *stock.Reservation) bool { ids[r.ID] = true; return true }); err != nil {
			w.failed("listing reservations: %v", err)
		}
	}
	return ids
}

// free checks that a client can reserve all tuples.
func (w *world) free(t *testing.T) {
	t.Helper()
	if r, err := w.reserve(0, 40, time.Minute, "", nil, false); err != nil || w.states(r.GetId()) != [parties]stock.ReservationState{stock.Reserved, stock.Reserved, stock.Reserved} {
		t.Errorf("not everything can be reserved: %v", err)
	}
}

// If a client gives up a reservation while a party is slow to receive it, no party holds it soon
// after.
func TestGivenUp(t *testing.T) {
	scenario(t, func(t *testing.T, w *world) {
		w.delay(1, 800*time.Millisecond)
		if _, err := w.reserveWithin(300*time.Millisecond, 0, 30, time.Minute, "", nil, false); err == nil {
			t.Fatal("the client did not give up")
		}
		w.delay(1, 0)
		w.pass(3 * time.Second)
		for id := range w.everywhere() {
			for i, s := range w.states(id) {
				if s == stock.Reserved || s == stock.Withdrawn {
					t.Errorf("party %d: %s is %s", i, id, s)
				}
			}
		}
		w.free(t)
	})
}

// A proposal that arrives after the coordinator gave it up holds its tuples only until the lease
// ends.
func TestLateProposal(t *testing.T) {
	scenario(t, func(t *testing.T, w *world) {
		w.delay(2, 20*time.Second)
		if _, err := w.reserve(0, 30, 40*time.Second, "", nil, false); err == nil {
			t.Fatal("the client did not give up")
		}
		w.delay(2, 0)
		w.pass(25 * time.Second)
		held := 0
		for id := range w.everywhere() {
			if s := w.states(id)[2]; s == stock.Reserved || s == stock.Withdrawn { // the withdrawal may be late too
				held++
			}
		}
		if held != 1 {
			t.Fatalf("the late party holds %d reservations", held)
		}
		w.pass(25 * time.Second)
		w.free(t)
	})
}

// If the coordinator was killed before all parties received a reservation, the restarted
// coordinator completes it when the client repeats its request.
func TestAskedAgainAfterACrash(t *testing.T) {
	scenario(t, func(t *testing.T, w *world) {
		w.delay(1, 2*time.Second)
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			if _, err := w.reserve(0, 30, time.Minute, "key", nil, false); err == nil {
				t.Error("a killed coordinator responds")
			}
		}()
		w.pass(100 * time.Millisecond)
		w.net.Lock()
		w.down[coordinator][1] = true // messages in flight are lost with the process
		w.net.Unlock()
		w.coordinator.stop()
		<-asked
		w.pass(3 * time.Second)
		ids := w.everywhere()
		if len(ids) != 1 {
			t.Fatalf("reservations %v", ids)
		}
		w.connect()
		if err := w.coordinator.start(); err != nil {
			t.Fatal(err)
		}
		w.pass(3 * time.Second)
		r, err := w.reserve(0, 30, time.Minute, "key", nil, false)
		if err != nil || !ids[r.GetId()] {
			t.Fatalf("%v, %v after %v", r, err, ids)
		}
		for i := range parties {
			if err := w.fetch(0, i, r.GetId(), 0, -1, 0); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		}
	})
}

// If a lease ends after one party has delivered, the tuples are discarded at all parties, and the
// reservation is not polled again.
func TestLeaseEndsAfterOneDelivery(t *testing.T) {
	scenario(t, func(t *testing.T, w *world) {
		r, err := w.reserve(0, 30, 10*time.Second, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.fetch(0, 1, r.GetId(), 0, -1, 0); err != nil {
			t.Fatal(err)
		}
		w.pass(20 * time.Second)
		if s := w.states(r.GetId()); s != [parties]stock.ReservationState{stock.Erased, stock.Erased, stock.Erased} {
			t.Errorf("states %v", s)
		}
		got, err := w.stock(w.clients[0]).GetReservation(t.Context(), &stockv1.GetReservationRequest{Id: r.GetId()})
		if err != nil || got.GetReservation().GetState() != tuplesv1.ReservationState_RESERVATION_STATE_ERASED {
			t.Errorf("at the coordinator: %v, %v", got, err)
		}
		if _, err := w.reserve(0, 30, time.Minute, "", nil, false); err == nil {
			t.Error("delivered tuples are in stock again")
		}
	})
}

// A reservation that all parties delivered is shown as consumed, even if another reservation is
// unknown to one of the parties.
func TestDeliveredBesideUnknown(t *testing.T) {
	scenario(t, func(t *testing.T, w *world) {
		r, err := w.reserve(0, 10, time.Minute, "", nil, false)
		if err != nil {
			t.Fatal(err)
		}
		w.net.Lock()
		w.down[coordinator][0] = true
		w.net.Unlock()
		if _, err := w.reserve(0, 10, time.Minute, "", nil, false); err == nil {
			t.Fatal("without a party")
		}
		w.connect()
		for i := range parties {
			if err := w.fetch(0, i, r.GetId(), 0, -1, 0); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(5 * time.Second)
		got, err := w.stock(w.clients[0]).GetReservation(t.Context(), &stockv1.GetReservationRequest{Id: r.GetId()})
		if err != nil || got.GetReservation().GetState() != tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED || got.GetReservation().GetClient() != "a1" {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// A reservation that a killed coordinator proposed but did not record is released after its lease
// ends.
func TestUnknownAfterACrash(t *testing.T) {
	scenario(t, func(t *testing.T, w *world) {
		w.coordinator.stop()
		b := w.batches[0]
		lost := &tuplesv1.Reservation{
			Id: "0123456789abcdef0123456789abcdef", Class: b.class, Epoch: b.epoch, MacKeyId: b.macKey, Owner: b.class.GetTenant() + "1", Count: 30,
			Ranges: []*tuplesv1.Range{{BatchId: b.id, Count: 30}}, Lease: timestamppb.New(time.Now().Add(10 * time.Second)),
		}
		for i := range parties {
			caller := rpc.Principal{Role: rpc.Coordinator, Name: "coordinator", Party: -1}
			c := tuplesv1.NewTuplesServiceClient(w.conn(caller, coordinator, i))
			x, err := c.Propose(t.Context(), &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{lost}})
			if err != nil || x.GetOutcomes()[0].GetCode() != "" {
				t.Fatalf("party %d: %v, %v", i, x, err)
			}
		}
		w.connect()
		if err := w.coordinator.start(); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		if s := w.states(lost.GetId()); s != [parties]stock.ReservationState{stock.Reserved, stock.Reserved, stock.Reserved} {
			t.Errorf("before the lease ends: %v", s)
		}
		w.pass(10 * time.Second)
		w.free(t)
	})
}
