package popk

import (
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// Vault is the part of the party's vault that this package uses: stored epochs of keys.
type Vault interface {
	Epoch(id uint64) (e keys.Epoch, err error)
}
