package vault

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Examine opens the vault in a store as it is, to look at it or to mend it while its party is stopped: it makes nothing,
// finishes nothing that a crash left, and is no start of the party's. The store is the vault's from then on.
func Examine(s store.Store, key *Key) (*Vault, error) {
	v := &Vault{store: s, now: time.Now}
	v.under = dependents{v}
	err := v.unlockOnly(key)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	v.begin()
	return v, nil
}

var errUnfinished = fmt.Errorf("%w: a restore into this store did not finish; run it again", vaulterr.ErrState)

// unlockOnly opens the header, which must be there.
func (v *Vault) unlockOnly(key *Key) error {
	root := make([]byte, keyLen)
	defer clear(root)
	err := v.openRoot(key, root)
	switch {
	//lodge:check vault/restore/unfinished [run=TestRestoreAfterACrash] [redundant=an unfinished
	//  restore has no header, so opening it fails anyway] an unfinished restore opens as a vault
	case errors.Is(err, vaulterr.ErrNotFound) && v.unfinishedRestore():
		return errUnfinished
	case errors.Is(err, vaulterr.ErrNotFound):
		return fmt.Errorf("%w: there is no vault in this store", vaulterr.ErrNotFound)
	case err != nil:
		return err
	}
	return v.unlockWith(root)
}

func newContents() *contents {
	return &contents{keys: map[string]*MACKey{}, batches: map[string]*Batch{}, due: map[string]bool{}, ledger: map[string]*LedgerEntry{},
		masks: map[string]bool{}, runs: map[string]*runRecord{}, chunks: map[string]int{}}
}

// contents are all records of a vault, opened, and what is wrong with those that cannot be.
type contents struct {
	identity     *identity
	epochs       []*Epoch
	multikeys    []*MultikeyKey
	keys         map[string]*MACKey
	batches      map[string]*Batch
	order        []string // ids of the batches
	reservations []*Reservation
	due          map[string]bool // ids of reservations
	ledger       map[string]*LedgerEntry
	masks        map[string]bool       // keys of what names batches of masks
	runs         map[string]*runRecord // of threshold decryption, by key
	chunks       map[string]int        // of answers of a run, by the run's key
	answered     int                   // pointers
	approvals    []*Approval
	accusations  []*Accusation
	peers        int
	records      int
}

// read opens all records under prefixes, and gives those that it cannot open to bad.
func (v *Vault) read(tx store.Tx, bad func(key string, err error), prefixes ...string) (*contents, error) {
	c := newContents()
	for _, prefix := range prefixes {
		err := tx.Scan(prefix, func(key string, sealed []byte) error {
			c.records++
			if err := c.add(v, key, sealed); err != nil {
				bad(key, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// cutLast is strings.Cut around the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// opened is decodeRecord into what f takes.
func opened[T any](v *Vault, key string, sealed []byte, f func(*T)) error {
	r, err := decodeRecord[T](v, key, sealed)
	if err == nil {
		f(r)
	}
	return err
}

var errMisplaced = fmt.Errorf("%w: another record than its key says", vaulterr.ErrCorrupt)

func (c *contents) add(v *Vault, key string, sealed []byte) error {
	misplaced := false
	is := func(want string) { misplaced = key != want }
	var err error
	prefix, rest, _ := strings.Cut(key, "/")
	switch prefix + "/" {
	case headerKey + "/":
	case identityKey + "/":
		err = opened(v, key, sealed, func(id *identity) { c.identity = id })
	case epochPrefix:
		err = opened(v, key, sealed, func(e *Epoch) { is(epochKey(e.ID)); c.epochs = append(c.epochs, e) })
	case multikeyPrefix:
		err = opened(v, key, sealed, func(k *MultikeyKey) { is(multikeyKey(k.Version)); c.multikeys = append(c.multikeys, k) })
	case macPrefix:
		err = opened(v, key, sealed, func(k *MACKey) { is(macPrefix + k.ID); c.keys[k.ID] = k })
	case batchPrefix:
		err = opened(v, key, sealed, func(b *Batch) {
			is(batchPrefix + b.ID)
			c.batches[b.ID], c.order = b, append(c.order, b.ID)
		})
	case reservationPrefix:
		err = opened(v, key, sealed, func(r *Reservation) {
			is(reservationPrefix + r.ID)
			c.reservations = append(c.reservations, r)
		})
	case ledgerPrefix:
		err = opened(v, key, sealed, func(e *LedgerEntry) { c.ledger[key] = e })
	case runPrefix:
		err = opened(v, key, sealed, func(r *runRecord) { is(runKey(r.Epoch, r.Run)); c.runs[key] = r })
	case answersPrefix:
		run, _, ok := cutLast(rest, "/")
		misplaced = !ok
		c.chunks[runPrefix+run]++
	case answeredPrefix:
		c.answered++
		_, err = decodePointer(sealed)
	case approvalPrefix:
		err = opened(v, key, sealed, func(a *Approval) { is(approvalKey(a.Digest)); c.approvals = append(c.approvals, a) })
	case peerPrefix:
		err = opened(v, key, sealed, func(*peer) { c.peers++ })
	case rosterKey + "/":
		err = opened(v, key, sealed, func(*rosterRecord) {})
	case accusationPrefix:
		err = opened(v, key, sealed, func(a *Accusation) {
			is(accusationPrefix + a.ID)
			c.accusations = append(c.accusations, a)
		})
	case conductPrefix:
		err = opened(v, key, sealed, func(x *Conduct) { is(conductKey(x.Roster)) })
	case unnamedPrefix:
		err = opened(v, key, sealed, func(u *Unnamed) { is(u.key()) })
	case distancePrefix:
		err = opened(v, key, sealed, func(d *Distance) { is(distanceKey(d.Asks, d.Answers)) })
	case lostDistanceKey + "/":
		err = opened(v, key, sealed, func(*lostDistance) {})
	case auditKey + "/":
		err = opened(v, key, sealed, func(*string) {})
	case budgetPrefix:
		err = opened(v, key, sealed, func(b *Budget) { is(budgetKey(b.Key, b.Client)) })
	case usagePrefix:
		err = opened(v, key, sealed, func(*quota.Usage) {})
	case maskPrefix:
		c.masks[key] = true
	case duePrefix:
		_, id, ok := strings.Cut(rest, "/")
		misplaced = !ok
		c.due[id] = true
	default:
		return fmt.Errorf("%w: no record has such a key", vaulterr.ErrCorrupt)
	}
	if err == nil && misplaced {
		err = errMisplaced
	}
	return err
}

// blobs that the records name, with the keys of the records.
func (c *contents) blobs() map[string]string {
	named := map[string]string{}
	for _, e := range c.epochs {
		if e.State != EpochRetired {
			named[e.secretObject()], named[e.publicObject()] = epochKey(e.ID), epochKey(e.ID)
		}
	}
	for _, k := range c.multikeys {
		if k.State != MultikeyRetired {
			named[k.secretObject()], named[k.publicObject()] = multikeyKey(k.Version), multikeyKey(k.Version)
		}
	}
	for _, k := range c.keys {
		if k.State != MACBurnt {
			named[k.object()] = macPrefix + k.ID
		}
	}
	for _, b := range c.batches {
		if b.stored() {
			named[b.keyBlob()], named[b.dataBlob()] = batchPrefix+b.ID, batchPrefix+b.ID
		}
	}
	for key, e := range c.ledger {
		if e.Object != "" {
			named[e.Object] = key
		}
	}
	for _, a := range c.accusations {
		named[a.object()] = accusationPrefix + a.ID
	}
	return named
}
