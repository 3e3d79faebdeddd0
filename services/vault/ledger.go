package vault

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
)

const ledgerPrefix = "ledger/"

// LedgerKey names one decryption: what is decrypted under which epoch, and with
// whom. Digest is of what a share depends on: the polynomial that the key share
// multiplies. Another answer for the same polynomial would be another decryption.
type LedgerKey struct {
	Epoch  uint64
	Digest [32]byte
	Quorum []int // ascending
}

func (k LedgerKey) key() string {
	return fmt.Sprintf("%s%020d/%x/%v", ledgerPrefix, k.Epoch, k.Digest, k.Quorum)
}

// LedgerEntry is the one answer that a ciphertext ever gets. The answer itself is an object of its own.
type LedgerEntry struct {
	Client string    `json:"client"`
	When   time.Time `json:"when"`
	Object string    `json:"object,omitempty"` // empty once the epoch is retired
}

// Decryption looks an answer up; ErrNotFound when there is none.
func (v *Vault) Decryption(k LedgerKey) (LedgerEntry, error) {
	var out LedgerEntry
	err := v.store.View(func(tx store.Tx) error {
		e, err := get[LedgerEntry](v, tx, k.key())
		if err == nil {
			out = *e
		}
		return err
	})
	return out, err
}

// RecordDecryption makes an answer durable if there is none yet, and gives the
// one that holds: only that may be sent. Another client gets ErrDelivered, a
// retired epoch ErrErased, and an epoch that has decrypted its limit ErrSpent.
// first says whether this answer was recorded now.
func (v *Vault) RecordDecryption(k LedgerKey, client string, answer []byte) (held []byte, first bool, err error) {
	if !slices.IsSorted(k.Quorum) || client == "" {
		return nil, false, fmt.Errorf("%w: quorum not ascending or no client", ErrState)
	}
	w, err := v.create(objectName("answer", k.key()+"/"+rand.Text())) // of two at once, one is erased
	if err != nil {
		return nil, false, err
	}
	recorded := false
	defer func() {
		if !recorded { // nor can have been: then the next start erases it
			w.abort()
		}
	}()
	if _, err := w.Write(answer); err != nil {
		return nil, false, err
	}
	if err := w.commit(); err != nil {
		return nil, false, err
	}
	var object string
	err = v.advance(func(tx store.Tx) error {
		first = false
		e, err := v.answered(tx, k, client)
		if err == nil && e == nil {
			first = true
			e = &LedgerEntry{Client: client, When: v.now().UTC(), Object: w.name}
			err = put(v, tx, k.key(), e)
		}
		if err == nil {
			object = e.Object
		}
		return err
	})
	if err != nil {
		recorded = errors.Is(err, store.ErrUncertain)
		return nil, false, err
	}
	if recorded = first; first {
		return answer, true, nil
	}
	in, err := v.open(object)
	if err != nil {
		return nil, false, err
	}
	defer in.Close()
	held, err = io.ReadAll(in)
	return held, false, err
}

// answered gives the entry of an answer that this client may have, or nil when it is the first, which it counts.
func (v *Vault) answered(tx store.Tx, k LedgerKey, client string) (*LedgerEntry, error) {
	if err := v.trusted(tx); err != nil {
		return nil, err
	}
	epoch, err := get[Epoch](v, tx, epochKey(k.Epoch))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: epoch %d", err, k.Epoch)
	case epoch.State == EpochRetired:
		return nil, fmt.Errorf("%w: epoch %d is retired", ErrErased, k.Epoch)
	case epoch.State == EpochLocked || epoch.Purpose != purposeDecryption:
		return nil, fmt.Errorf("%w: epoch %d is %s, for %s", ErrState, k.Epoch, epoch.State, epoch.Purpose)
	}
	if err := v.works(epoch); err != nil {
		return nil, err
	}
	e, err := get[LedgerEntry](v, tx, k.key())
	switch {
	case err == nil && e.Client != client:
		return nil, fmt.Errorf("%w: this ciphertext", ErrDelivered)
	case !errors.Is(err, ErrNotFound):
		return e, err
	}
	if err := epoch.spend(1); err != nil {
		return nil, err
	}
	if err := put(v, tx, epochKey(k.Epoch), epoch); err != nil {
		return nil, err
	}
	return nil, nil
}

// forget drops the answers of an epoch, which the caller erases, and keeps that they were given.
func (v *Vault) forget(tx store.Tx, epoch uint64) (objects []string, err error) {
	prefix := fmt.Sprintf("%s%020d/", ledgerPrefix, epoch)
	changed := map[string]*LedgerEntry{}
	err = tx.Scan(prefix, func(key string, sealed []byte) error {
		e, err := decodeRecord[LedgerEntry](v, key, sealed)
		if err == nil && e.Object != "" {
			changed[key] = e
		}
		return err
	})
	for key, e := range changed {
		if err != nil {
			return nil, err
		}
		objects = append(objects, e.Object)
		e.Object = ""
		err = put(v, tx, key, e)
	}
	return objects, err
}
