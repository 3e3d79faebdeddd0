package vault

import (
	"errors"
	"fmt"
	"slices"
	"time"
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

// LedgerEntry is the one answer that a ciphertext ever gets.
type LedgerEntry struct {
	Client string    `json:"client"`
	When   time.Time `json:"when"`
	Answer []byte    `json:"answer"` // nil once the epoch is retired
}

// Decryption looks an answer up; ErrNotFound when there is none.
func (v *Vault) Decryption(k LedgerKey) (LedgerEntry, error) {
	var out LedgerEntry
	err := v.store.View(func(tx Tx) error {
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
// retired epoch ErrErased, and an epoch that has decrypted its limit ErrSpent. first says whether this answer was recorded now.
func (v *Vault) RecordDecryption(k LedgerKey, client string, answer []byte) (held []byte, first bool, err error) {
	if !slices.IsSorted(k.Quorum) || client == "" {
		return nil, false, fmt.Errorf("%w: quorum not ascending or no client", ErrState)
	}
	err = v.store.Update(func(tx Tx) error {
		first = false
		epoch, err := get[Epoch](v, tx, epochKey(k.Epoch))
		switch {
		case err != nil:
			return fmt.Errorf("%w: epoch %d", err, k.Epoch)
		case epoch.State == EpochRetired:
			return fmt.Errorf("%w: epoch %d is retired", ErrErased, k.Epoch)
		case epoch.State != EpochActive || epoch.Purpose != "decryption":
			return fmt.Errorf("%w: epoch %d is %s, for %s", ErrState, k.Epoch, epoch.State, epoch.Purpose)
		}
		e, err := get[LedgerEntry](v, tx, k.key())
		switch {
		case errors.Is(err, ErrNotFound):
			first = true
			if err := epoch.spend(1); err != nil {
				return err
			}
			if err := put(v, tx, epochKey(k.Epoch), epoch); err != nil {
				return err
			}
			e = &LedgerEntry{Client: client, When: v.now().UTC(), Answer: answer}
			if err := put(v, tx, k.key(), e); err != nil {
				return err
			}
		case err != nil:
			return err
		case e.Client != client:
			return fmt.Errorf("%w: this ciphertext", ErrDelivered)
		}
		held = e.Answer
		return nil
	})
	return held, first, err
}

// forget drops the answers of an epoch and keeps that they were given.
func (v *Vault) forget(tx Tx, epoch uint64) error {
	prefix := fmt.Sprintf("%s%020d/", ledgerPrefix, epoch)
	changed := map[string]*LedgerEntry{}
	err := tx.Scan(prefix, func(key string, sealed []byte) error {
		e, err := decodeRecord[LedgerEntry](v, key, sealed)
		if err == nil && e.Answer != nil {
			changed[key] = e
		}
		return err
	})
	if err != nil {
		return err
	}
	for key, e := range changed {
		e.Answer = nil
		if err := put(v, tx, key, e); err != nil {
			return err
		}
	}
	return nil
}
