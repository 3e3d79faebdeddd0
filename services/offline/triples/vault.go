package triples

import (
	"io"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Vault is the part of the party's vault that this package uses: batches of tuples, MAC keys and
// their checks.
type Vault interface {
	// Keys.
	BeginCheck(id string, session string) error
	EndCheck(id string, session string, result keys.CheckResult) (out keys.MACKey, err error)
	Epoch(id uint64) (e keys.Epoch, err error)
	FindMACKey(epoch uint64, field string, tenant string) (keys.MACKey, error)
	MACKey(id string) (k keys.MACKey, err error)
	MACKeys() ([]keys.MACKey, error)
	OpenMACKey(id string) (io.ReadCloser, error)
	RetireMACKey(id string, reason string) error
	SpendDecryptions(id uint64, n uint64) error

	// Batches, masks and reservations.
	ActivateBatch(id string) error
	NewBatch(b stock.Batch) (*stock.BatchWriter, error)
	RevokeBatch(id string, reason string) error
}
