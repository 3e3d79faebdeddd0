package seal

import (
	"fmt"

	"errors"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
	"unicode/utf8"
)

// Claim keeps two writers from committing under one name.
func (v *Store) Claim(name string) (release func(), err error) {
	if _, taken := v.writing.LoadOrStore(name, true); taken {
		return nil, fmt.Errorf("%w: %s is being stored", vaulterr.ErrExists, name)
	}
	return func() { v.writing.Delete(name) }, nil
}

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
