// Package vault keeps a party's secrets at rest: key epochs, MAC keys, batches
// of tuple shares, and the ledger of decryptions. Everything is encrypted and
// authenticated under a key that the operator supplies: records with
// XChaCha20-Poly1305, bound to their place, in an embedded store; bulk data in
// files of its own, each under its own key (see object.go), so that it can be
// erased.
//
// The order of things makes a crash harmless: data is durable before the record
// that names it, a record says that something is gone before its data is
// erased, and Open finishes what a crash left half done. Nothing here protects
// against an operator who puts an old copy of the directory back: that would
// make spent tuples fresh again, so do not.
package vault

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/chacha20poly1305"
)

// The refusals of a vault.
var (
	ErrWrongKey  = errors.New("vault: the key file is not the one that this vault was made with")
	ErrCorrupt   = errors.New("vault: stored data does not authenticate")
	ErrNotFound  = errors.New("vault: not found")
	ErrExists    = errors.New("vault: exists already")
	ErrState     = errors.New("vault: not in the state for this")
	ErrErased    = errors.New("vault: erased")
	ErrDelivered = errors.New("vault: already delivered to another client")
	ErrSpent     = errors.New("vault: the key has decrypted as many ciphertexts as it may")
)

// errNoRecords keeps a lost store from looking like a new vault, which would erase every object as nobody's.
var errNoRecords = errors.New("vault: there are objects but no records.db that names them; put the file back, or empty the directory")

// Vault is open in one process at a time. It is safe for concurrent use.
type Vault struct {
	dir     string
	objects string
	store   Store
	aead    cipher.AEAD
	now     func() time.Time
	writing sync.Map // names of objects being committed
}

const headerKey = "header"

// Open opens or makes the vault in dir, and finishes what a crash left.
func Open(dir string, key *Key) (*Vault, error) {
	objects := filepath.Join(dir, "objects")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	records := filepath.Join(dir, "records.db")
	if _, err := os.Stat(records); errors.Is(err, os.ErrNotExist) { // refuse before an empty one is made
		if err := checkFresh(objects); err != nil {
			return nil, err
		}
	}
	store, err := openBolt(records)
	if err != nil {
		return nil, err
	}
	v := &Vault{dir: dir, objects: objects, store: store, now: time.Now}
	if err := v.unlock(key); err != nil {
		store.Close()
		return nil, err
	}
	if err := v.recover(); err != nil {
		store.Close()
		return nil, err
	}
	return v, nil
}

// checkFresh refuses the objects of an earlier vault in what is to be a new one.
func checkFresh(objects string) error {
	entries, err := os.ReadDir(objects)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if len(entries) > 0 {
		return errNoRecords
	}
	return nil
}

// unlock derives the vault's key from the operator's and the vault's salt, and
// proves it against a sealed constant.
func (v *Vault) unlock(key *Key) error {
	return v.store.Update(func(tx Tx) error {
		const saltLen, proof = 32, "lodge vault v1"
		header := append([]byte(nil), tx.Get(headerKey)...)
		fresh := len(header) == 0
		if fresh {
			if err := checkFresh(v.objects); err != nil {
				return err
			}
			header = make([]byte, saltLen)
			rand.Read(header)
		}
		if len(header) < saltLen {
			return ErrCorrupt
		}
		derived, err := hkdf.Key(sha256.New, key.b[:], header[:saltLen], "lodge vault records and objects", 32)
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		defer clear(derived)
		if v.aead, err = chacha20poly1305.NewX(derived); err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		if fresh {
			return tx.Put(headerKey, append(header, v.seal(headerKey, []byte(proof))...))
		}
		if p, err := v.unseal(headerKey, header[saltLen:]); err != nil || string(p) != proof {
			return ErrWrongKey
		}
		return nil
	})
}

// seal encrypts b for the place where it will lie.
func (v *Vault) seal(place string, b []byte) []byte {
	nonce := make([]byte, v.aead.NonceSize(), sealedLen(len(b)))
	rand.Read(nonce)
	return v.aead.Seal(nonce, nonce, b, []byte(place))
}

func (v *Vault) unseal(place string, b []byte) ([]byte, error) {
	n := v.aead.NonceSize()
	if len(b) < n {
		return nil, ErrCorrupt
	}
	out, err := v.aead.Open(nil, b[:n], b[n:], []byte(place))
	if err != nil {
		return nil, ErrCorrupt
	}
	return out, nil
}

func sealedLen(n int) int {
	return chacha20poly1305.NonceSizeX + n + chacha20poly1305.Overhead
}

// put seals a record; get opens one, with ErrNotFound when it is absent.
func put[T any](v *Vault, tx Tx, key string, record *T) error {
	b, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if err := tx.Put(key, v.seal(key, b)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

func get[T any](v *Vault, tx Tx, key string) (*T, error) {
	sealed := tx.Get(key)
	if sealed == nil {
		return nil, ErrNotFound
	}
	return decodeRecord[T](v, key, sealed)
}

func decodeRecord[T any](v *Vault, key string, sealed []byte) (*T, error) {
	b, err := v.unseal(key, sealed)
	if err != nil {
		return nil, err
	}
	record := new(T)
	if err := json.Unmarshal(b, record); err != nil {
		return nil, ErrCorrupt
	}
	return record, nil
}

// list gives all records under a prefix in the order of their keys.
func list[T any](v *Vault, tx Tx, prefix string) ([]*T, error) {
	var all []*T
	err := tx.Scan(prefix, func(key string, sealed []byte) error {
		r, err := decodeRecord[T](v, key, sealed)
		all = append(all, r)
		return err
	})
	return all, err
}

// recover burns MAC keys whose check had no verdict, and erases the data of
// what is recorded as gone, and data that no record names.
func (v *Vault) recover() error {
	if err := v.burnExposed(); err != nil {
		return err
	}
	keep := map[string]bool{}
	err := v.store.View(func(tx Tx) error {
		epochs, err := list[Epoch](v, tx, epochPrefix)
		if err != nil {
			return err
		}
		for _, e := range epochs {
			if e.State != EpochRetired {
				keep[e.secretObject()], keep[e.publicObject()] = true, true
			}
		}
		keys, err := list[MACKey](v, tx, macPrefix)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.State != MACBurnt {
				keep[k.object()] = true
			}
		}
		batches, err := list[Batch](v, tx, batchPrefix)
		if err != nil {
			return err
		}
		for _, b := range batches {
			if b.State != BatchRevoked {
				keep[b.object()] = true
			}
		}
		return tx.Scan(ledgerPrefix, func(key string, sealed []byte) error {
			e, err := decodeRecord[LedgerEntry](v, key, sealed)
			if err == nil && e.Object != "" {
				keep[e.Object] = true
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	return v.sweep(keep)
}

// Close ends the use of the vault.
func (v *Vault) Close() error { return v.store.Close() }
