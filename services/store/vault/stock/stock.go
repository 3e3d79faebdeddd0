// Package stock stores a party's shares of tuples and masks in batches, and their reservations. A
// tuple goes to at most one reservation, ever, and a reservation to one client. Shares lie in
// segments, each under its own key (segments.go), so that they can be erased one by one.
package stock

import (
	"sync"
	"sync/atomic"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// Stock stores batches and reservations. It is safe for concurrent use.
type Stock struct {
	*seal.Store
	// Unwiped maps ids of batches to the *Owed of their erasure, which the next sweep does.
	Unwiped sync.Map
	// Reading names the masks that are being read for the decryption that has spent them.
	Reading  Reading
	keys     *keys.Keys
	wiping   sync.Mutex // one erasure at a time
	erasures atomic.Uint64
}

// New returns the stock in a store.
func New(s *seal.Store, k *keys.Keys) *Stock { return &Stock{Store: s, keys: k} }
