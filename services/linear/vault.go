package linear

import (
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
)

// Vault is the part of the party's vault that this package uses: the budgets of statistical
// distance that products of shared inputs spend.
type Vault interface {
	Distances() ([]ledger.Distance, error)
	MayDistance(d ledger.Distance, wanted float64, budget float64) error
	SpendDistance(d ledger.Distance, wanted float64, budget float64) (out ledger.Distance, err error)
}
