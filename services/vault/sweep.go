package vault

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
)

// sweepAtOnce bounds a transaction of Sweep.
const sweepAtOnce = 256

// Sweep does what is due: leases that have ended withdraw what was not delivered and erase what was; what waited in
// vain to go back into stock is erased; and what ended long ago is forgotten.
func (v *Vault) Sweep() error {
	var batches []string
	for {
		n, more, err := v.sweepSome()
		for _, b := range more {
			if !slices.Contains(batches, b) {
				batches = append(batches, b)
			}
		}
		if err != nil {
			return err
		}
		if n < sweepAtOnce {
			return errors.Join(v.wipeAll(batches), v.wipePending(), v.eraseOrphans())
		}
	}
}

func (v *Vault) sweepSome() (n int, batches []string, err error) {
	now := v.now()
	var due []string
	later := fmt.Sprintf("%s%020d/", duePrefix, now.UnixNano()+1)
	err = v.store.View(func(tx store.Tx) error {
		due = nil
		return tx.ScanAfter(duePrefix, "", func(key string, _ []byte) (bool, error) {
			if key >= later {
				return false, nil
			}
			due = append(due, key)
			return len(due) < sweepAtOnce, nil
		})
	})
	if err != nil || len(due) == 0 {
		return 0, nil, err
	}
	err = v.advance(func(tx store.Tx) error {
		batches = nil
		for _, key := range due {
			more, err := v.sweepOne(tx, key, now)
			if err != nil {
				return err
			}
			batches = append(batches, more...)
		}
		return nil
	})
	return len(due), batches, err
}

// sweepOne does what is due about a reservation. A time that was replaced by a later one does nothing.
func (v *Vault) sweepOne(tx store.Tx, key string, now time.Time) (batches []string, err error) {
	if err := tx.Delete(key); err != nil {
		return nil, err
	}
	const digits = 20
	id := key[len(duePrefix)+digits+1:]
	r, err := get[Reservation](v, tx, reservationPrefix+id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ended := !r.Lease.After(now)
	switch {
	case r.State == Reserved && ended:
		r.State = Withdrawn
		return nil, v.putReservation(tx, r, now.Add(withdrawnFor))
	case r.State == Consumed && ended, r.State == Withdrawn && !r.Lease.Add(withdrawnFor).After(now):
		return v.end(tx, r)
	case (r.State == Erased || r.State == Released) && !r.Lease.Add(rememberFor).After(now):
		return nil, tx.Delete(reservationPrefix + id)
	case r.State == Reserved || r.State == Consumed: // the clock was put back
		return nil, v.putReservation(tx, r, r.Lease)
	case r.State == Withdrawn:
		return nil, v.putReservation(tx, r, r.Lease.Add(withdrawnFor))
	}
	return nil, v.putReservation(tx, r, r.Lease.Add(rememberFor))
}
