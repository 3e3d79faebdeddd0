// Package peers tells the peers of a party which version its store has, and remembers theirs. An
// old copy of a store that is put back would deliver tuples again that it had delivered before. So
// every store has an identity and a generation that grows; A peer rejects a store that is behind
// the remembered version, and its party puts it into quarantine.
package peers

import (
	"sync"
	"sync/atomic"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// Peers remembers the versions of the peers' stores. It is safe for concurrent use.
type Peers struct {
	*seal.Store
	start         atomic.Pointer[Start]
	peers         sync.Map   // party to the *Version that was received last
	acknowledging sync.Mutex // of peers' versions
}

// New returns the peers of the party of a store.
func New(s *seal.Store) *Peers { return &Peers{Store: s} }
