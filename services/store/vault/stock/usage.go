package stock

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	UsagePrefix = "usage/"
	UsageDays   = 400 // that are remembered of a client, the latest
)

func usageKey(client string, day quota.Day) string { return UsagePrefix + client + "/" + day.String() }

// Usage counts the tuples and bytes that clients have drawn, within a transaction.
type Usage struct {
	*Stock
	Tx store.Tx
}

// Load implements quota.Store.
func (u Usage) Load(client string, day quota.Day) (quota.Usage, error) {
	x, err := seal.Get[quota.Usage](u.Store, u.Tx, usageKey(client, day))
	if errors.Is(err, vaulterr.ErrNotFound) {
		return quota.Usage{}, nil
	}
	if err != nil {
		return quota.Usage{}, err
	}
	return *x, nil
}

// Add implements quota.Store.
func (u Usage) Add(client string, day quota.Day, kind string, tuples, bytes uint64) error {
	x, err := u.Load(client, day)
	if err != nil {
		return err
	}
	if x.Tuples == nil {
		x.Tuples = map[string]uint64{}
	}
	x.Tuples[kind] += tuples
	x.Bytes += bytes
	if len(x.Tuples) == 1 && x.Tuples[kind] == tuples { // perhaps the first of the day
		if err := u.forget(client); err != nil {
			return err
		}
	}
	return seal.Put(u.Store, u.Tx, usageKey(client, day), &x)
}

// forget makes room for one more day of a client. The number of days decides, not the clock: a
// clock that jumps far ahead and back must not delete the present day.
func (u Usage) forget(client string) error {
	days, err := seal.KeysUnder(u.Tx, UsagePrefix+client+"/")
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return seal.DeleteAll(u.Tx, days[:max(0, len(days)-UsageDays+1)])
}

// charge counts a reservation against the quota of the client that draws it.
func (v *Stock) charge(held *openBatches, book *quota.Book, client string, r *Reservation) error {
	bytes := uint64(0)
	for _, x := range r.Ranges {
		b, err := held.get(x.Batch)
		if err != nil {
			return err
		}
		bytes += x.Count * b.TupleBytes
	}
	return book.Charge(Usage{v, held.tx}, client, r.Class.Kind, r.Count(), bytes)
}
