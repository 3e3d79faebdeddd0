// Package vault keeps a party's secrets at rest: key epochs, MAC keys, batches
// of tuple shares, and the ledger of decryptions; and what it holds against its
// peers. Everything is encrypted and
// authenticated under a key that the operator supplies: records with
// XChaCha20-Poly1305, bound to their place; bulk data in blobs of its own, each
// under its own key (object.go), and the shares of tuples in segments, each
// under its own key (segments.go), so that they can be erased. Where that lies
// is a store.Store's matter, which sees nothing in the clear.
//
// A tuple goes to at most one reservation, ever, and a reservation to one
// client. That is recorded before a byte leaves. The order of things makes a
// crash harmless: data is durable before the record that names it, a record
// says that something is gone before its data is erased, and Open finishes what
// a crash left half done. An old copy of a store that is put back would make
// spent tuples fresh again: every store has an identity and a generation that
// the peers remember (identity.go), and one that is behind is quarantined.
package vault

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Vault is open in one process at a time. It is safe for concurrent use.
type Vault struct {
	store         store.Store
	aead          cipher.AEAD
	now           func() time.Time
	start         atomic.Pointer[start]
	roster        atomic.Pointer[pinned]
	writing       sync.Map   // names of what is being committed
	peers         sync.Map   // party to the *Version that was heard last
	acknowledging sync.Mutex // of peers' versions
	wiping        sync.Mutex // one erasure at a time
	erasures      atomic.Uint64
	orphans       sync.Map // names of blobs to erase, if no record names them
	unwiped       sync.Map // ids of batches to the *owed of their erasure, which Sweep sees to
	reading       reading  // masks that were spent just now
	opened        openedRecords
	under         Under
}

const headerKey = "header"

// Open opens or makes the vault in a directory, in the embedded store.
func Open(dir string, key *Key) (*Vault, error) {
	s, err := store.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return OpenIn(s, key)
}

// OpenIn opens or makes the vault in a store, and finishes what a crash left. The store is the vault's from then on,
// and closed with it.
func OpenIn(s store.Store, key *Key) (*Vault, error) { return OpenAt(s, key, time.Now) }

// OpenAt is OpenIn for a vault that tells the time by now.
func OpenAt(s store.Store, key *Key, now func() time.Time) (*Vault, error) {
	v := &Vault{store: s, now: now}
	v.under = dependents{v}
	err := v.unlock(key)
	if err == nil {
		err = v.identify()
	}
	if err == nil {
		err = v.recover()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return v, nil
}

// dependents are what the rooms of tuples and of decryptions keep under keys.
type dependents struct{ v *Vault }

func (d dependents) RevokeBatches(tx store.Tx, which func(epoch uint64, macKey string) bool, reason string) (objects []string, batches int, err error) {
	return d.v.revoke(tx, func(b *Batch) bool { return which(b.Epoch, b.MACKey) }, reason)
}

func (d dependents) Forget(tx store.Tx, epoch uint64) (objects []string, err error) {
	return d.v.forget(tx, epoch)
}

// Now is the time by the vault's clock, by which leases end.
func (v *Vault) Now() time.Time { return v.now() }

// Healthy is nil, or why nothing may be written.
func (v *Vault) Healthy() error { return v.store.Healthy() }

// The header record is a salt and the vault's root key, sealed under a key derived from the operator's and the salt.
const saltLen = 32

// unlock makes or opens the header.
func (v *Vault) unlock(key *Key) error {
	root := make([]byte, keyLen)
	defer clear(root)
	err := v.openRoot(key, root)
	if errors.Is(err, vaulterr.ErrNotFound) {
		if err := v.checkFresh(); err != nil {
			return err
		}
		rand.Read(root)
		err = v.update(func(tx store.Tx) error { return putHeader(tx, key, root) })
	}
	if err != nil {
		return err
	}
	return v.unlockWith(root)
}

func (v *Vault) unlockWith(root []byte) (err error) {
	if v.aead, err = chacha20poly1305.NewX(root); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// openRoot reads the root key from the header, or gives ErrNotFound.
func (v *Vault) openRoot(key *Key, root []byte) error {
	return v.store.View(func(tx store.Tx) error {
		header, err := tx.Get(headerKey)
		switch {
		case err != nil:
			return fmt.Errorf("vault: %w", err)
		case header == nil:
			return vaulterr.ErrNotFound
		}
		b, err := openHeader(header, key)
		copy(root, b)
		clear(b)
		return err
	})
}

// checkFresh keeps a lost record from looking like a new vault, which would erase every blob as nobody's.
func (v *Vault) checkFresh() error {
	//lodge:check vault/restore/unfinished-open [run=TestRestoreAfterACrash] an unfinished restore
	//  opens as an empty vault
	if v.unfinishedRestore() {
		return errUnfinished
	}
	blobs, err := v.store.Blobs()
	//lodge:check vault/stored/fresh [run=TestLostHeader] a vault that lost its header is created
	//  anew over its data
	if err == nil && len(blobs) > 0 {
		err = errors.New("vault: there is data but no header; put the records back, or empty the store")
	}
	return err
}

func headerCipher(key *Key, salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key.b[:], salt, "lodge vault root key", keyLen)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	defer clear(derived)
	return chacha20poly1305.NewX(derived)
}

func putHeader(tx store.Tx, key *Key, root []byte) error {
	salt := make([]byte, saltLen)
	rand.Read(salt)
	a, err := headerCipher(key, salt)
	if err != nil {
		return err
	}
	return tx.Put(headerKey, append(salt, seal(a, headerKey, root)...))
}

func openHeader(header []byte, key *Key) (root []byte, err error) {
	if len(header) != saltLen+sealedLen(keyLen) {
		return nil, vaulterr.ErrCorrupt
	}
	a, err := headerCipher(key, header[:saltLen])
	if err != nil {
		return nil, err
	}
	if root, err = unseal(a, headerKey, header[saltLen:]); err != nil {
		//lodge:check vault/stored/header [swap=nil=>make([]byte, keyLen)] [swap=vaulterr.ErrWrongKey=>nil]
		//  [run=TestWrongKey|TestRotateKey] a vault opens with the wrong key
		return nil, vaulterr.ErrWrongKey
	}
	return root, nil
}

// RotateKey seals the vault's root key under a new key of the operator's, after which the old one opens it no more.
func (v *Vault) RotateKey(old, fresh *Key) error {
	return v.update(func(tx store.Tx) error {
		header, err := tx.Get(headerKey)
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		root, err := openHeader(header, old)
		if err != nil {
			return err
		}
		defer clear(root)
		return putHeader(tx, fresh, root)
	})
}

// seal encrypts b for the place where it will lie.
func (v *Vault) seal(place string, b []byte) []byte { return seal(v.aead, place, b) }

func (v *Vault) unseal(place string, b []byte) ([]byte, error) { return unseal(v.aead, place, b) }

func seal(a cipher.AEAD, place string, b []byte) []byte {
	nonce := make([]byte, a.NonceSize(), sealedLen(len(b)))
	rand.Read(nonce)
	return a.Seal(nonce, nonce, b, []byte(place))
}

func unseal(a cipher.AEAD, place string, b []byte) ([]byte, error) {
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

func sealedLen(n int) int {
	return chacha20poly1305.NonceSizeX + n + chacha20poly1305.Overhead
}

// put seals a record; get opens one, with ErrNotFound when it is absent.
func put[T any](v *Vault, tx store.Tx, key string, record *T) error {
	b, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if err := tx.Put(key, v.seal(key, b)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

func get[T any](v *Vault, tx store.Tx, key string) (*T, error) {
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
	return decodeRecord[T](v, key, sealed)
}

func decodeRecord[T any](v *Vault, key string, sealed []byte) (*T, error) {
	if record := reopened[T](&v.opened, key, sealed); record != nil {
		return record, nil
	}
	b, err := v.unseal(key, sealed)
	if err != nil {
		return nil, err
	}
	record := new(T)
	if err := json.Unmarshal(b, record); err != nil {
		return nil, vaulterr.ErrCorrupt
	}
	keepOpen(&v.opened, key, sealed, record)
	return record, nil
}

// list gives all records under a prefix in the order of their keys.
func list[T any](v *Vault, tx store.Tx, prefix string) ([]*T, error) {
	var all []*T
	err := tx.Scan(prefix, func(key string, sealed []byte) error {
		r, err := decodeRecord[T](v, key, sealed)
		all = append(all, r)
		return err
	})
	return all, err
}

// each calls f with the records under a prefix that come after one, in order, until it says no.
func each[T any](v *Vault, prefix, after string, f func(*T) bool) error {
	return v.store.View(func(tx store.Tx) error {
		return tx.ScanAfter(prefix, prefix+after, func(key string, sealed []byte) (bool, error) {
			r, err := decodeRecord[T](v, key, sealed)
			return err == nil && f(r), err
		})
	})
}

// recover ends the MAC checks that were under way, and erases the data of
// what is recorded as gone, and data that no record names.
func (v *Vault) recover() error {
	if err := v.recoverChecks(); err != nil {
		return err
	}
	var keep map[string]string
	err := v.store.View(func(tx store.Tx) error {
		c, named, err := v.named(tx)
		if err != nil {
			return err
		}
		keep = named
		for id, b := range c.batches {
			if b.State == BatchAvailable && b.Gone.Count() != b.Wiped.Count() {
				v.owe(id, time.Time{})
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
	_ = v.wipePending() // a sector that cannot be read now must not keep the party from its keys: Sweep tries again
	return nil
}

// named gives the records that name blobs, and the names. One that cannot be opened is an error: its blobs would be nobody's.
func (v *Vault) named(tx store.Tx) (*contents, map[string]string, error) {
	var bad error
	c, err := v.read(tx, func(key string, err error) { bad = fmt.Errorf("%w: record %s", err, key) },
		epochPrefix, multikeyPrefix, macPrefix, batchPrefix, ledgerPrefix, accusationPrefix)
	if err = errors.Join(err, bad); err != nil {
		return nil, nil, err
	}
	return c, c.blobs(), nil
}

// eraseOthers erases the blobs that keep does not know.
func (v *Vault) eraseOthers(keep map[string]string) error {
	blobs, err := v.store.Blobs()
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	for _, b := range blobs {
		if keep[b] == "" {
			if err := v.erase(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close ends the use of the vault.
func (v *Vault) Close() error { return v.store.Close() }
