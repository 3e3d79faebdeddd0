// Package ledger stores the answers that a party has given to clients: decryptions under epochs for
// decryption, and with masks or with flooding under threshold epochs. It also stores the approvals
// that requests need, the budgets of decrypted messages, and the statistical distances that
// products of linear algebra have spent. An answer is durable before it leaves the party.
package ledger

import (
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// Ledger stores answers, approvals and budgets. It is safe for concurrent use.
type Ledger struct {
	*seal.Store
	keys *keys.Keys
}

// New returns the ledger in a store.
func New(s *seal.Store, k *keys.Keys) *Ledger { return &Ledger{Store: s, keys: k} }
