package threshold

import (
	"io"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// Vault is the part of the party's vault that this package uses: epochs of threshold keys, masks,
// the ledger of decryptions, approvals and budgets.
type Vault interface {
	// Keys.
	ActivateEpoch(id uint64) error
	RetireEpoch(id uint64, reason string) (batches int, err error)
	Epoch(id uint64) (e keys.Epoch, err error)
	Epochs() ([]keys.Epoch, error)
	FloodingLimit(id uint64) (limit uint64, err error)
	NewEpoch(e keys.Epoch) (*keys.EpochWriter, error)
	OpenEpochPublic(id uint64) (io.ReadCloser, error)
	OpenEpochSecret(id uint64) (io.ReadCloser, error)
	Places(e *keys.Epoch) []int
	Standing(e *keys.Epoch) keys.Standing

	// Batches, masks and reservations.
	ActivateBatch(id string) error
	Batch(id string) (b stock.Batch, err error)
	FreeMasks(epoch uint64, quorum []uint32, form string) ([]stock.Batch, error)
	MasksUnder(epoch uint64) ([]stock.Batch, error)
	NewBatch(b stock.Batch) (*stock.BatchWriter, error)
	RevokeBatch(id string, reason string) error
	SpendMasks(batch string, span stock.Span, also ...seal.Also) (shares []byte, err error)

	// Answers, approvals and budgets.
	Approvals() ([]ledger.Approval, error)
	Approve(digest [32]byte, by string) (out ledger.Approval, err error)
	BeginFloods(r ledger.FloodRun) error
	Floods(r ledger.FloodRun) ([]ledger.Flood, error)
	RecordFloods(r ledger.FloodRun, answers [][]byte, also ...seal.Also) error
	RecordThreshold(r ledger.ThresholdRun, also ...seal.Also) error
	ReleaseFloods(r ledger.FloodRun, held []ledger.Flood) error
	RequestApproval(a ledger.Approval) (out ledger.Approval, err error)
	SpendBudget(client string, keys [][32]byte, n uint64, most uint64) (total uint64, err error)
	ThresholdAnswers(epoch uint64, quorum []uint32, list []ledger.Messages) ([][]ledger.Answer, error)
	ThresholdCount(epoch uint64) (uint64, error)
	UseApproval(digest [32]byte, client string) seal.Also
}
