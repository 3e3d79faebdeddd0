package vault

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/quota"
	"github.com/lodge-mpc/lodge/services/store"
)

const (
	usagePrefix = "usage/"
	usageDays   = 7 // after which it is forgotten what a client has drawn on a day
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
	if errors.Is(err, ErrNotFound) {
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
	if err := u.tx.Delete(usageKey(client, day-usageDays)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return put(u.v, u.tx, usageKey(client, day), &x)
}

// charge counts a reservation against the quota of the client that draws it.
func (v *Vault) charge(tx store.Tx, book *quota.Book, client string, r *Reservation) error {
	bytes := uint64(0)
	for _, x := range r.Ranges {
		b, err := v.batch(tx, x.Batch)
		if err != nil {
			return err
		}
		bytes += x.Count * b.TupleBytes
	}
	return book.Charge(usage{v, tx}, client, r.Class.Kind, r.Count(), bytes)
}
