package stock

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/store"
)

// records persists the coordinator's reservations and policies. The records contain no secrets, and
// preventing double delivery of tuples does not depend on them: the parties' records prevent it.
type records struct{ store store.Store }

const (
	reservationPrefix = "reservation/" // followed by the id
	keyPrefix         = "key/"         // followed by the client and its idempotency key; value: the id
	duePrefix         = "due/"         // followed by the end of the lease and the id: open reservations
	timePrefix        = "time/"        // see timeKey; value: the client and its idempotency key; all reservations
	policyPrefix      = "policy/"      // followed by the policy's id
	statePrefix       = "state/"       // followed by the policy's id; value: policyState
)

var errNoReservation = errors.New("stock: no such reservation")

func (r *records) close() error { return r.store.Close() }

func stamp(t time.Time) string { return fmt.Sprintf("%020d", t.UnixNano()) }

func dueKey(x *tuplesv1.Reservation) string {
	return duePrefix + stamp(x.GetLease().AsTime()) + "/" + x.GetId()
}

// add records an open reservation together with its owner's idempotency key.
func (r *records) add(x *tuplesv1.Reservation, idempotency string, now time.Time) error {
	b, err := proto.Marshal(x)
	if err != nil {
		return err
	}
	return r.store.Update(func(tx store.Tx) error {
		err := errors.Join(tx.Put(reservationPrefix+x.GetId(), b), tx.Put(dueKey(x), nil), tx.Put(timeKey(now, x.GetId()), []byte(idempotency)))
		if err == nil && idempotency != "" {
			err = tx.Put(keyPrefix+idempotency, []byte(x.GetId()))
		}
		return err
	})
}

// unkey removes the record that a reservation was made under a key.
func (r *records) unkey(idempotency, id string) error {
	return r.store.Update(func(tx store.Tx) error {
		has, err := tx.Get(keyPrefix + idempotency)
		if err != nil || string(has) != id {
			return err
		}
		return tx.Delete(keyPrefix + idempotency)
	})
}

// end records how a reservation ended, and reports whether it was recorded as delivered by all
// parties. again keeps the reservation due at the end of its lease.
func (r *records) end(x *tuplesv1.Reservation, again bool) (delivered bool, err error) {
	b, err := proto.Marshal(x)
	if err != nil {
		return false, err
	}
	before := new(tuplesv1.Reservation)
	err = r.store.Update(func(tx store.Tx) error {
		before.Reset()
		if err := read(tx, reservationPrefix+x.GetId(), before); err != nil {
			return err
		}
		if err := tx.Put(reservationPrefix+x.GetId(), b); err != nil || again {
			return err
		}
		return tx.Delete(dueKey(x))
	})
	return err == nil && before.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED, err
}

func (r *records) get(id string) (*tuplesv1.Reservation, error) {
	out := new(tuplesv1.Reservation)
	return out, r.store.View(func(tx store.Tx) error { return read(tx, reservationPrefix+id, out) })
}

func read(tx store.Tx, key string, out proto.Message) error {
	b, err := tx.Get(key)
	if err == nil && b == nil || errors.Is(err, store.ErrInvalid) { // no record can have such a key
		err = errNoReservation
	}
	if err == nil {
		err = proto.Unmarshal(b, out)
	}
	return err
}

// keyed returns the reservation made under an idempotency key.
func (r *records) keyed(idempotency string) (*tuplesv1.Reservation, error) {
	out := new(tuplesv1.Reservation)
	return out, r.store.View(func(tx store.Tx) error {
		id, err := tx.Get(keyPrefix + idempotency)
		if err != nil || id == nil {
			return errors.Join(err, errNoReservation)
		}
		return read(tx, reservationPrefix+string(id), out)
	})
}

// due returns the ids of at most limit open reservations whose leases end before by.
func (r *records) due(by time.Time, limit int) (ids []string, err error) {
	err = r.store.View(func(tx store.Tx) error {
		ids = nil
		return tx.ScanAfter(duePrefix, "", func(key string, _ []byte) (bool, error) {
			if key >= duePrefix+stamp(by) {
				return false, nil
			}
			ids = append(ids, key[len(duePrefix)+21:])
			return len(ids) < limit, nil
		})
	})
	return ids, err
}

// open calls f with the open reservations in the order of their leases' ends, and with each
// reservation's position in that order.
func (r *records) open(f func(at string, x *tuplesv1.Reservation) bool) error {
	return r.openAfter("", f)
}

func (r *records) openAfter(after string, f func(at string, x *tuplesv1.Reservation) bool) error {
	return r.store.View(func(tx store.Tx) error {
		return tx.ScanAfter(duePrefix, after, func(key string, _ []byte) (bool, error) {
			x := new(tuplesv1.Reservation)
			if err := read(tx, reservationPrefix+key[len(duePrefix)+21:], x); err != nil {
				return false, err
			}
			return !open(x) || f(key, x), nil
		})
	})
}

// undelivered returns at most limit open reservations that are not recorded as delivered, starting
// after a position (empty: at the beginning). It reads at most maxLooked reservations and returns
// the position from which to continue.
func (r *records) undelivered(after string, limit int) (list []*tuplesv1.Reservation, next string, err error) {
	looked := 0
	err = r.openAfter(after, func(at string, x *tuplesv1.Reservation) bool {
		if x.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED {
			list = append(list, x)
		}
		if looked++; len(list) == limit || looked == maxLooked {
			next = at
		}
		return next == ""
	})
	return list, next, err
}

// maxLooked limits the open reservations that undelivered reads in one call.
const maxLooked = 16 * maxFollowed

// deliver records that all parties delivered a reservation and returns it. It returns nil if the
// reservation has ended. fresh reports whether the delivery was not recorded before.
func (r *records) deliver(id, client string, at *timestamppb.Timestamp) (_ *tuplesv1.Reservation, fresh bool, err error) {
	x := new(tuplesv1.Reservation)
	err = r.store.Update(func(tx store.Tx) error {
		x.Reset()
		if err := read(tx, reservationPrefix+id, x); err != nil || !open(x) {
			return err
		}
		fresh = x.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED
		x.State, x.Client, x.Delivered = tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED, client, at
		b, err := proto.Marshal(x)
		if err != nil {
			return err
		}
		return tx.Put(reservationPrefix+id, b)
	})
	if err != nil || !open(x) {
		return nil, false, err
	}
	return x, fresh, nil
}

// newest calls f with reservations, newest first, starting after a page token, until f returns
// false. token is the page token of each reservation.
func (r *records) newest(before string, f func(token string, x *tuplesv1.Reservation) bool) error {
	after := ""
	if before != "" {
		after = timePrefix + before
	}
	return r.store.View(func(tx store.Tx) error {
		return tx.ScanAfter(timePrefix, after, func(key string, _ []byte) (bool, error) {
			x := new(tuplesv1.Reservation)
			if err := read(tx, reservationPrefix+key[len(timePrefix)+21:], x); err != nil {
				return false, err
			}
			return f(key[len(timePrefix):], x), nil
		})
	})
}

// forget deletes at most limit reservations that were made before a time and have ended, and
// returns how many it read.
func (r *records) forget(before time.Time, limit int) (seen int, err error) {
	err = r.store.Update(func(tx store.Tx) error {
		seen = 0
		old := map[string]string{}
		err := tx.ScanAfter(timePrefix, timeKey(before, ""), func(key string, idempotency []byte) (bool, error) {
			old[key] = string(idempotency)
			return len(old) < limit, nil
		})
		for key, idempotency := range old {
			if err != nil {
				return err
			}
			seen++
			err = drop(tx, key, idempotency)
		}
		return err
	})
	return seen, err
}

// drop deletes one reservation, unless it is open.
func drop(tx store.Tx, key, idempotency string) error {
	id := key[len(timePrefix)+21:]
	x := new(tuplesv1.Reservation)
	err := read(tx, reservationPrefix+id, x)
	if err != nil || open(x) {
		return err
	}
	if idempotency != "" {
		has, err := tx.Get(keyPrefix + idempotency)
		if err != nil {
			return err
		}
		if string(has) == id {
			if err := tx.Delete(keyPrefix + idempotency); err != nil {
				return err
			}
		}
	}
	return errors.Join(tx.Delete(reservationPrefix+id), tx.Delete(key), tx.Delete(dueKey(x)))
}

// timeKey returns the key of a reservation by its creation time; later times sort first.
func timeKey(made time.Time, id string) string {
	return fmt.Sprintf("%s%020d/%s", timePrefix, math.MaxInt64-made.UnixNano(), id)
}

// validToken reports whether a page token has the form that newest returns: 20 digits, a slash and
// a reservation's id.
func validToken(token string) bool {
	made, id, ok := strings.Cut(token, "/")
	return ok && len(made) == 20 && strings.Trim(made, "0123456789") == "" && config.ValidID(id)
}

// madeAt returns the time in a page token.
func madeAt(token string) time.Time {
	n, err := strconv.ParseInt(token[:min(20, len(token))], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, math.MaxInt64-n)
}

// policies returns all policies, sorted by id.
func (r *records) policies() (list []*policy, err error) {
	err = r.store.View(func(tx store.Tx) error {
		list = nil
		return tx.Scan(policyPrefix, func(key string, b []byte) error {
			p := &policy{id: key[len(policyPrefix):], msg: new(stockv1.Policy)}
			list = append(list, p)
			if err := proto.Unmarshal(b, p.msg); err != nil {
				return fmt.Errorf("stock: the record of policy %s is damaged: %w", p.id, err)
			}
			state, err := tx.Get(statePrefix + p.id)
			if err == nil {
				err = json.Unmarshal(state, &p.policyState)
			}
			return err
		})
	})
	return list, err
}

// setPolicy records a policy and its state.
func (r *records) setPolicy(p *policy) error {
	return r.store.Update(func(tx store.Tx) error { return putPolicy(tx, p) })
}

func putPolicy(tx store.Tx, p *policy) error {
	b, err := proto.Marshal(p.msg)
	if err != nil {
		return err
	}
	state, err := json.Marshal(p.policyState)
	if err != nil {
		return err
	}
	return errors.Join(tx.Put(policyPrefix+p.id, b), tx.Put(statePrefix+p.id, state))
}

func (r *records) deletePolicy(id string) error {
	return r.store.Update(func(tx store.Tx) error {
		return errors.Join(tx.Delete(policyPrefix+id), tx.Delete(statePrefix+id))
	})
}
