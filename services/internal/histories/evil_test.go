package histories

import (
	"context"
	"fmt"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// actEvil is a malicious coordinator: it proposes reservations that overlap, differ between parties
// or were used before, and withdraws and releases arbitrary reservations.
func (w *world) actEvil() {
	w.calm = false
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	each := func(only []int, f func(i int, c tuplesv1.TuplesServiceClient) (string, error)) {
		for _, i := range only {
			c := tuplesv1.NewTuplesServiceClient(w.conn(rpc.Principal{Role: rpc.Coordinator, Name: "coordinator", Party: -1}, coordinator, i))
			what, err := f(i, c)
			w.note("  evil, party %d: %s %s", i, what, outcome(err))
		}
	}
	r := w.reservation()
	switch n := w.rng.IntN(8); {
	case n == 0 && r != nil:
		w.note("the coordinator withdraws %s", r.GetId())
		each(w.some(), func(_ int, c tuplesv1.TuplesServiceClient) (string, error) {
			x, err := c.Withdraw(ctx, &tuplesv1.WithdrawRequest{Ids: []string{r.GetId()}})
			return fmt.Sprint(x.GetOutcomes()), err
		})
	case n <= 2 && r != nil:
		discard := n == 2 && w.rng.IntN(2) == 0
		w.note("the coordinator withdraws and releases %s, discard=%v", r.GetId(), discard)
		each(w.some(), func(_ int, c tuplesv1.TuplesServiceClient) (string, error) {
			if w.rng.IntN(4) > 0 {
				c.Withdraw(ctx, &tuplesv1.WithdrawRequest{Ids: []string{r.GetId()}})
			}
			x, err := c.Release(ctx, &tuplesv1.ReleaseRequest{Ids: []string{r.GetId()}, Discard: discard})
			return fmt.Sprint(x.GetOutcomes()), err
		})
	default:
		body := w.lie()
		w.known = append(w.known, body)
		w.note("the coordinator proposes %s: %v for %v until %s", body.GetId(), body.GetRanges(), body.GetClients(), body.GetLease().AsTime())
		whom := w.some()
		if w.rng.IntN(2) == 0 {
			whom = []int{0, 1, 2}
		}
		each(whom, func(i int, c tuplesv1.TuplesServiceClient) (string, error) {
			mine := body
			if w.rng.IntN(3) == 0 { // a different one to each party
				mine = proto.Clone(body).(*tuplesv1.Reservation)
				mine.Ranges = w.ranges(body.GetMacKeyId())
			}
			x, err := c.Propose(ctx, &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{mine}})
			return fmt.Sprint(mine.GetRanges(), x.GetOutcomes()), err
		})
		if w.rng.IntN(2) == 0 {
			for i := range parties {
				w.fetch(w.rightful(body, i), i, body.GetId(), 0, -1, 0)
			}
		}
	}
}

// lie returns a reservation of ranges that may belong to others, possibly under a used id.
func (w *world) lie() *tuplesv1.Reservation {
	b := w.batches[w.rng.IntN(len(w.batches))]
	w.ids++
	r := &tuplesv1.Reservation{Id: fmt.Sprintf("evil-%d", w.ids), Class: b.class, Epoch: b.epoch, MacKeyId: b.macKey, Owner: b.class.GetTenant() + "1",
		Lease: timestamppb.New(time.Now().Add(time.Duration(1+w.rng.IntN(60)) * time.Second))}
	if old := w.reservation(); old != nil && w.rng.IntN(4) == 0 {
		r.Id = old.GetId()
		if w.rng.IntN(2) == 0 {
			r.Lease = old.GetLease()
		}
	}
	r.Ranges = w.ranges(b.macKey)
	for _, x := range r.GetRanges() {
		r.Count += x.GetCount()
	}
	return r
}

// ranges returns ranges of batches, mostly under the MAC key and mostly within the batches.
func (w *world) ranges(macKey string) (list []*tuplesv1.Range) {
	var among []batch
	for _, b := range w.batches {
		if b.macKey == macKey || w.rng.IntN(20) == 0 {
			among = append(among, b)
		}
	}
	for range 1 + w.rng.IntN(2) {
		b := among[w.rng.IntN(len(among))]
		first := w.rng.Uint64N(b.count)
		n := 1 + w.rng.Uint64N(min(8, b.count-first))
		if w.rng.IntN(15) == 0 {
			n = w.rng.Uint64N(9)
		}
		list = append(list, &tuplesv1.Range{BatchId: b.id, First: first, Count: n})
	}
	return list
}

// actRollback restores an older copy of a party's store. If a peer knows a later state, the party
// goes into quarantine; otherwise no share has left the party since the copy.
func (w *world) actRollback() {
	w.calm = false
	i := w.party()
	p := w.parties[i]
	if !p.running() || p.odd() {
		return
	}
	p.stop()
	putBack, err := p.back.copy()
	if err != nil {
		w.failed("a store cannot be copied: %v", err)
		return
	}
	w.note("the store of party %d is copied", i)
	w.restart(i, works, 0)
	then, err := p.vault().Generation()
	if err != nil {
		w.failed("a generation cannot be read: %v", err)
		return
	}
	w.model.mu.Lock()
	step, active := w.model.step, maps.Clone(w.model.active[i])
	w.model.mu.Unlock()
	m := manner{evil: w.rng.IntN(2) == 0, end: true, network: w.rng.IntN(2) == 0}
	acts := w.acts(m)
	for range 1 + w.rng.IntN(8) {
		acts[w.rng.IntN(len(acts))]()
		w.pass(20 * time.Millisecond)
	}
	w.model.count(i)
	p.stop()
	w.model.mu.Lock()
	proven := false
	for j, peer := range w.parties {
		proven = proven || j != i && peer.running() && w.model.heard[j][i] > then
	}
	w.model.rolled[i], w.model.active[i] = true, active
	if !proven {
		for r, e := range w.model.ended[i] {
			if e.step > step {
				delete(w.model.ended[i], r)
			}
		}
	}
	w.model.heard[i] = [parties]uint64{} // at least this much
	w.model.mu.Unlock()
	putBack()
	if w.rng.IntN(3) == 0 {
		for j := range parties {
			if j != i {
				w.restart(j, works, 0)
			}
		}
	}
	w.note("the copy of party %d is restored, which a peer can prove: %v", i, proven)
	w.connect()
	w.restart(i, works, 0)
	together(w.aFetch(), w.aFetch(), w.aFetch(), func() { w.pass(3 * time.Second) })
	for range 4 {
		if r := w.reservation(); r != nil {
			w.fetch(w.rightful(r, i), i, r.GetId(), 0, -1, 0)
		}
	}
	w.look()
	w.model.mu.Lock()
	if proven && p.running() && !w.model.held[i] {
		w.model.violated("party %d is not in quarantine although a peer knows a later state", i)
	}
	w.model.mu.Unlock()
	if p.running() && w.rng.IntN(2) == 0 {
		w.leave(i)
	}
}
