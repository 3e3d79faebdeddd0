// Package conduct stores accusations of peers with their evidence, and failed sessions in which no
// cheating party could be identified.
package conduct

import (
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// Archive stores accusations and failures. It is safe for concurrent use.
type Archive struct {
	*seal.Store
	keys *keys.Keys
}

// New returns the archive in a store.
func New(s *seal.Store, k *keys.Keys) *Archive { return &Archive{Store: s, keys: k} }
