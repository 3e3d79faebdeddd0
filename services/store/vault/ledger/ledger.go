package ledger

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const LedgerPrefix = "ledger/"

// LedgerKey identifies one decryption by epoch, ciphertext and quorum. Digest covers all inputs of
// a share: the polynomial that the key share multiplies. Another answer for the same polynomial
// would be another decryption.
type LedgerKey struct {
	Epoch  uint64
	Digest [32]byte
	Quorum []int // ascending
}

func (k LedgerKey) key() string {
	//lodge:check vault/ledger/epoch [tests=./services/store/vault] [swap=k.Epoch=>k.Epoch -
	//  k.Epoch] [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] answers of different epochs
	//  share a place in the ledger
	//lodge:check vault/ledger/digest [tests=./services/store/vault] [swap=k.Digest=>k.Digest[:0]]
	//  [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] answers to different ciphertexts
	//  share a place in the ledger
	//lodge:check vault/ledger/quorum [tests=./services/store/vault] [swap=k.Quorum=>k.Quorum[:0]]
	//  [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] answers of different quorums share a
	//  place in the ledger
	return fmt.Sprintf("%s%020d/%x/%v", LedgerPrefix, k.Epoch, k.Digest, k.Quorum)
}

// LedgerEntry is the one answer that a ciphertext ever gets. The answer is stored as a separate
// object.
type LedgerEntry struct {
	Client string    `json:"client"`
	When   time.Time `json:"when"`
	Object string    `json:"object,omitempty"` // empty once the epoch is retired

	// Only for answers with flooding under a threshold epoch.
	Quorum   []uint32 `json:"quorum,omitempty"`
	Run      RunID    `json:"run,omitzero"`
	Released bool     `json:"released,omitempty"`
}

// Decryption looks an answer up; ErrNotFound when there is none.
func (v *Ledger) Decryption(k LedgerKey) (LedgerEntry, error) { return v.ledgerEntry(k.key()) }

func (v *Ledger) ledgerEntry(key string) (LedgerEntry, error) {
	return seal.Read(v.Store, func(tx store.Tx) (*LedgerEntry, error) { return seal.Get[LedgerEntry](v.Store, tx, key) })
}

// RecordDecryption makes an answer durable if there is none yet, and returns the recorded answer:
// only that may be sent. Another client gets ErrDelivered, a retired epoch ErrErased, and an epoch
// that has decrypted its limit ErrSpent. first says whether this answer was recorded now.
func (v *Ledger) RecordDecryption(k LedgerKey, client string, answer []byte) (held []byte, first bool, err error) {
	//lodge:check vault/ledger/order [tests=./services/store/vault]
	//  [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] one quorum in two orders has two
	//  answers
	if !slices.IsSorted(k.Quorum) || client == "" {
		return nil, false, fmt.Errorf("%w: quorum not ascending or no client", vaulterr.ErrState)
	}
	return v.recordAnswer(ledgerAnswer{k.key(), k.Epoch, keys.PurposeDecryption, client}, answer)
}

// ledgerAnswer holds the record key of an answer, its epoch with the required purpose, and its
// client.
type ledgerAnswer struct {
	key     string
	epoch   uint64
	purpose string
	client  string
}

// recordAnswer makes an answer durable, or returns the recorded one.
func (v *Ledger) recordAnswer(a ledgerAnswer, answer []byte) (held []byte, first bool, err error) {
	w, err := v.CreateObject(seal.ObjectName("answer", a.key+"/"+rand.Text())) // of two at once, one is erased
	if err != nil {
		return nil, false, err
	}
	recorded := false
	defer func() {
		if !recorded { // nor can have been: then the next start erases it
			w.Abort()
		}
	}()
	if _, err := w.Write(answer); err != nil {
		return nil, false, err
	}
	if err := w.Commit(); err != nil {
		return nil, false, err
	}
	var object string
	err = v.Advance(func(tx store.Tx) error {
		first = false
		e, err := v.answered(tx, a)
		if err == nil && e == nil {
			first = true
			e = &LedgerEntry{Client: a.client, When: v.Clock().UTC(), Object: w.Name}
			err = seal.Put(v.Store, tx, a.key, e)
		}
		if err == nil {
			object = e.Object
		}
		return err
	})
	if err != nil {
		recorded = errors.Is(err, store.ErrUncertain)
		return nil, false, err
	}
	if recorded = first; first {
		return answer, true, nil
	}
	in, err := v.OpenObject(object)
	if err != nil {
		return nil, false, err
	}
	defer in.Close()
	held, err = io.ReadAll(in)
	return held, false, err
}

// answered gives the entry of an answer that this client may have, or nil when it is the first,
// which it counts.
func (v *Ledger) answered(tx store.Tx, a ledgerAnswer) (*LedgerEntry, error) {
	epoch, err := v.answers(tx, a.epoch, a.purpose)
	if err != nil {
		return nil, err
	}
	e, err := seal.Get[LedgerEntry](v.Store, tx, a.key)
	switch {
	//lodge:check vault/ledger/client [tests=./services/store/vault]
	//  [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] an answer goes to another client
	//  than the first time
	case err == nil && e.Client != a.client:
		return nil, fmt.Errorf("%w: this ciphertext", vaulterr.ErrDelivered)
	//lodge:check vault/ledger/once [tests=./services/store/vault]
	//  [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] a ciphertext is answered twice with
	//  fresh flooding
	case !errors.Is(err, vaulterr.ErrNotFound):
		return e, err
	}
	//lodge:check vault/ledger/limit [tests=./services/store/vault] [run=TestDecryptions|TestLedger]
	//  a key decrypts more ciphertexts than its flooding allows
	if err := epoch.Spend(1); err != nil {
		return nil, err
	}
	//lodge:check vault/ledger/counted [tests=./services/store/vault] [swap=seal.Put(v.Store, tx,
	//  keys.EpochKey(a.epoch), epoch)=>error(nil)] [run=TestDecryptions|TestLedger] answers are not
	//  counted
	if err := seal.Put(v.Store, tx, keys.EpochKey(a.epoch), epoch); err != nil {
		return nil, err
	}
	return nil, nil
}

// answers gives an epoch of a purpose under which this party answers clients.
func (v *Ledger) answers(tx store.Tx, id uint64, purpose string) (*keys.Epoch, error) {
	//lodge:check vault/ledger/quarantine [tests=./services/store/vault] [run=TestQuarantine] a
	//  store that may be an old copy decrypts
	if err := v.Trusted(tx); err != nil {
		return nil, err
	}
	epoch, err := v.keys.EpochIn(tx, id)
	switch {
	case err != nil:
		return nil, err
	//lodge:check vault/ledger/retired [tests=./services/store/vault]
	//  [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] a ciphertext is decrypted under a
	//  retired epoch
	case epoch.State == keys.EpochRetired:
		return nil, fmt.Errorf("%w: epoch %d is retired", vaulterr.ErrErased, id)
	//lodge:check vault/ledger/purpose [tests=./services/store/vault] [drop=epoch.Purpose !=
	//  purpose] [run=TestLedger|TestDecryptions|TestAnswers|TestRetire] a ciphertext is decrypted
	//  under keys of another purpose
	case epoch.State == keys.EpochLocked || epoch.Purpose != purpose:
		return nil, fmt.Errorf("%w: epoch %d is %s, for %s", vaulterr.ErrState, id, epoch.State, epoch.Purpose)
	}
	//lodge:check vault/roster/ledger [tests=./services/store/vault] [swap=v.keys.Works(epoch)=>nil]
	//  [run=TestStanding] a client's ciphertext is decrypted under keys of another roster
	return epoch, v.keys.Works(epoch)
}

// Forget drops the answers of an epoch, which the caller erases, and keeps that they were given.
func (v *Ledger) Forget(tx store.Tx, epoch uint64) (objects []string, err error) {
	//lodge:check vault/runs/forgotten [tests=./services/store/vault] [swap=v.forgetRuns(tx,
	//  epoch)=>error(nil)] [run=TestRetireThreshold|TestLedgerCrash] the answers of a retired epoch
	//  are not erased
	if err := v.forgetRuns(tx, epoch); err != nil {
		return nil, err
	}
	//lodge:check vault/approval/retired [tests=./services/store/vault] [swap=v.DropApprovals(tx,
	//  func(a *Approval) bool {return a.Epoch == epoch })=>error(nil)] [run=TestApprovalRefuses]
	//  approvals outlive their epoch
	if err := v.DropApprovals(tx, func(a *Approval) bool { return a.Epoch == epoch }); err != nil {
		return nil, err
	}
	prefix := fmt.Sprintf("%s%020d/", LedgerPrefix, epoch)
	changed := map[string]*LedgerEntry{}
	err = tx.Scan(prefix, func(key string, sealed []byte) error {
		e, err := seal.Decode[LedgerEntry](v.Store, key, sealed)
		if err == nil && e.Object != "" {
			changed[key] = e
		}
		return err
	})
	for key, e := range changed {
		if err != nil {
			return nil, err
		}
		objects = append(objects, e.Object)
		e.Object = ""
		err = seal.Put(v.Store, tx, key, e)
	}
	return objects, err
}
