package vault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func states(t *testing.T, v *Vault, want ...stock.ReservationState) {
	t.Helper()
	for i, state := range want {
		r, err := v.Reservation(fmt.Sprintf("r%d", i))
		if state == "" {
			refused(t, err, vaulterr.ErrNotFound)
		} else if err != nil || r.State != state {
			t.Fatalf("r%d is %s, want %s: %v", i, r.State, state, err)
		}
	}
}

// Due work is done at its time, and not before.
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
	sweep := func(d time.Duration, want ...stock.ReservationState) {
		t.Helper()
		c.pass(d)
		for range 2 {
			must(t, v.Sweep())
			states(t, v, want...)
		}
	}
	sweep(0, stock.Reserved, stock.Consumed, stock.Withdrawn, stock.Released, stock.Erased)
	sweep(time.Hour-1, stock.Reserved, stock.Consumed, stock.Withdrawn, stock.Released, stock.Erased)
	sweep(1, stock.Withdrawn, stock.Erased, stock.Withdrawn, stock.Released, stock.Erased)
	sweep(stock.WithdrawnFor-time.Hour-1, stock.Withdrawn, stock.Erased, stock.Withdrawn, "", stock.Erased)
	sweep(1, stock.Withdrawn, stock.Erased, stock.Erased, "", stock.Erased) // r2 was withdrawn an hour before its lease ended
	sweep(time.Hour-1, stock.Withdrawn, stock.Erased, stock.Erased, "", stock.Erased)
	sweep(1, stock.Erased, stock.Erased, stock.Erased, "", stock.Erased)
	b, err := v.Batch("batch-0")
	if err != nil || b.Lost != 30 || b.Wiped.Count() != 40 || b.Free().Count() != 60 {
		t.Fatalf("%+v, %v", b, err)
	}
	sweep(stock.RememberFor-stock.WithdrawnFor-1, stock.Erased, stock.Erased, stock.Erased, "", stock.Erased)
	sweep(1, stock.Erased, "", stock.Erased, "", "")
	sweep(stock.WithdrawnFor, "", "", "", "", "")
	must(t, v.Backend.View(func(tx store.Tx) error {
		return tx.Scan(stock.DuePrefix, func(key string, _ []byte) error { return errors.New("left: " + key) })
	}))
	// Erased tuples never come back, whatever is forgotten; an old proposal does nothing.
	_, err = v.Reserve(reservation(v, "again", in(0, 15, 1)))
	refused(t, err, vaulterr.ErrTaken)
	old := reservation(v, "r3", in(0, 30, 10))
	old.Lease = c.Add(-time.Hour)
	_, err = v.Reserve(old)
	refused(t, err, vaulterr.ErrExpired)
}

// More than a transaction takes is swept in one call.
func TestSweepOfMany(t *testing.T) {
	v := inMemory(t)
	const many = 2*stock.SweepAtOnce + 10
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
	c.pass(stock.WithdrawnFor)
	must(t, v.Sweep())
	if b, err = v.Batch("batch-0"); err != nil || b.State != stock.BatchConsumed || b.Lost != many/2 {
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
	states(t, v, stock.Reserved, stock.Consumed)
	_, err = v.Reserve(reservation(v, "r2", in(0, 19, 2)))
	refused(t, err, vaulterr.ErrTaken)
	c.pass(300 * 24 * time.Hour)
	must(t, v.Sweep())
	must(t, v.Sweep())
	states(t, v, stock.Withdrawn, stock.Erased)
	c.pass(-200 * 24 * time.Hour)
	must(t, v.Sweep())
	states(t, v, stock.Withdrawn, stock.Erased)
	_, err = fetch(v, "r1", "alice")
	refused(t, err, vaulterr.ErrExpired)
	_, err = fetch(v, "r0", "alice")
	refused(t, err, vaulterr.ErrWithdrawn)
	_, err = v.Release("r0", false)
	must(t, err)
	reserve(t, v, "r3", in(0, 0, 10))
	got, err = fetch(v, "r3", "bob")
	wantShares(t, got, err, in(0, 0, 10))
}

// spoil puts garbage under the keys of records.
func spoil(t *testing.T, v *Vault, keys ...string) {
	t.Helper()
	must(t, v.Backend.Update(func(tx store.Tx) error {
		for _, k := range keys {
			if err := tx.Put(k, []byte("garbage")); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Records that do not open keep nobody else's lease from ending, nor shares from being erased.
func TestSweepPastGarbage(t *testing.T) {
	v := inMemory(t)
	const many = stock.SweepAtOnce + 50
	stocked(t, v, many, 20)
	c := setClock(v)
	reserve(t, v, "bad-batch", in(0, 0, 1), in(1, 0, 1))
	_, _, err := v.Deliver("bad-batch", "alice", 0)
	must(t, err)
	c.pass(time.Second)
	for i := range uint64(many - 1) {
		id := fmt.Sprintf("r%d", i)
		reserve(t, v, id, in(0, 1+i, 1))
		_, _, err := v.Deliver(id, "alice", 0)
		must(t, err)
	}
	bad := []string{stock.ReservationPrefix + "r0", stock.ReservationPrefix + "r100", fmt.Sprintf("%sr%d", stock.ReservationPrefix, many-2), stock.BatchPrefix + "batch-1"}
	spoil(t, v, append(bad, stock.DuePrefix+"0")...)
	c.pass(time.Hour)
	for range 2 {
		err := v.Sweep()
		refused(t, err, vaulterr.ErrCorrupt)
		if want := "5 reservations"; !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
		b, err := v.Batch("batch-0")
		must(t, err)
		if b.Wiped.Count() != many-4 || b.Taken.Count() != many {
			t.Fatalf("%d wiped of %d, %d taken", b.Wiped.Count(), many, b.Taken.Count())
		}
	}
	for i := range many - 1 {
		id := fmt.Sprintf("r%d", i)
		if r, err := v.Reservation(id); slices.Contains(bad, stock.ReservationPrefix+id) {
			refused(t, err, vaulterr.ErrCorrupt)
		} else if err != nil || r.State != stock.Erased {
			t.Errorf("%s is %s, %v", id, r.State, err)
		}
	}
}

// A storage that fails is not asked again for each reservation.
func TestSweepOfAFailingStore(t *testing.T) {
	d := newDisk()
	v := d.open(t, &seal.Key{})
	stocked(t, v, 50)
	c := setClock(v)
	for i := range uint64(50) {
		reserve(t, v, fmt.Sprintf("r%d", i), in(0, i, 1))
	}
	c.pass(time.Hour)
	tried := 0
	d.fault = func(int, string) fault { tried++; return fails }
	refused(t, v.Sweep(), errFull)
	if tried != 1 {
		t.Errorf("%d writes", tried)
	}
	d.fault = nil
	must(t, v.Sweep())
	states(t, v, stock.Withdrawn)
}

// A blob that could not be erased goes with a later sweep, and nothing else does.
func TestSweepErasesOrphans(t *testing.T) {
	d := newDisk()
	v := d.open(t, &seal.Key{})
	stocked(t, v, 20, 20)
	before := objects(t, v)
	d.fault = func(_ int, where string) fault {
		if where == "erase" {
			return fails
		}
		return works
	}
	refused(t, v.RevokeBatch("batch-0", "test"), errFull)
	refused(t, v.Sweep(), errFull)
	if n := objects(t, v); n != before {
		t.Fatalf("%d objects, want %d", n, before)
	}
	d.fault = nil
	spoil(t, v, fmt.Sprintf("%s%020d/r", stock.DuePrefix, 0), stock.ReservationPrefix+"r") // which does not keep them
	refused(t, v.Sweep(), vaulterr.ErrCorrupt)
	if n := objects(t, v); n != before-2 {
		t.Errorf("%d objects, want %d", n, before-2)
	}
	reserve(t, v, "r1", in(1, 0, 5))
	got, err := fetch(v, "r1", "alice")
	wantShares(t, got, err, in(1, 0, 5))
}
