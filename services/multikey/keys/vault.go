package keys

import (
	"io"
	"time"

	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
)

// Vault is the part of the party's vault that this package uses: the party's own multi-key keys.
type Vault interface {
	Now() time.Time

	// Keys.
	MultikeyKey(version uint64) (k vaultkeys.MultikeyKey, err error)
	MultikeyKeys() ([]vaultkeys.MultikeyKey, error)
	NewMultikey(known uint64) (*vaultkeys.MultikeyWriter, error)
	OpenMultikeySecret(version uint64) (io.ReadCloser, error)
	RetireMultikey(version uint64, reason string, revocation []byte) error
}
