package stock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Bounds of one transaction of Sweep, because other writers wait for it.
const (
	SweepAtOnce = 256
	sweepRanges = 4096 // and the remaining ranges of the last reservation
)

// sweep is the state of one call of SweepTuples.
type sweep struct {
	v       *Stock
	now     time.Time
	batches map[string]bool // with shares to erase
	failed  int
	first   error // of what failed
}

// SweepTuples ends due reservations and erases the shares of their tuples.
func (v *Stock) SweepTuples() error {
	s := &sweep{v: v, now: v.Clock(), batches: map[string]bool{}}
	err := s.leases()
	return errors.Join(err, s.failure(), v.wipeAll(slices.Sorted(maps.Keys(s.batches))), v.WipePending())
}

// failure returns an error about the skipped reservations.
func (s *sweep) failure() error {
	if s.failed == 0 {
		return nil
	}
	return fmt.Errorf("vault: %d reservations cannot be swept, the first because of this: %w", s.failed, s.first)
}

// leases handles all due reservations, until the storage fails.
func (s *sweep) leases() error {
	for after := ""; ; {
		due, err := s.due(after)
		if err != nil || len(due) == 0 {
			return err
		}
		n, err := s.do(due)
		if seal.OfRecord(err) {
			n, err = s.oneByOne(due)
		}
		if err != nil {
			return err
		}
		after = due[n-1]
	}
}

// due returns some keys of due reservations, after one key.
func (s *sweep) due(after string) (due []string, err error) {
	later := fmt.Sprintf("%s%020d/", DuePrefix, s.now.UnixNano()+1)
	err = s.v.Backend.View(func(tx store.Tx) error {
		due = nil
		return tx.ScanAfter(DuePrefix, after, func(key string, _ []byte) (bool, error) {
			if key >= later {
				return false, nil
			}
			due = append(due, key)
			return len(due) < SweepAtOnce, nil
		})
	})
	return due, err
}

// oneByOne handles reservations one at a time, after a failure of all at once.
func (s *sweep) oneByOne(due []string) (n int, err error) {
	for i := range due {
		_, err := s.do(due[i : i+1])
		switch {
		case seal.OfRecord(err):
			if s.failed++; s.first == nil {
				s.first = fmt.Errorf("%s: %w", due[i], err)
			}
		case err != nil:
			return i, err
		}
	}
	return len(due), nil
}

// do handles the first of some due reservations, at least one, in one transaction.
func (s *sweep) do(due []string) (n int, err error) {
	var ending []string
	err = s.v.Advance(func(tx store.Tx) error {
		held, ranges := s.v.openBatches(tx), 0
		for n = 0; n < len(due) && ranges < sweepRanges; n++ {
			ended, err := s.one(held, due[n])
			if err != nil {
				return err
			}
			ranges += ended
		}
		ending = held.ending()
		return held.flush()
	})
	for _, id := range ending {
		s.batches[id] = true
	}
	return n, err
}

// one handles a due reservation, and returns how many ranges it ended. A time that was replaced by
// a later one does nothing.
func (s *sweep) one(held *openBatches, key string) (ranges int, err error) {
	v, tx := s.v, held.tx
	_, id, ok := strings.Cut(key[len(DuePrefix):], "/")
	if !ok {
		return 0, fmt.Errorf("%w: no record has such a key", vaulterr.ErrCorrupt)
	}
	if err := tx.Delete(key); err != nil {
		return 0, err
	}
	r, err := seal.Get[Reservation](v.Store, tx, ReservationPrefix+id)
	if errors.Is(err, vaulterr.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ended := !r.Lease.After(s.now)
	switch {
	case r.State == Reserved && ended:
		return 0, v.withdraw(tx, r)
	case r.State == Consumed && ended, r.State == Withdrawn && !r.waits().After(s.now):
		return len(r.Ranges), v.end(held, r)
	case (r.State == Erased || r.State == Released) && !r.Remembered().After(s.now):
		return 0, tx.Delete(ReservationPrefix + id)
	case r.State == Reserved || r.State == Consumed: // the clock was put back
		return 0, v.PutReservation(tx, r, r.Lease)
	case r.State == Withdrawn:
		return 0, v.PutReservation(tx, r, r.waits())
	}
	return 0, v.PutReservation(tx, r, r.Remembered())
}
