package store_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
)

// concurrent runs updates of which some fail, at every point of their writes. No update is lost,
// and a failed one leaves no trace.
func concurrent(t *testing.T, k kind) {
	s := k.fresh(t)
	const workers, each = 16, 12
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				fails := (w+i)%3 == 0
				err := s.Update(func(tx store.Tx) error {
					if err := tx.Put(fmt.Sprintf("r/%02d/%02d", w, i), []byte("v")); err != nil {
						return err
					}
					if err := tx.Put("last", []byte{byte(w), byte(i)}); err != nil {
						return err
					}
					if fails {
						return errOwn
					}
					return nil
				})
				if fails && err != errOwn || !fails && err != nil {
					t.Errorf("worker %d update %d: %v", w, i, err)
				}
			}
		})
	}
	wg.Wait()
	var wanted []string
	for w := range workers {
		for i := range each {
			if (w+i)%3 != 0 {
				wanted = append(wanted, fmt.Sprintf("r/%02d/%02d=v", w, i))
			}
		}
	}
	wantRecords(t, s, "r/", wanted...)
}

// counter: updates read the writes of earlier updates, also within a group.
func counter(t *testing.T, k kind) {
	s := k.fresh(t)
	const workers, each = 20, 10
	add := func(fail bool) error {
		return s.Update(func(tx store.Tx) error {
			v, err := tx.Get("n")
			if err != nil {
				return err
			}
			var n uint64
			if v != nil {
				n = binary.BigEndian.Uint64(v)
			}
			if err := tx.Put("n", binary.BigEndian.AppendUint64(nil, n+1)); err != nil || !fail {
				return err
			}
			return errOwn
		})
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if err := add(false); err != nil {
					t.Error(err)
				}
				if err := add(true); err != errOwn {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, s.View(func(tx store.Tx) error {
		v, err := tx.Get("n")
		if err == nil && binary.BigEndian.Uint64(v) != workers*each {
			t.Errorf("%d of %d increments", binary.BigEndian.Uint64(v), workers*each)
		}
		return err
	}))
}
