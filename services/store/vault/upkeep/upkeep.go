// Package upkeep maintains all parts of a party's vault: recovery after a crash,
// quarantine, sweeping, checks, statistics, backup and restore.
package upkeep

import (
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Upkeep maintains all parts of one vault. It is safe for concurrent use.
type Upkeep struct {
	*seal.Store
	peers  *peers.Peers
	keys   *keys.Keys
	stock  *stock.Stock
	ledger *ledger.Ledger
}

// New returns the upkeep of a vault with these parts.
func New(s *seal.Store, p *peers.Peers, k *keys.Keys, st *stock.Stock, l *ledger.Ledger) *Upkeep {
	return &Upkeep{Store: s, peers: p, keys: k, stock: st, ledger: l}
}
