package keys

import (
	"github.com/lodge-mpc/lodge/services/store"
)

// Under erases data that other packages of the vault store under keys, in the transaction that ends
// the keys. Both methods return the blobs that the caller erases after the transaction.
type Under interface {
	// RevokeBatches revokes the batches for whose epoch and MAC key the function returns true, and
	// counts those that held data.
	RevokeBatches(tx store.Tx, which func(epoch uint64, macKey string) bool, reason string) (objects []string, batches int, err error)
	// Forget drops the answers of an epoch's decryption ledger and keeps that they were given.
	Forget(tx store.Tx, epoch uint64) (objects []string, err error)
}
