package stock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/store"
)

// Reservations that ended long ago are deleted with their idempotency key; open and recent
// reservations are kept.
func TestForget(t *testing.T) {
	s, err := store.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &records{s}
	defer r.close()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const n = 10
	for i := range n {
		x := &tuplesv1.Reservation{Id: fmt.Sprint("r", i), State: tuplesv1.ReservationState_RESERVATION_STATE_RESERVED, Lease: timestamppb.New(now)}
		if err := r.add(x, fmt.Sprint("alice/k", i), now.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if x.State = tuplesv1.ReservationState_RESERVATION_STATE_ERASED; i == 2 {
			continue // stays open
		}
		if delivered, err := r.end(x, false); err != nil || delivered {
			t.Fatal(delivered, err)
		}
	}
	for range 3 { // a few at a time
		if _, err := r.forget(now.Add(5*time.Hour-time.Minute), 3); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		_, byID := r.get(fmt.Sprint("r", i))
		_, byKey := r.keyed(fmt.Sprint("alice/k", i))
		if gone := i < 5 && i != 2; errors.Is(byID, errNoReservation) != gone || errors.Is(byKey, errNoReservation) != gone {
			t.Errorf("reservation %d: %v, %v", i, byID, byKey)
		}
	}
	var left int
	if err := r.newest("", func(string, *tuplesv1.Reservation) bool { left++; return true }); err != nil || left != n-4 {
		t.Errorf("%d are listed, %v", left, err)
	}
}
