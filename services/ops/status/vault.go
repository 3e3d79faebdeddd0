package status

import (
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
)

// Vault is the part of the party's vault that this package uses: what the status of a party shows
// of its store.
type Vault interface {
	Healthy() error
	Quarantined() (reason string, err error)

	// Versions of the stores of this party and its peers.
	Version(peer int) (peers.Version, error)

	// Answers, approvals and budgets.
	Distances() ([]ledger.Distance, error)
}
