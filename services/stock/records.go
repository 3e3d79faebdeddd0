package stock

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/store"
)

// records are what the coordinator remembers of reservations, and the policies. Nothing of it is secret, and nothing of
// it keeps tuples from being given out twice: the parties' records do that.
type records struct{ store store.Store }

const (
	reservationPrefix = "reservation/" // then the id
	keyPrefix         = "key/"         // then the client and its idempotency key; the id
	duePrefix         = "due/"         // then the time of the lease's end, and the id: open reservations
	timePrefix        = "time/"        // then the time of the reservation, and the id: all
	policyPrefix      = "policy/"
)

var errNoReservation = errors.New("stock: no such reservation")

func (r *records) close() error { return r.store.Close() }

func stamp(t time.Time) string { return fmt.Sprintf("%020d", t.UnixNano()) }

func dueKey(x *tuplesv1.Reservation) string {
	return duePrefix + stamp(x.GetLease().AsTime()) + "/" + x.GetId()
}

// add records an open reservation, and under which key its owner asked for it.
func (r *records) add(x *tuplesv1.Reservation, idempotency string, now time.Time) error {
	b, err := proto.Marshal(x)
	if err != nil {
		return err
	}
	return r.store.Update(func(tx store.Tx) error {
		err := errors.Join(tx.Put(reservationPrefix+x.GetId(), b), tx.Put(dueKey(x), nil), tx.Put(timePrefix+stamp(now)+"/"+x.GetId(), nil))
		if err == nil && idempotency != "" {
			err = tx.Put(keyPrefix+idempotency, []byte(x.GetId()))
		}
		return err
	})
}

// end records how a reservation ended.
func (r *records) end(x *tuplesv1.Reservation) error {
	b, err := proto.Marshal(x)
	if err != nil {
		return err
	}
	return r.store.Update(func(tx store.Tx) error {
		return errors.Join(tx.Put(reservationPrefix+x.GetId(), b), tx.Delete(dueKey(x)))
	})
}

func (r *records) get(id string) (*tuplesv1.Reservation, error) {
	out := new(tuplesv1.Reservation)
	return out, r.store.View(func(tx store.Tx) error { return read(tx, reservationPrefix+id, out) })
}

func read(tx store.Tx, key string, out proto.Message) error {
	b, err := tx.Get(key)
	if err == nil && b == nil {
		err = errNoReservation
	}
	if err == nil {
		err = proto.Unmarshal(b, out)
	}
	return err
}

// keyed gives what was reserved under an idempotency key.
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

// due lists the ids of open reservations whose leases end by then, at most limit.
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

// newest calls f with reservations from the newest on, older than a page token, until it says no, and gives the token
// of the last.
func (r *records) newest(before string, f func(token string, x *tuplesv1.Reservation) bool) error {
	return r.store.View(func(tx store.Tx) error {
		var keys []string
		err := tx.Scan(timePrefix, func(key string, _ []byte) error {
			if before == "" || key[len(timePrefix):] < before {
				keys = append(keys, key[len(timePrefix):])
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := len(keys) - 1; i >= 0; i-- {
			x := new(tuplesv1.Reservation)
			if err := read(tx, reservationPrefix+keys[i][21:], x); err != nil {
				return err
			}
			if !f(keys[i], x) {
				return nil
			}
		}
		return nil
	})
}

// policies lists all, in order.
func (r *records) policies() (list []*stockv1.Policy, err error) {
	err = r.store.View(func(tx store.Tx) error {
		list = nil
		return tx.Scan(policyPrefix, func(_ string, b []byte) error {
			p := new(stockv1.Policy)
			list = append(list, p)
			return proto.Unmarshal(b, p)
		})
	})
	return list, err
}

// setPolicy records a policy; nil deletes the one of the key.
func (r *records) setPolicy(key string, p *stockv1.Policy) error {
	return r.store.Update(func(tx store.Tx) error {
		if p == nil {
			return tx.Delete(policyPrefix + key)
		}
		b, err := proto.Marshal(p)
		if err != nil {
			return err
		}
		return tx.Put(policyPrefix+key, b)
	})
}
