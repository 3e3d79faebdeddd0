package stock

import (
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/store"
)

const (
	compactEvery = time.Minute
	keepReleased = 1000 // newest reservations kept for each client, for users to look at
	compactStep  = 256  // records in one transaction
)

// compact deletes records of released reservations: no party delivered them, so they contain no
// information about a tuple that a client has. It keeps the newest of each owner, those that are
// still due at a party, and those with an idempotency key while their lease lasts, because a
// repeated request must get the same response. It returns the number of deleted records.
//
// Deleting records cannot cause a tuple to be delivered twice. The parties prevent that with each
// batch's spans of taken and erased tuples, which this function does not change. A request that is
// repeated after its record was deleted is a new request, and takes other tuples or tuples that
// returned to the stock.
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

// dropSettled deletes the record of a released reservation, unless it must be settled again because
// a party did not know it.
func dropSettled(tx store.Tx, key, idempotency string) error {
	x := new(tuplesv1.Reservation)
	if err := read(tx, reservationPrefix+key[len(timePrefix)+21:], x); err != nil {
		return err
	}
	due, err := tx.Get(dueKey(x))
	//lodge:check stock/compact-due run=TestCompact a reservation whose proposal may still reach a party is never settled
	if err != nil || due != nil {
		return err
	}
	return drop(tx, key, idempotency)
}
