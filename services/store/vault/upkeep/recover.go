package upkeep

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Recover ends interrupted MAC checks, and erases data that is recorded as gone and data without a
// record.
func (v *Upkeep) Recover() error {
	if err := v.keys.RecoverChecks(); err != nil {
		return err
	}
	var keep map[string]string
	err := v.Backend.View(func(tx store.Tx) error {
		c, named, err := v.named(tx)
		if err != nil {
			return err
		}
		keep = named
		for id, b := range c.batches {
			if b.State == stock.BatchAvailable && b.Gone.Count() != b.Wiped.Count() {
				v.stock.Owe(id, time.Time{})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.eraseOthers(keep); err != nil {
		return err
	}
	_ = v.stock.WipePending() // a sector that cannot be read now must not keep the party from its keys: Sweep tries again
	return nil
}

// named gives the records that name blobs, and the names. One that cannot be opened is an error:
// its blobs would be nobody's.
func (v *Upkeep) named(tx store.Tx) (*contents, map[string]string, error) {
	var bad error
	c, err := v.read(tx, func(key string, err error) { bad = fmt.Errorf("%w: record %s", err, key) },
		keys.EpochPrefix, keys.MultikeyPrefix, keys.MACPrefix, stock.BatchPrefix, ledger.LedgerPrefix, conduct.AccusationPrefix)
	if err = errors.Join(err, bad); err != nil {
		return nil, nil, err
	}
	return c, c.blobs(), nil
}

// eraseOthers erases the blobs that keep does not know.
func (v *Upkeep) eraseOthers(keep map[string]string) error {
	blobs, err := v.Backend.Blobs()
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	for _, b := range blobs {
		if keep[b] == "" {
			if err := v.EraseObject(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// eraseOrphans erases those of the orphans that no record names.
func (v *Upkeep) eraseOrphans() error {
	gone := map[string]bool{}
	v.Orphans.Range(func(name, _ any) bool {
		gone[name.(string)] = true
		return true
	})
	if len(gone) == 0 {
		return nil
	}
	err := v.Backend.View(func(tx store.Tx) error {
		_, named, err := v.named(tx)
		for object := range named {
			delete(gone, object)
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.EraseObjects(slices.Collect(maps.Keys(gone)))
}
