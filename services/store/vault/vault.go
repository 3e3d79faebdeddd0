// Package vault composes a party's store of secrets from these packages:
//
//	seal     opens the store, and encrypts records and blobs; transactions and generations
//	peers    the versions of this store and of the peers' stores, which reveal old copies
//	keys     key epochs, MAC keys, multi-key keys, and the roster that may use them
//	stock    batches of tuple shares and masks, and their reservations
//	ledger   responses to decryption requests, their approvals, and budgets
//	conduct  evidence against cheating parties, and failures of sessions
//	upkeep   recovery, quarantine, sweeping, checks, statistics, backup and restore
//
// Services declare the few methods that they use as interfaces of their own. Only the wiring of a
// party, tools for operators and tests know the type Vault.
//
// A tuple goes to at most one reservation, ever, and a reservation to one client. The vault records
// both durably before a byte leaves the party. Data is durable before the record that names it, and
// the record that marks data as erased is durable before the data is erased. Open completes
// operations that a crash interrupted. An old copy of a store that is put back would make spent
// tuples fresh again. So every store has an identity and a generation, which the peers remember,
// and a store that is behind is put into quarantine.
package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
)

// Vault is a party's store of secrets. It is safe for concurrent use, in one process at a time.
type Vault struct {
	*seal.Store
	*peers.Peers
	*keys.Keys
	*stock.Stock
	*ledger.Ledger
	*conduct.Archive
	*upkeep.Upkeep
}

// compose joins the parts of a vault over a store. Nothing is opened yet.
func compose(backend store.Store, now func() time.Time) *Vault {
	s := seal.New(backend, now)
	v := &Vault{Store: s, Peers: peers.New(s)}
	v.Keys = keys.New(s, v.Peers)
	v.Stock = stock.New(s, v.Keys)
	v.Ledger = ledger.New(s, v.Keys)
	v.Archive = conduct.New(s, v.Keys)
	v.Keys.Under = dependents{v.Stock, v.Ledger}
	v.Upkeep = upkeep.New(s, v.Peers, v.Keys, v.Stock, v.Ledger)
	return v
}

// dependents erases what stock and ledger store under keys.
type dependents struct {
	stock  *stock.Stock
	ledger *ledger.Ledger
}

func (d dependents) RevokeBatches(tx store.Tx, which func(epoch uint64, macKey string) bool, reason string) (objects []string, batches int, err error) {
	return d.stock.Revoke(tx, func(b *stock.Batch) bool { return which(b.Epoch, b.MACKey) }, reason)
}

func (d dependents) Forget(tx store.Tx, epoch uint64) (objects []string, err error) {
	return d.ledger.Forget(tx, epoch)
}

// Open opens or creates the vault in a directory.
func Open(dir string, key *seal.Key) (*Vault, error) {
	s, err := store.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return OpenIn(s, key)
}

// OpenIn opens or creates the vault in a store, and finishes what a crash left half done. The vault
// owns the store and closes it.
func OpenIn(s store.Store, key *seal.Key) (*Vault, error) { return OpenAt(s, key, time.Now) }

// OpenAt is OpenIn with now as the clock of the vault.
func OpenAt(s store.Store, key *seal.Key, now func() time.Time) (*Vault, error) {
	v := compose(s, now)
	err := v.Unlock(key)
	if err == nil {
		err = v.Identify()
	}
	if err == nil {
		err = v.Recover()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return v, nil
}

// OpenPlace opens or creates the vault at a place.
func OpenPlace(ctx context.Context, p seal.Place, key *seal.Key) (*Vault, error) {
	s, err := p.OpenStore(ctx)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return OpenIn(s, key)
}

// Examine opens the vault in a store while its party is stopped, to read or repair it. It creates
// nothing, does not finish what a crash left, and does not count as a start of the party. The vault
// owns the store and closes it.
func Examine(s store.Store, key *seal.Key) (*Vault, error) {
	v := compose(s, time.Now)
	if err := v.UnlockOnly(key); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	v.Begin()
	return v, nil
}

// Restore puts a backup into an empty store; see [upkeep.Upkeep.Restore].
func Restore(s store.Store, in io.Reader, key *seal.Key, opt upkeep.RestoreOptions) (upkeep.Restored, error) {
	return compose(s, time.Now).Upkeep.Restore(in, key, opt)
}
