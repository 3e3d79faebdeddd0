package vault

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	usagePrefix = "usage/"
	usageDays   = 400 // that are remembered of a client, the latest
)

func usageKey(client string, day quota.Day) string { return usagePrefix + client + "/" + day.String() }

// usage is what clients have drawn, within a transaction.
type usage struct {
	v  *Vault
	tx store.Tx
}

// Load implements quota.Store.
func (u usage) Load(client string, day quota.Day) (quota.Usage, error) {
	x, err := get[quota.Usage](u.v, u.tx, usageKey(client, day))
	if errors.Is(err, vaulterr.ErrNotFound) {
		return quota.Usage{}, nil
	}
	if err != nil {
		return quota.Usage{}, err
	}
	return *x, nil
}

// Add implements quota.Store.
func (u usage) Add(client string, day quota.Day, kind string, tuples, bytes uint64) error {
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
	return put(u.v, u.tx, usageKey(client, day), &x)
}

// forget makes room for one more day of a client. It goes by the number of days, not by the clock: one that shows a day
// far ahead, and then this one again, must not make this one forgotten.
func (u usage) forget(client string) error {
	var days []string
	err := u.tx.Scan(usagePrefix+client+"/", func(key string, _ []byte) error {
		days = append(days, key)
		return nil
	})
	for ; err == nil && len(days) >= usageDays; days = days[1:] {
		err = u.tx.Delete(days[0])
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// charge counts a reservation against the quota of the client that draws it.
func (v *Vault) charge(held *openBatches, book *quota.Book, client string, r *Reservation) error {
	bytes := uint64(0)
	for _, x := range r.Ranges {
		b, err := held.get(x.Batch)
		if err != nil {
			return err
		}
		bytes += x.Count * b.TupleBytes
	}
	return book.Charge(usage{v, held.tx}, client, r.Class.Kind, r.Count(), bytes)
}
