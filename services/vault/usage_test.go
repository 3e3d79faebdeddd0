package vault

import (
	"errors"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/quota"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// What a client draws is counted with the delivery, once, across restarts, and a day later anew.
func TestQuotaIsChargedWithTheDelivery(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	defer func() { v.Close() }()
	v.now = clock
	book := quota.NewBook(map[string]quota.Limits{"alice": {Tuples: map[string]uint64{batchOf("", 0).Kind: 5}}}, clock)
	stocked(t, v, 20)
	draw := func(id string) error {
		_, _, err := v.DeliverCharged(id, "alice", 0, book)
		return err
	}
	over := &rpc.Error{Code: rpc.OverQuota}
	reserve(t, v, "one", in(0, 0, 3))
	reserve(t, v, "two", in(0, 3, 3))
	reserve(t, v, "three", in(0, 6, 2))
	must(t, draw("one"))
	must(t, draw("one")) // again is no other draw
	if err := draw("two"); !errors.Is(err, over) {
		t.Errorf("3 more of 2: %v", err)
	}
	must(t, v.Close())
	v = mustOpen(t, dir, k)
	v.now = clock
	if err := draw("two"); !errors.Is(err, over) {
		t.Errorf("3 more of 2 after a restart: %v", err)
	}
	if r, err := v.Reservation("two"); err != nil || r.State != Reserved {
		t.Errorf("what was refused is %s, %v", r.State, err)
	}
	must(t, draw("three"))
	now = now.Add(24 * time.Hour)
	reserve(t, v, "four", in(0, 8, 5))
	must(t, draw("four"))
	reserve(t, v, "five", in(0, 13, 1))
	if err := draw("five"); !errors.Is(err, over) {
		t.Errorf("a sixth: %v", err)
	}
}
