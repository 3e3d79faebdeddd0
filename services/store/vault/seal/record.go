package seal

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Claim keeps two writers from committing under one name.
func (v *Store) Claim(name string) (release func(), err error) {
	if _, taken := v.writing.LoadOrStore(name, true); taken {
		return nil, fmt.Errorf("%w: %s is being stored", vaulterr.ErrExists, name)
	}
	return func() { v.writing.Delete(name) }, nil
}

// Named is Get with the name of the object in its error, as in "epoch 3".
func Named[T any](v *Store, tx store.Tx, key, kind string, id any) (*T, error) {
	r, err := Get[T](v, tx, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %v", err, kind, id)
	}
	return r, nil
}

// Read returns a copy of the record that get finds, in a transaction of its own.
func Read[T any](v *Store, get func(tx store.Tx) (*T, error)) (out T, err error) {
	err = v.Backend.View(func(tx store.Tx) error {
		r, err := get(tx)
		if err == nil {
			out = *r
		}
		return err
	})
	return out, err
}

// KeysUnder lists the keys with a prefix.
func KeysUnder(tx store.Tx, prefix string) (keys []string, err error) {
	err = tx.Scan(prefix, func(key string, _ []byte) error {
		keys = append(keys, key)
		return nil
	})
	return keys, err
}

// DeleteAll deletes records.
func DeleteAll(tx store.Tx, keys []string) error {
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return fmt.Errorf("vault: %w", err)
		}
	}
	return nil
}

// Records lists the records under a prefix in the order of their keys.
func Records[T any](v *Store, prefix string) (all []T, err error) {
	err = v.Backend.View(func(tx store.Tx) error {
		rs, err := List[T](v, tx, prefix)
		for _, r := range rs {
			if r != nil {
				all = append(all, *r)
			}
		}
		return err
	})
	return all, err
}

// OfRecord reports whether an error is of a record, which others need not share, and not of the
// storage.
func OfRecord(err error) bool {
	return errors.Is(err, vaulterr.ErrCorrupt) || errors.Is(err, vaulterr.ErrNotFound) || errors.Is(err, store.ErrInvalid)
}

const (
	MaxName    = 256 // bytes of a client's name
	MaxClients = 1000
)

// ValidName reports whether a name fits into a record: other than UTF-8 would be changed by the
// encoding.
func ValidName(s string) bool { return len(s) <= MaxName && utf8.ValidString(s) }

// Size returns the size of the store in bytes.
func (v *Store) Size() (int64, error) { return v.Backend.Size() }
