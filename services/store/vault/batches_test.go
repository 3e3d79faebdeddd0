package vault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// counting is a store that counts how often each batch is read and written in transactions that
// write.
type counting struct {
	*memory
	most map[string]int // by action, in one transaction
}

type countingTx struct {
	store.Tx
	done map[string]int
}

func (t countingTx) Get(key string) ([]byte, error) {
	t.done["get "+key]++
	return t.Tx.Get(key)
}

func (t countingTx) Put(key string, value []byte) error {
	t.done["put "+key]++
	return t.Tx.Put(key, value)
}

func (s *counting) Update(f func(store.Tx) error) error {
	return s.memory.Update(func(tx store.Tx) error {
		t := countingTx{tx, map[string]int{}}
		err := f(t)
		for what, n := range t.done {
			if strings.Contains(what, stock.BatchPrefix) {
				s.most[what] = max(s.most[what], n)
			}
		}
		return err
	})
}

// However many ranges of a batch there are, a transaction opens and seals its record once.
func TestBatchesOncePerTransaction(t *testing.T) {
	s := &counting{memory: &memory{disk: newDisk()}, most: map[string]int{}}
	v, err := OpenIn(s, &seal.Key{})
	must(t, err)
	const many = 300
	stocked(t, v, many, many)
	c := setClock(v)
	once := func(what string, f func() error) {
		t.Helper()
		clear(s.most)
		must(t, f())
		for _, b := range []string{"batch-0", "batch-1"} {
			if n := s.most["get "+stock.BatchPrefix+b]; n != 1 {
				t.Errorf("%s reads %s %d times", what, b, n)
			}
			if n := s.most["put "+stock.BatchPrefix+b]; n > 1 {
				t.Errorf("%s writes %s %d times", what, b, n)
			}
		}
	}
	// Every third tuple of both batches in turn, first of one reservation and then of many.
	third := func(from, to uint64) (ranges []stock.Range) {
		for i := from; i < to; i++ {
			ranges = append(ranges, in(i%2, 3*(i/2), 1))
		}
		return ranges
	}
	all := third(0, 2*many/3)
	once("reserve", func() error { _, err := v.Reserve(reservation(v, "back", all...)); return err })
	_, err = v.Withdraw("back")
	must(t, err)
	once("restock", func() error { _, err := v.Release("back", false); return err })
	once("reserve again", func() error { _, err := v.Reserve(reservation(v, "gone", all[:100]...)); return err })
	once("deliver", func() error { _, _, err := v.Deliver("gone", "alice", 0); return err })
	got, err := fetch(v, "gone", "alice")
	wantShares(t, got, err, all[:100]...)
	once("discard", func() error { _, err := v.Release("gone", true); return err })
	for i := uint64(100); i < uint64(len(all)); i += 10 {
		id := fmt.Sprint("due-", i)
		reserve(t, v, id, all[i:i+10]...)
		_, _, err := v.Deliver(id, "alice", 0)
		must(t, err)
	}
	c.pass(2 * time.Hour)
	once("sweep", v.Sweep)
	for _, id := range []string{"batch-0", "batch-1"} {
		b, err := v.Batch(id)
		if err != nil || b.Taken.Count() != many/3 || b.Gone.Count() != many/3 || b.Wiped.Count() != many/3 || b.Lost != 0 {
			t.Errorf("%s: %d taken, %d gone, %d wiped, %d lost, %v", id, b.Taken.Count(), b.Gone.Count(), b.Wiped.Count(), b.Lost, err)
		}
	}
}
