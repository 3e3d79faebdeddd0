package decryption

import (
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
)

// Vault is the part of the party's vault that this package uses: the ledger of decryptions for
// clients.
type Vault interface {
	Decryption(k ledger.LedgerKey) (ledger.LedgerEntry, error)
	RecordDecryption(k ledger.LedgerKey, client string, answer []byte) (held []byte, first bool, err error)
}
