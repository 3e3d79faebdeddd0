package stock

import (
	"errors"
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Withdraw makes sure that an undelivered reservation is never delivered here, and returns the
// record.
func (v *Stock) Withdraw(id string) (out Reservation, err error) {
	err = v.Advance(func(tx store.Tx) error {
		r, err := v.reservationIn(tx, id)
		if err != nil {
			return err
		}
		out = *r
		//lodge:check vault/withdraw/delivered [tests=./services/store/vault]
		//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel|TestSweep]
		//  a delivered reservation is withdrawn
		if r.State != Reserved {
			return nil
		}
		return v.withdraw(tx, &out)
	})
	return out, err
}

func (v *Stock) withdraw(tx store.Tx, r *Reservation) error {
	r.State, r.Withdrawn = Withdrawn, v.Clock().UTC()
	return v.PutReservation(tx, r, r.waits())
}

// waits returns the time until which a withdrawn reservation waits for its release.
func (r *Reservation) waits() time.Time {
	if r.Withdrawn.IsZero() { // by a version that did not record when
		return r.Lease.Add(WithdrawnFor)
	}
	return r.Withdrawn.Add(WithdrawnFor)
}

// Release puts the tuples of a withdrawn reservation back into stock, or with discard erases them.
// One that was delivered can only be discarded, which ends its lease.
func (v *Stock) Release(id string, discard bool) (out Reservation, err error) {
	var batches []string
	err = v.Advance(func(tx store.Tx) error {
		held := v.openBatches(tx)
		batches = nil
		r, err := v.reservationIn(tx, id)
		if err != nil {
			return err
		}
		switch {
		case r.State == Released || r.State == Erased:
		case discard:
			err = v.end(held, r)
		case r.State == Withdrawn:
			err = v.restock(held, r)
		case r.State == Consumed:
			//lodge:check vault/release/delivered [tests=./services/store/vault] [as=err =
			//  v.restock(held, r)]
			//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
			//  delivered tuples return to the stock
			err = fmt.Errorf("%w: reservation %s", vaulterr.ErrDelivered, id)
		default:
			//lodge:check vault/release/reserved [tests=./services/store/vault] [as=err =
			//  v.restock(held, r)]
			//  [run=TestReplay|TestNamedClients|TestLeaseEnds|TestDeliver|TestReservationStates|TestModel]
			//  tuples that a client may still fetch return to the stock
			err = fmt.Errorf("%w: reservation %s is %s", vaulterr.ErrState, id, r.State)
		}
		if err == nil {
			err = held.flush()
		}
		out, batches = *r, held.ending()
		return err
	})
	return out, errors.Join(err, v.wipeAll(batches))
}

func (v *Stock) restock(held *openBatches, r *Reservation) error {
	of, err := held.of(r.Ranges)
	if err != nil {
		return err
	}
	for b, s := range of {
		damaged := b.Gone.And(s) // shares that went with those of others
		//lodge:check vault/release/damaged [tests=./services/store/vault]
		//  [swap=b.Taken.AndNot(s).Or(damaged)=>b.Taken.AndNot(s)] [run=TestReleaseOf] damaged
		//  tuples return to the stock
		b.Taken, b.changed = b.Taken.AndNot(s).Or(damaged), true
		if b.State == BatchAvailable {
			b.Lost += damaged.Count()
		} else {
			b.Lost += s.Count()
		}
	}
	r.compact()
	return v.PutReservation(held.tx, r, r.Remembered())
}

// compact marks a reservation as released, and drops the fields that are not needed any more. Its
// tuples are back in stock, undelivered here for ever; the record stays so that a proposal that
// comes late, or again, does not hold tuples anew while the lease lasts. The record is not needed
// to keep a tuple out of two reservations: the batch records taken and gone tuples.
func (r *Reservation) compact() {
	r.Tuples = r.Count()
	r.State, r.Ranges, r.MACKey = Released, nil, ""
}

// Remembered is until when the record of an ended reservation stays. After the lease no proposal of
// it is accepted, by a clock that is not put back further than clockSlack.
func (r *Reservation) Remembered() time.Time {
	if r.State == Released {
		return r.Lease.Add(ClockSlack)
	}
	return r.Lease.Add(RememberFor)
}

// end records the tuples of a reservation as gone, once flushed; the shares of those that are
// ending are then to be erased.
func (v *Stock) end(held *openBatches, r *Reservation) error {
	for _, x := range r.Ranges {
		b, err := held.get(x.Batch)
		if err != nil {
			return err
		}
		if r.State != Consumed {
			b.Lost += x.Count
		}
		b.gone = append(b.gone, x.Span)
		v.Owe(b.ID, time.Time{}) // also if it ends in doubt
	}
	r.State = Erased
	return v.PutReservation(held.tx, r, v.Clock().Add(RememberFor))
}
