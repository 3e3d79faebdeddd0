package stock

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// Every open reservation is polled in turn, delivered reservations are not polled again, and ended
// reservations stay ended.
func TestUndelivered(t *testing.T) {
	s := testService(t, nil, nil)
	now := time.Now()
	for i := range 10 {
		x := &tuplesv1.Reservation{Id: fmt.Sprint("r", i), State: tuplesv1.ReservationState_RESERVATION_STATE_RESERVED,
			Lease: timestamppb.New(now.Add(time.Duration(i) * time.Minute))}
		if err := s.records.add(x, "", now); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(after string) (ids, next string) {
		list, next, err := s.records.undelivered(after, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			ids += x.GetId()
		}
		return ids, next
	}
	check := func(want ...string) {
		t.Helper()
		next := ""
		for i, w := range want {
			got := ""
			if got, next = ask(next); got != w || (next == "") != (i == len(want)-1) {
				t.Errorf("%d: %s and %q, want %s", i, got, next, w)
			}
		}
	}
	check("r0r1r2r3", "r4r5r6r7", "r8r9")
	for _, id := range []string{"r1", "r4"} {
		for _, first := range []bool{true, false} {
			if x, fresh, err := s.records.deliver(id, "a,b", timestamppb.New(now)); err != nil || fresh != first || x.GetClient() != "a,b" {
				t.Errorf("%v, %v, %v", x, fresh, err)
			}
		}
	}
	if err := s.ended([]string{"r2", "r4"}, map[string]bool{"r2": true}, map[string]bool{"r2": true}); err != nil {
		t.Fatal(err)
	}
	if x, _, err := s.records.deliver("r2", "a,b", timestamppb.New(now)); x != nil || err != nil {
		t.Errorf("a reservation that has ended: %v, %v", x, err)
	}
	check("r0r3r5r6", "r7r8r9")
	for id, want := range map[string]tuplesv1.ReservationState{
		"r1": tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED, "r2": tuplesv1.ReservationState_RESERVATION_STATE_RELEASED,
		"r4": tuplesv1.ReservationState_RESERVATION_STATE_ERASED,
	} {
		if x, err := s.records.get(id); err != nil || x.GetState() != want {
			t.Errorf("%s is %v, %v", id, x, err)
		}
	}
	if _, err := s.records.forget(now.Add(time.Hour), 100); err != nil {
		t.Fatal(err)
	}
	if x, err := s.records.get("r1"); err != nil {
		t.Errorf("an open reservation was dropped: %v, %v", x, err)
	}
}

// Delivered tuples do not count as reserved, even if the parties still hold them for the
// reservation.
func TestDeliveredLevels(t *testing.T) {
	report := func() []*tuplesv1.Batch { return []*tuplesv1.Batch{batch("a", "dev", 0, nil)} } // 10 are reserved, 10 were delivered
	s := testService(t, report(), report())
	at := place{keyOf(batch("a", "dev", 0, nil).GetClass()), 1}
	r := func(count uint64) *tuplesv1.Reservation {
		return &tuplesv1.Reservation{Class: batch("a", "dev", 0, nil).GetClass(), Epoch: 1, Count: count}
	}
	s.view.deliver(&tuplesv1.Reservation{Class: &tuplesv1.Class{Tenant: "other"}, Epoch: 1, Count: 5}, true)
	for _, c := range []struct{ delivered, reserved, consumed uint64 }{{0, 10, 10}, {4, 6, 14}, {10, 0, 20}, {11, 0, 20}} {
		s.view.deliver(r(c.delivered), true)
		found, _ := s.view.levels()
		if x := found[at]; len(found) != 1 || x.GetReserved() != c.reserved || x.GetConsumed() != c.consumed {
			t.Errorf("%+v: %v", c, found)
		}
		s.view.deliver(r(c.delivered), false)
	}
}
