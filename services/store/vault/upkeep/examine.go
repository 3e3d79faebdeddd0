package upkeep

import (
	"fmt"
	"strings"

	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func newContents() *contents {
	return &contents{keys: map[string]*keys.MACKey{}, batches: map[string]*stock.Batch{}, due: map[string]bool{}, ledger: map[string]*ledger.LedgerEntry{},
		masks: map[string]bool{}, runs: map[string]*ledger.RunRecord{}, chunks: map[string]int{}}
}

// contents holds all decrypted records of a vault.
type contents struct {
	identity     *seal.Identity
	epochs       []*keys.Epoch
	multikeys    []*keys.MultikeyKey
	keys         map[string]*keys.MACKey
	batches      map[string]*stock.Batch
	order        []string // ids of the batches
	reservations []*stock.Reservation
	due          map[string]bool // ids of reservations
	ledger       map[string]*ledger.LedgerEntry
	masks        map[string]bool              // keys of the index of masks
	runs         map[string]*ledger.RunRecord // of threshold decryption, by key
	chunks       map[string]int               // of answers of a run, by the run's key
	answered     int                          // pointers
	approvals    []*ledger.Approval
	accusations  []*conduct.Accusation
	peers        int
	records      int
}

// read opens all records under prefixes, and gives those that it cannot open to bad.
func (v *Upkeep) read(tx store.Tx, bad func(key string, err error), prefixes ...string) (*contents, error) {
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
func opened[T any](v *Upkeep, key string, sealed []byte, f func(*T)) error {
	r, err := seal.Decode[T](v.Store, key, sealed)
	if err == nil {
		f(r)
	}
	return err
}

var errMisplaced = fmt.Errorf("%w: another record than its key says", vaulterr.ErrCorrupt)

func (c *contents) add(v *Upkeep, key string, sealed []byte) error {
	misplaced := false
	is := func(want string) { misplaced = key != want }
	var err error
	prefix, rest, _ := strings.Cut(key, "/")
	switch prefix + "/" {
	case seal.HeaderKey + "/":
	case seal.IdentityKey + "/":
		err = opened(v, key, sealed, func(id *seal.Identity) { c.identity = id })
	case keys.EpochPrefix:
		err = opened(v, key, sealed, func(e *keys.Epoch) { is(keys.EpochKey(e.ID)); c.epochs = append(c.epochs, e) })
	case keys.MultikeyPrefix:
		err = opened(v, key, sealed, func(k *keys.MultikeyKey) {
			is(keys.MultikeyVersionKey(k.Version))
			c.multikeys = append(c.multikeys, k)
		})
	case keys.MACPrefix:
		err = opened(v, key, sealed, func(k *keys.MACKey) { is(keys.MACPrefix + k.ID); c.keys[k.ID] = k })
	case stock.BatchPrefix:
		err = opened(v, key, sealed, func(b *stock.Batch) {
			is(stock.BatchPrefix + b.ID)
			c.batches[b.ID], c.order = b, append(c.order, b.ID)
		})
	case stock.ReservationPrefix:
		err = opened(v, key, sealed, func(r *stock.Reservation) {
			is(stock.ReservationPrefix + r.ID)
			c.reservations = append(c.reservations, r)
		})
	case ledger.LedgerPrefix:
		err = opened(v, key, sealed, func(e *ledger.LedgerEntry) { c.ledger[key] = e })
	case ledger.RunPrefix:
		err = opened(v, key, sealed, func(r *ledger.RunRecord) { is(ledger.RunKey(r.Epoch, r.Run)); c.runs[key] = r })
	case ledger.AnswersPrefix:
		run, _, ok := cutLast(rest, "/")
		misplaced = !ok
		c.chunks[ledger.RunPrefix+run]++
	case ledger.AnsweredPrefix:
		c.answered++
		_, err = ledger.DecodePointer(sealed)
	case ledger.ApprovalPrefix:
		err = opened(v, key, sealed, func(a *ledger.Approval) { is(ledger.ApprovalKey(a.Digest)); c.approvals = append(c.approvals, a) })
	case seal.PeerPrefix:
		err = opened(v, key, sealed, func(*peers.Peer) { c.peers++ })
	case peers.RosterKey + "/":
		err = opened(v, key, sealed, func(*peers.RosterRecord) {})
	case conduct.AccusationPrefix:
		err = opened(v, key, sealed, func(a *conduct.Accusation) {
			is(conduct.AccusationPrefix + a.ID)
			c.accusations = append(c.accusations, a)
		})
	case conduct.ConductPrefix:
		err = opened(v, key, sealed, func(x *conduct.Conduct) { is(conduct.ConductKey(x.Roster)) })
	case conduct.UnnamedPrefix:
		err = opened(v, key, sealed, func(u *conduct.Unnamed) { is(u.Key()) })
	case ledger.DistancePrefix:
		err = opened(v, key, sealed, func(d *ledger.Distance) { is(ledger.DistanceKey(d.Asks, d.Answers)) })
	case ledger.LostDistanceKey + "/":
		err = opened(v, key, sealed, func(*ledger.LostDistance) {})
	case AuditKey + "/":
		err = opened(v, key, sealed, func(*string) {})
	case ledger.BudgetPrefix:
		err = opened(v, key, sealed, func(b *ledger.Budget) { is(ledger.BudgetKey(b.Key, b.Client)) })
	case stock.UsagePrefix:
		err = opened(v, key, sealed, func(*quota.Usage) {})
	case stock.MaskPrefix:
		c.masks[key] = true
	case stock.DuePrefix:
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
		if e.State != keys.EpochRetired {
			named[e.SecretObject()], named[e.PublicObject()] = keys.EpochKey(e.ID), keys.EpochKey(e.ID)
		}
	}
	for _, k := range c.multikeys {
		if k.State != keys.MultikeyRetired {
			named[k.SecretObject()], named[k.PublicObject()] = keys.MultikeyVersionKey(k.Version), keys.MultikeyVersionKey(k.Version)
		}
	}
	for _, k := range c.keys {
		if k.State != keys.MACBurnt {
			named[k.Object()] = keys.MACPrefix + k.ID
		}
	}
	for _, b := range c.batches {
		if b.Stored() {
			named[b.KeyBlob()], named[b.DataBlob()] = stock.BatchPrefix+b.ID, stock.BatchPrefix+b.ID
		}
	}
	for key, e := range c.ledger {
		if e.Object != "" {
			named[e.Object] = key
		}
	}
	for _, a := range c.accusations {
		named[a.Object] = conduct.AccusationPrefix + a.ID
	}
	return named
}
