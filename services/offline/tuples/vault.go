package tuples

import (
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Vault is the part of the party's vault that this package uses: batches and reservations, MAC
// keys, and the versions of the stores.
type Vault interface {
	Generation() (uint64, error)
	Now() time.Time

	// Versions of the stores of this party and its peers.
	Acknowledge(party int, now peers.Version) (seen peers.Version, err error)
	AcknowledgedBy(peer int) error
	Heard(party int, now peers.Version) bool
	RememberPeers() error
	Succeeds(peer int, said peers.Version) (bool, error)
	Version(peer int) (peers.Version, error)

	// Keys.
	BurnMACKey(id string, reason string) (batches int, err error)
	Epochs() ([]keys.Epoch, error)
	MACKey(id string) (k keys.MACKey, err error)
	MACKeys() ([]keys.MACKey, error)
	Places(e *keys.Epoch) []int
	Standing(e *keys.Epoch) keys.Standing

	// Batches, masks and reservations.
	Batches() ([]stock.Batch, error)
	BatchesAfter(after string, f func(*stock.Batch) bool) error
	DeliverCharged(id string, client string, party int, book *quota.Book) (out stock.Reservation, first bool, err error)
	Release(id string, discard bool) (out stock.Reservation, err error)
	Reservation(id string) (out stock.Reservation, err error)
	Reservations(after string, f func(*stock.Reservation) bool) error
	Reserve(r stock.Reservation) (stock.Reservation, error)
	RevokeBatch(id string, reason string) error
	Shares(r *stock.Reservation, from uint64) (in io.ReadCloser, tupleBytes uint64, err error)
	Withdraw(id string) (out stock.Reservation, err error)

	// Upkeep.
	Quarantine(reason string, beyond uint64) error
	RememberAudit(hash string) error
	Sweep() error
}
