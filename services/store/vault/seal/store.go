// Package seal encrypts a party's store: records with XChaCha20-Poly1305, bound to their place, and
// bulk data in blobs, each under its own key (object.go), so that it can be erased. All keys are
// encrypted under the operator's key. Package seal also runs the transactions, counts the
// generations of the store, and keeps its identity and quarantine. It is the lowest package of the
// vault: the others store their records and blobs through it. The store.Store below sees only
// ciphertext.
package seal

import (
	"crypto/cipher"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
)

// Store is an encrypted store. It is safe for concurrent use.
type Store struct {
	Backend store.Store      // sees only ciphertext
	Clock   func() time.Time // by which leases end
	Orphans sync.Map         // names of blobs to erase if no record names them
	Opened  OpenedRecords    // decrypted records that are read often
	aead    cipher.AEAD      // under the root key, once it is unlocked
	writing sync.Map         // names that are being committed
}

// New returns the encrypted store over a backend, which is still locked.
func New(backend store.Store, clock func() time.Time) *Store {
	return &Store{Backend: backend, Clock: clock}
}
