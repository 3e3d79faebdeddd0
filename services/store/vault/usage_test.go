package vault

import (
	"errors"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// A client's usage is counted with the delivery, once, across restarts, and anew on the next day.
func TestQuotaIsChargedWithTheDelivery(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	defer func() { v.Close() }()
	v.Clock = clock
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
	v.Clock = clock
	if err := draw("two"); !errors.Is(err, over) {
		t.Errorf("3 more of 2 after a restart: %v", err)
	}
	if r, err := v.Reservation("two"); err != nil || r.State != stock.Reserved {
		t.Errorf("the rejected call gave %s, %v", r.State, err)
	}
	must(t, draw("three"))
	now = now.Add(24 * time.Hour)
	reserve(t, v, "four", in(0, 8, 5))
	must(t, draw("four"))
	reserve(t, v, "five", in(0, 13, 1))
	if err := draw("five"); !errors.Is(err, over) {
		t.Errorf("a sixth: %v", err)
	}
	// a clock that is far ahead for a while deletes no usage
	today := now
	now = today.AddDate(0, 0, 7)
	reserve(t, v, "ahead", in(0, 15, 1))
	must(t, draw("ahead"))
	now = today
	reserve(t, v, "six", in(0, 14, 1))
	if err := draw("six"); !errors.Is(err, over) {
		t.Errorf("a sixth, after the clock was ahead: %v", err)
	}
	noFindings(t, v)
}

// The stored usage of a client is bounded: the latest days.
func TestUsageIsForgotten(t *testing.T) {
	v := inMemory(t)
	days := func() (n int) {
		must(t, v.Backend.View(func(tx store.Tx) error {
			return tx.Scan(stock.UsagePrefix, func(string, []byte) error { n++; return nil })
		}))
		return n
	}
	for day := range quota.Day(stock.UsageDays + 5) {
		must(t, v.Update(func(tx store.Tx) error {
			if day%100 == 0 {
				must(t, stock.Usage{Stock: v.Stock, Tx: tx}.Add("bob", day, "scalar", 1, 2))
			}
			must(t, stock.Usage{Stock: v.Stock, Tx: tx}.Add("alice", day, "scalar", 1, 2))
			return stock.Usage{Stock: v.Stock, Tx: tx}.Add("alice", day, "bit", 1, 2)
		}))
	}
	if n := days(); n != stock.UsageDays+5 { // alice's, and five of bob
		t.Errorf("%d days", n)
	}
	must(t, v.Backend.View(func(tx store.Tx) error {
		first, err := stock.Usage{Stock: v.Stock, Tx: tx}.Load("alice", 4)
		must(t, err)
		last, err := stock.Usage{Stock: v.Stock, Tx: tx}.Load("alice", stock.UsageDays+4)
		must(t, err)
		if first.Bytes != 0 || last.Bytes != 4 || last.Tuples["scalar"] != 1 || last.Tuples["bit"] != 1 {
			t.Errorf("%+v, %+v", first, last)
		}
		return nil
	}))
}
