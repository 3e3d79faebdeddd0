// Package keys stores a party's shares of keys: key epochs, the MAC keys of tenants, and the
// party's own multi-key keys. It knows the roster under which keys may be used, and counts the
// decryptions that are left to each key.
package keys

import (
	"sync/atomic"

	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// Keys stores keys. It is safe for concurrent use.
type Keys struct {
	*seal.Store
	// Under erases the batches and answers that are stored under keys. The composition of the vault
	// sets it.
	Under  Under
	peers  *peers.Peers
	roster atomic.Pointer[Pinned]
}

// New returns the keys in a store.
func New(s *seal.Store, p *peers.Peers) *Keys { return &Keys{Store: s, peers: p} }
