package stock

import (
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/store"
)

const (
	compactEvery = time.Minute
	keepReleased = 1000 // of each client, the newest, for people to look at
	compactStep  = 256  // records in one transaction
)

// compact forgets reservations that were released: no party delivered them, so they say nothing about a tuple that
// anybody has. It keeps the newest of each owner, those that are still due at a party, and while the lease of one with an
// idempotency key lasts, that one: the key must give the same answer. It returns how many it forgot.
//
// No tuple can be given out twice because a record is missing here. The parties enforce that, by the spans of every batch
// that are taken and gone, which nothing here changes. A request that comes again after its record was forgotten is a
// new one, and takes other tuples or those that are back in stock.
func (r *records) compact(now time.Time, keep int) (dropped int, err error) {
	type entry struct{ key, idempotency string }
	var old []entry
	seen := map[string]int{}
	err = r.store.View(func(tx store.Tx) error {
		old = nil
		return tx.Scan(timePrefix, func(key string, idempotency []byte) error {
			x := new(tuplesv1.Reservation)
			if err := read(tx, reservationPrefix+key[len(timePrefix)+21:], x); err != nil {
				return err
			}
			if x.GetState() != tuplesv1.ReservationState_RESERVATION_STATE_RELEASED {
				return nil
			}
			seen[x.GetOwner()]++
			//lodge:check stock/compact-keyed run=TestCompact a retried request makes a second reservation while the first one's lease lasts
			if len(idempotency) > 0 && x.GetLease().AsTime().After(now) {
				return nil
			}
			if seen[x.GetOwner()] > keep {
				old = append(old, entry{key, string(idempotency)})
			}
			return nil
		})
	})
	for ; len(old) > 0 && err == nil; old = old[min(compactStep, len(old)):] {
		err = r.store.Update(func(tx store.Tx) error {
			for _, e := range old[:min(compactStep, len(old))] {
				if err := dropSettled(tx, e.key, e.idempotency); err != nil {
					return err
				}
			}
			return nil
		})
		dropped += min(compactStep, len(old))
	}
	return dropped, err
}

// dropSettled forgets a released reservation, unless it is to be settled once more because a party had not heard of it.
func dropSettled(tx store.Tx, key, idempotency string) error {
	x := new(tuplesv1.Reservation)
	if err := read(tx, reservationPrefix+key[len(timePrefix)+21:], x); err != nil {
		return err
	}
	due, err := tx.Get(dueKey(x))
	//lodge:check stock/compact-due run=TestCompact a reservation that a party may still hear of is never settled
	if err != nil || due != nil {
		return err
	}
	return drop(tx, key, idempotency)
}
