package vault

import (
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A released reservation keeps a record of constant size, whatever ranges it had, until an hour
// after its lease. While the record exists, the same proposal again reserves nothing, and any other
// under its id is rejected; when it is deleted, the lease has ended and the reservation cannot come
// back.
func TestReleasedIsCompacted(t *testing.T) {
	v := inMemory(t)
	c := setClock(v)
	stocked(t, v, 200)
	var ranges []stock.Range
	for i := range uint64(40) {
		ranges = append(ranges, in(0, 2*i, 1))
	}
	r := reserve(t, v, "r", ranges...)
	r.State = ""
	full := recordSize(t, v, "r")
	free := func() uint64 {
		b, err := v.Batch(ranges[0].Batch)
		must(t, err)
		return b.Count - b.Taken.Count()
	}
	_, err := v.Withdraw("r")
	must(t, err)
	_, err = v.Release("r", false)
	must(t, err)
	if n := recordSize(t, v, "r"); n >= full/2 {
		t.Errorf("the record had %d bytes, and released %d", full, n)
	}
	x, err := v.Reservation("r")
	must(t, err)
	if x.Count() != r.Count() || x.State != stock.Released || len(x.Ranges) != 0 || x.Digest == ([32]byte{}) {
		t.Errorf("%+v", x)
	}
	now := free()
	if again, err := v.Reserve(r); err != nil || again.State != stock.Released {
		t.Errorf("the same again: %s, %v", again.State, err)
	}
	other := r
	other.Lease = r.Lease.Add(time.Second)
	_, err = v.Reserve(other)
	refused(t, err, vaulterr.ErrExists)
	if n := free(); n != now || n != 200 {
		t.Errorf("a proposal of a released reservation holds tuples: %d are free, and were %d", n, now)
	}
	c.Time = r.Lease.Add(stock.ClockSlack - time.Second)
	must(t, v.Sweep())
	if _, err := v.Reservation("r"); err != nil {
		t.Errorf("forgotten too early: %v", err)
	}
	c.Time = r.Lease.Add(stock.ClockSlack + time.Second)
	must(t, v.Sweep())
	_, err = v.Reservation("r")
	refused(t, err, vaulterr.ErrNotFound)
	_, err = v.Reserve(r)
	refused(t, err, vaulterr.ErrExpired)
}

func recordSize(t *testing.T, v *Vault, id string) (n int) {
	t.Helper()
	must(t, v.Backend.View(func(tx store.Tx) error {
		b, err := tx.Get(stock.ReservationPrefix + id)
		n = len(b)
		return err
	}))
	return n
}
