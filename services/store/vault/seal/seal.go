package seal

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const HeaderKey = "header"

// Now is the time by the vault's clock, by which leases end.
func (v *Store) Now() time.Time { return v.Clock() }

// Healthy is nil, or why nothing may be written.
func (v *Store) Healthy() error { return v.Backend.Healthy() }

// The header record is a salt and the vault's root key, sealed under a key derived from the
// operator's and the salt.
const SaltLen = 32

// Unlock makes or opens the header.
func (v *Store) Unlock(key *Key) error {
	root := make([]byte, KeyLen)
	defer clear(root)
	err := v.openRoot(key, root)
	if errors.Is(err, vaulterr.ErrNotFound) {
		if err := v.checkFresh(); err != nil {
			return err
		}
		rand.Read(root)
		err = v.Update(func(tx store.Tx) error { return putHeader(tx, key, root) })
	}
	if err != nil {
		return err
	}
	return v.UnlockWith(root)
}

func (v *Store) UnlockWith(root []byte) (err error) {
	if v.aead, err = chacha20poly1305.NewX(root); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// openRoot reads the root key from the header, or gives ErrNotFound.
func (v *Store) openRoot(key *Key, root []byte) error {
	return v.Backend.View(func(tx store.Tx) error {
		header, err := tx.Get(HeaderKey)
		switch {
		case err != nil:
			return fmt.Errorf("vault: %w", err)
		case header == nil:
			return vaulterr.ErrNotFound
		}
		b, err := OpenHeader(header, key)
		copy(root, b)
		clear(b)
		return err
	})
}

// checkFresh keeps a lost record from looking like a new vault, which would erase every blob as
// nobody's.
func (v *Store) checkFresh() error {
	//lodge:check vault/restore/unfinished-open [tests=./services/store/vault]
	//  [run=TestRestoreAfterACrash] an unfinished restore opens as an empty vault
	if v.UnfinishedRestore() {
		return errUnfinished
	}
	blobs, err := v.Backend.Blobs()
	//lodge:check vault/stored/fresh [tests=./services/store/vault] [run=TestLostHeader] a vault
	//  that lost its header is created anew over its data
	if err == nil && len(blobs) > 0 {
		err = errors.New("vault: there is data but no header; put the records back, or empty the store")
	}
	return err
}

func headerCipher(key *Key, salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key.b[:], salt, "lodge vault root key", KeyLen)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	defer clear(derived)
	return chacha20poly1305.NewX(derived)
}

func putHeader(tx store.Tx, key *Key, root []byte) error {
	salt := make([]byte, SaltLen)
	rand.Read(salt)
	a, err := headerCipher(key, salt)
	if err != nil {
		return err
	}
	return tx.Put(HeaderKey, append(salt, Seal(a, HeaderKey, root)...))
}

func OpenHeader(header []byte, key *Key) (root []byte, err error) {
	if len(header) != SaltLen+SealedLen(KeyLen) {
		return nil, vaulterr.ErrCorrupt
	}
	a, err := headerCipher(key, header[:SaltLen])
	if err != nil {
		return nil, err
	}
	if root, err = Unseal(a, HeaderKey, header[SaltLen:]); err != nil {
		//lodge:check vault/stored/header [tests=./services/store/vault] [swap=nil=>make([]byte,
		//  KeyLen)] [swap=vaulterr.ErrWrongKey=>nil] [run=TestWrongKey|TestRotateKey] a vault opens
		//  with the wrong key
		return nil, vaulterr.ErrWrongKey
	}
	return root, nil
}

// RotateKey seals the vault's root key under a new key of the operator's, after which the old one
// opens it no more.
func (v *Store) RotateKey(old, fresh *Key) error {
	return v.Update(func(tx store.Tx) error {
		header, err := tx.Get(HeaderKey)
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		root, err := OpenHeader(header, old)
		if err != nil {
			return err
		}
		defer clear(root)
		return putHeader(tx, fresh, root)
	})
}

// SealAt encrypts b for the place where it will lie.
func (v *Store) SealAt(place string, b []byte) []byte { return Seal(v.aead, place, b) }

func (v *Store) UnsealAt(place string, b []byte) ([]byte, error) { return Unseal(v.aead, place, b) }

func Seal(a cipher.AEAD, place string, b []byte) []byte {
	nonce := make([]byte, a.NonceSize(), SealedLen(len(b)))
	rand.Read(nonce)
	return a.Seal(nonce, nonce, b, []byte(place))
}

func Unseal(a cipher.AEAD, place string, b []byte) ([]byte, error) {
	n := a.NonceSize()
	if len(b) < n {
		return nil, vaulterr.ErrCorrupt
	}
	out, err := a.Open(nil, b[:n], b[n:], []byte(place))
	if err != nil {
		return nil, vaulterr.ErrCorrupt
	}
	return out, nil
}

func SealedLen(n int) int {
	return chacha20poly1305.NonceSizeX + n + chacha20poly1305.Overhead
}

// Put seals a record; get opens one, with ErrNotFound when it is absent.
func Put[T any](v *Store, tx store.Tx, key string, record *T) error {
	b, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if err := tx.Put(key, v.SealAt(key, b)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

func Get[T any](v *Store, tx store.Tx, key string) (*T, error) {
	sealed, err := tx.Get(key)
	if errors.Is(err, store.ErrInvalid) {
		return nil, vaulterr.ErrNotFound // nothing can be under such a key
	}
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if sealed == nil {
		return nil, vaulterr.ErrNotFound
	}
	return Decode[T](v, key, sealed)
}

func Decode[T any](v *Store, key string, sealed []byte) (*T, error) {
	if record := reopened[T](&v.Opened, key, sealed); record != nil {
		return record, nil
	}
	b, err := v.UnsealAt(key, sealed)
	if err != nil {
		return nil, err
	}
	record := new(T)
	if err := json.Unmarshal(b, record); err != nil {
		return nil, vaulterr.ErrCorrupt
	}
	KeepOpen(&v.Opened, key, sealed, record)
	return record, nil
}

// List gives all records under a prefix in the order of their keys.
func List[T any](v *Store, tx store.Tx, prefix string) ([]*T, error) {
	var all []*T
	err := tx.Scan(prefix, func(key string, sealed []byte) error {
		r, err := Decode[T](v, key, sealed)
		all = append(all, r)
		return err
	})
	return all, err
}

// Each calls f with the records under a prefix that come after one, in order, until it says no.
func Each[T any](v *Store, prefix, after string, f func(*T) bool) error {
	return v.Backend.View(func(tx store.Tx) error {
		return tx.ScanAfter(prefix, prefix+after, func(key string, sealed []byte) (bool, error) {
			r, err := Decode[T](v, key, sealed)
			return err == nil && f(r), err
		})
	})
}

// Close ends the use of the vault.
func (v *Store) Close() error { return v.Backend.Close() }
