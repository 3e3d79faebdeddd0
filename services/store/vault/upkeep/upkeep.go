// Package upkeep maintains the vault of a party across all its rooms: recovery after a crash,
// quarantine, sweeping, checks, statistics, backup and restore.
package upkeep

import (
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Upkeep maintains the rooms of one vault. It is safe for concurrent use.
type Upkeep struct {
	*seal.Store
	peers  *peers.Peers
	keys   *keys.Keys
	stock  *stock.Stock
	ledger *ledger.Ledger
}

// New returns the upkeep of the rooms of a vault.
func New(s *seal.Store, p *peers.Peers, k *keys.Keys, st *stock.Stock, l *ledger.Ledger) *Upkeep {
	return &Upkeep{Store: s, peers: p, keys: k, stock: st, ledger: l}
}
