package vault

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
)

func states(t *testing.T, v *Vault, want ...ReservationState) {
	t.Helper()
	for i, state := range want {
		r, err := v.Reservation(fmt.Sprintf("r%d", i))
		if state == "" {
			refused(t, err, ErrNotFound)
		} else if err != nil || r.State != state {
			t.Fatalf("r%d is %s, want %s: %v", i, r.State, state, err)
		}
	}
}

// What is due is done at its time, and not before.
func TestSweep(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 100)
	c := setClock(v)
	for i := range uint64(5) {
		reserve(t, v, fmt.Sprintf("r%d", i), in(0, i*10, 10))
	}
	_, err := fetch(v, "r1", "alice")
	must(t, err)
	for _, id := range []string{"r2", "r3"} {
		_, err = v.Withdraw(id)
		must(t, err)
	}
	_, err = v.Release("r3", false)
	must(t, err)
	_, err = v.Release("r4", true)
	must(t, err)
	sweep := func(d time.Duration, want ...ReservationState) {
		t.Helper()
		c.pass(d)
		for range 2 {
			must(t, v.Sweep())
			states(t, v, want...)
		}
	}
	sweep(0, Reserved, Consumed, Withdrawn, Released, Erased)
	sweep(time.Hour-1, Reserved, Consumed, Withdrawn, Released, Erased)
	sweep(1, Withdrawn, Erased, Withdrawn, Released, Erased)
	sweep(withdrawnFor-1, Withdrawn, Erased, Withdrawn, Released, Erased)
	sweep(1, Erased, Erased, Erased, Released, Erased)
	b, err := v.Batch("batch-0")
	if err != nil || b.Lost != 30 || b.Wiped.Count() != 40 || b.Free().Count() != 60 {
		t.Fatalf("%+v, %v", b, err)
	}
	sweep(rememberFor-withdrawnFor-1, Erased, Erased, Erased, Released, Erased)
	sweep(1, Erased, "", Erased, "", "")
	sweep(withdrawnFor, "", "", "", "", "")
	must(t, v.store.View(func(tx store.Tx) error {
		return tx.Scan(duePrefix, func(key string, _ []byte) error { return errors.New("left: " + key) })
	}))
	// What went is never there again, whatever is forgotten; an old proposal does nothing.
	_, err = v.Reserve(reservation(v, "again", in(0, 15, 1)))
	refused(t, err, ErrTaken)
	old := reservation(v, "r3", in(0, 30, 10))
	old.Lease = c.Add(-time.Hour)
	_, err = v.Reserve(old)
	refused(t, err, ErrExpired)
}

// More than a transaction takes is swept in one call.
func TestSweepOfMany(t *testing.T) {
	v := inMemory(t)
	const many = 2*sweepAtOnce + 10
	stocked(t, v, many)
	c := setClock(v)
	for i := range uint64(many) {
		id := fmt.Sprintf("r%d", i)
		reserve(t, v, id, in(0, i, 1))
		if i%2 == 0 {
			_, _, err := v.Deliver(id, "alice", 0)
			must(t, err)
		}
	}
	c.pass(time.Hour)
	must(t, v.Sweep())
	b, err := v.Batch("batch-0")
	must(t, err)
	if b.Wiped.Count() != many/2 {
		t.Errorf("%d wiped", b.Wiped.Count())
	}
	c.pass(withdrawnFor)
	must(t, v.Sweep())
	if b, err = v.Batch("batch-0"); err != nil || b.State != BatchConsumed || b.Lost != many/2 {
		t.Errorf("%s, %d lost, %v", b.State, b.Lost, err)
	}
}

// A clock that jumps loses tuples or time, and never delivers twice.
func TestClockJumps(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 100)
	c := setClock(v)
	reserve(t, v, "r0", in(0, 0, 10))
	reserve(t, v, "r1", in(0, 10, 10))
	got, err := fetch(v, "r1", "alice")
	wantShares(t, got, err, in(0, 10, 10))
	c.pass(-100 * 24 * time.Hour)
	must(t, v.Sweep())
	states(t, v, Reserved, Consumed)
	_, err = v.Reserve(reservation(v, "r2", in(0, 19, 2)))
	refused(t, err, ErrTaken)
	c.pass(300 * 24 * time.Hour)
	must(t, v.Sweep())
	must(t, v.Sweep())
	states(t, v, Withdrawn, Erased)
	c.pass(-200 * 24 * time.Hour)
	must(t, v.Sweep())
	states(t, v, Withdrawn, Erased)
	_, err = fetch(v, "r1", "alice")
	refused(t, err, ErrExpired)
	_, err = fetch(v, "r0", "alice")
	refused(t, err, ErrWithdrawn)
	_, err = v.Release("r0", false)
	must(t, err)
	reserve(t, v, "r3", in(0, 0, 10))
	got, err = fetch(v, "r3", "bob")
	wantShares(t, got, err, in(0, 0, 10))
}
