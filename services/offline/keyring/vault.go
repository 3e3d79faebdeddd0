package keyring

import (
	"io"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// Vault is the part of the party's vault that this package uses: stored epochs of keys.
type Vault interface {
	Epoch(id uint64) (e keys.Epoch, err error)
	OpenEpochPublic(id uint64) (io.ReadCloser, error)
	OpenEpochSecret(id uint64) (io.ReadCloser, error)
	Standing(e *keys.Epoch) keys.Standing
}
