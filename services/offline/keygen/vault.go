package keygen

import (
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// Vault is the part of the party's vault that this package uses: epochs of keys, and the tenants
// that have tuples under them.
type Vault interface {
	// Keys.
	ActivateEpoch(id uint64) error
	DrainEpoch(id uint64, successor uint64) error
	Epoch(id uint64) (e keys.Epoch, err error)
	Epochs() ([]keys.Epoch, error)
	NewEpoch(e keys.Epoch) (*keys.EpochWriter, error)
	RetireEpoch(id uint64, reason string) (batches int, err error)
	RevokeEpoch(id uint64, successor uint64, reason string) (batches int, err error)
	Standing(e *keys.Epoch) keys.Standing

	// Batches, masks and reservations.
	Tenants(epoch uint64) ([]string, error)
}
