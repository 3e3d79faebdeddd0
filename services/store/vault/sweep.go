package vault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// What bounds a transaction of Sweep: others do not write meanwhile.
const (
	sweepAtOnce = 256
	sweepRanges = 4096 // and the rest of the reservation that has the last of them
)

// sweep is a sweep under way.
type sweep struct {
	v       *Vault
	now     time.Time
	batches map[string]bool // with shares to erase
	failed  int
	first   error // of what failed
}

// Sweep does what is due: leases that have ended withdraw what was not delivered and erase what was; what waited in
// vain to go back into stock is erased; masks that were spent are erased; and what ended long ago is forgotten. What cannot be done about one reservation,
// because a record does not open, is part of the error and keeps nothing else from being done.
func (v *Vault) Sweep() error {
	return errors.Join(v.sweepTuples(), v.sweepApprovals(), v.eraseOrphans())
}

// sweepTuples does what is due about reservations and erased tuples.
func (v *Vault) sweepTuples() error {
	s := &sweep{v: v, now: v.now(), batches: map[string]bool{}}
	err := s.leases()
	return errors.Join(err, s.failure(), v.wipeAll(slices.Sorted(maps.Keys(s.batches))), v.wipePending())
}

// failure says what was passed over.
func (s *sweep) failure() error {
	if s.failed == 0 {
		return nil
	}
	return fmt.Errorf("vault: %d reservations cannot be swept, the first because of this: %w", s.failed, s.first)
}

// leases does what is due about all reservations, until the storage fails.
func (s *sweep) leases() error {
	for after := ""; ; {
		due, err := s.due(after)
		if err != nil || len(due) == 0 {
			return err
		}
		n, err := s.do(due)
		if ofRecord(err) {
			n, err = s.oneByOne(due)
		}
		if err != nil {
			return err
		}
		after = due[n-1]
	}
}

// due gives some keys of what is due, after one.
func (s *sweep) due(after string) (due []string, err error) {
	later := fmt.Sprintf("%s%020d/", duePrefix, s.now.UnixNano()+1)
	err = s.v.store.View(func(tx store.Tx) error {
		due = nil
		return tx.ScanAfter(duePrefix, after, func(key string, _ []byte) (bool, error) {
			if key >= later {
				return false, nil
			}
			due = append(due, key)
			return len(due) < sweepAtOnce, nil
		})
	})
	return due, err
}

// ofRecord reports whether an error is of a record, which others need not share, and not of the storage.
func ofRecord(err error) bool {
	return errors.Is(err, vaulterr.ErrCorrupt) || errors.Is(err, vaulterr.ErrNotFound) || errors.Is(err, store.ErrInvalid)
}

// oneByOne does what can be done of what cannot be done at once.
func (s *sweep) oneByOne(due []string) (n int, err error) {
	for i := range due {
		_, err := s.do(due[i : i+1])
		switch {
		case ofRecord(err):
			if s.failed++; s.first == nil {
				s.first = fmt.Errorf("%s: %w", due[i], err)
			}
		case err != nil:
			return i, err
		}
	}
	return len(due), nil
}

// do does what is due about the first of some reservations, at least one, in one transaction.
func (s *sweep) do(due []string) (n int, err error) {
	var ending []string
	err = s.v.advance(func(tx store.Tx) error {
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

// one does what is due about a reservation, and says how many ranges that ends. A time that was replaced by a later one
// does nothing.
func (s *sweep) one(held *openBatches, key string) (ranges int, err error) {
	v, tx := s.v, held.tx
	_, id, ok := strings.Cut(key[len(duePrefix):], "/")
	if !ok {
		return 0, fmt.Errorf("%w: no record has such a key", vaulterr.ErrCorrupt)
	}
	if err := tx.Delete(key); err != nil {
		return 0, err
	}
	r, err := get[Reservation](v, tx, reservationPrefix+id)
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
	case (r.State == Erased || r.State == Released) && !r.remembered().After(s.now):
		return 0, tx.Delete(reservationPrefix + id)
	case r.State == Reserved || r.State == Consumed: // the clock was put back
		return 0, v.putReservation(tx, r, r.Lease)
	case r.State == Withdrawn:
		return 0, v.putReservation(tx, r, r.waits())
	}
	return 0, v.putReservation(tx, r, r.remembered())
}
