package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	EpochPrefix = "epoch/"
	MACPrefix   = "mac/"
)

// EpochState of a key epoch.
type EpochState string

// The states of an epoch, in order.
const (
	EpochLocked EpochState = "locked" // stored, not yet active everywhere
	EpochActive EpochState = "active"
	// EpochDraining allows clients to use existing tuples, and makes no new ones.
	EpochDraining EpochState = "draining"
	EpochRetired  EpochState = "retired" // erased; this record is the tombstone
)

// Epoch is a set of jointly generated keys, of which this party holds a share.
type Epoch struct {
	ID             uint64     `json:"id"`
	State          EpochState `json:"state"`
	Params         string     `json:"params"`
	ParamsHash     [32]byte   `json:"params_hash"`
	RosterHash     [32]byte   `json:"roster_hash"`
	Holders        [32]byte   `json:"holders"` // of the roster: its parties' signing keys
	Purpose        string     `json:"purpose"` // one of those below; never changes
	Dim            uint32     `json:"dim"`     // of the rotation keys
	Digest         [32]byte   `json:"digest"`  // of the public keys
	SessionID      [32]byte   `json:"session_id"`
	Session        string     `json:"session"` // job and ordinal that made it
	KeygenSecurity string     `json:"keygen_security"`
	Created        time.Time  `json:"created"`
	Reason         string     `json:"reason,omitempty"`    // of retirement, or why its keys are suspect while it drains
	Successor      uint64     `json:"successor,omitempty"` // the epoch that replaces a draining one
	// Decrypted counts the ciphertexts that the key may have decrypted, and Limit bounds them: each
	// costs some of the statistical distance that flooding keeps. Of threshold keys they are those
	// that were begun (BeginFloods).
	Decrypted uint64 `json:"decrypted"`
	Limit     uint64 `json:"limit"`

	// Answered counts the ciphertexts that were decrypted with masks, which bounds nothing, for
	// PurposeThreshold.
	Answered uint64 `json:"answered,omitempty"`
	// Threshold and Members are used only for PurposeThreshold: any Threshold+1 of the members
	// decrypt. Members are signing keys of the parties that hold shares, in the order of their
	// Shamir points, from 1 on. Numbers of members are from 0 on.
	Threshold uint32   `json:"threshold,omitempty"`
	Members   [][]byte `json:"members,omitempty"`
	// AnyQuorum says that more members than Threshold+1 decrypt together too: those whose own keys
	// are in a ciphertext.
	AnyQuorum bool `json:"any_quorum,omitempty"`
	// Galois are the automorphisms that the public keys are made for, where the scheme has such.
	Galois []uint32 `json:"galois,omitempty"`
	// From is the epoch whose secrets these are new shares of; 0 says that the keys were made in
	// this one.
	From uint64 `json:"from,omitempty"`
}

// The purposes of epochs. Keys of one purpose are never used for another.
const (
	PurposeTriples    = "triples"
	PurposeDecryption = "decryption"
	PurposeThreshold  = "threshold"
)

// Decrypts reports whether the epoch's key decrypts for clients. Such a key may come back from a
// backup.
func (e *Epoch) Decrypts() bool {
	return e.Purpose == PurposeDecryption || e.Purpose == PurposeThreshold
}

// PutBack reduces the remaining decryptions of an epoch in a store that was restored from a backup,
// because the party may have decrypted after the backup. It takes away half of them. Of a threshold
// epoch it takes away all decryptions with flooding, even if the epoch is retired, because they
// also count for other epochs of the same keys.
func (e *Epoch) PutBack() {
	switch {
	case e.Decrypted >= e.Limit:
	//lodge:check vault/restore/flooding [tests=./services/store/vault]
	//  [run=TestFloodingAfterRestore] a restored store floods a ciphertext again that it has
	//  forgotten
	case e.Purpose == PurposeThreshold:
		e.Decrypted = e.Limit
	default:
		//lodge:check vault/restore/halves [tests=./services/store/vault] [swap=(e.Limit -
		//  e.Decrypted) / 2=>(e.Limit - e.Decrypted)] [run=TestRestore$] a restored key keeps its
		//  whole limit of decryptions
		e.Limit = e.Decrypted + (e.Limit-e.Decrypted)/2
	}
}

// Spend counts n more decryptions.
func (e *Epoch) Spend(n uint64) error {
	//lodge:check vault/spend/limit [tests=./services/store/vault] [run=TestDecryptions] sessions
	//  decrypt more ciphertexts than the flooding of the key allows
	if e.Decrypted > e.Limit || n > e.Limit-e.Decrypted {
		return fmt.Errorf("%w: %d of %d under epoch %d, and %d more are asked for", vaulterr.ErrSpent, e.Decrypted, e.Limit, e.ID, n)
	}
	e.Decrypted += n
	return nil
}

// SpendDecryptions notes durably, before a session, that it may decrypt n ciphertexts under an
// epoch. They stay spent however the session ends. The error is ErrSpent if fewer are left.
func (v *Keys) SpendDecryptions(id, n uint64) error {
	//lodge:check vault/epoch/spend-generation [tests=./services/store/vault]
	//  [swap=v.Advance=>v.Update] [run=TestGeneration] an old copy of the store forgets decryptions
	//  unnoticed
	return v.Advance(func(tx store.Tx) error {
		//lodge:check vault/epoch/spend-quarantine [tests=./services/store/vault]
		//  [run=TestQuarantine] a store that may be an old copy lets a session decrypt
		if err := v.Trusted(tx); err != nil {
			return err
		}
		e, err := v.EpochIn(tx, id)
		if err != nil {
			return err
		}
		//lodge:check vault/drain/session [tests=./services/store/vault] [drop=e.State !=
		//  EpochActive] [run=TestDrainEpoch] a session decrypts under an epoch that drains
		//lodge:check vault/threshold/triples [tests=./services/store/vault] [drop=e.Purpose ==
		//  PurposeThreshold] [run=TestPurposesNeverCross] a session makes tuples under a threshold
		//  key
		if e.State != EpochActive || e.Purpose == PurposeThreshold {
			return fmt.Errorf("%w: epoch %d is %s, for %s", vaulterr.ErrState, id, e.State, e.Purpose)
		}
		//lodge:check vault/roster/spend [tests=./services/store/vault] [run=TestStanding] a session
		//  decrypts under keys of another roster
		if err := v.Works(e); err != nil {
			return err
		}
		if err := e.Spend(n); err != nil {
			return err
		}
		return seal.Put(v.Store, tx, EpochKey(id), e)
	})
}

func EpochKey(id uint64) string { return fmt.Sprintf("%s%020d", EpochPrefix, id) }

func (e *Epoch) SecretObject() string { return seal.ObjectName("epoch-secret", fmt.Sprint(e.ID)) }

func (e *Epoch) PublicObject() string { return seal.ObjectName("epoch-public", fmt.Sprint(e.ID)) }

// EpochWriter stores a new epoch: write both parts, then Commit or Abort.
type EpochWriter struct {
	Secret io.Writer // this party's share
	Public io.Writer // public, relinearisation and rotation keys
	v      *Keys
	epoch  Epoch
	parts  [2]*seal.ObjectWriter
	done   bool
}

// NewEpoch begins to store an epoch. An id is used once, ever.
func (v *Keys) NewEpoch(e Epoch) (*EpochWriter, error) {
	//lodge:check vault/epoch/once [tests=./services/store/vault] [run=TestEpochs|TestRetire] one
	//  identifier names two epochs
	if _, err := v.Epoch(e.ID); err == nil {
		return nil, fmt.Errorf("%w: epoch %d", vaulterr.ErrExists, e.ID)
	}
	if err := v.CheckMembers(&e); err != nil {
		return nil, err
	}
	e.State, e.Created, e.Reason, e.Decrypted, e.Answered, e.Successor = EpochLocked, v.Clock().UTC(), "", 0, 0, 0
	if err := v.limitShares(&e); err != nil {
		return nil, err
	}
	//lodge:check vault/roster/made-under [tests=./services/store/vault] [drop=e.RosterHash ==
	//  p.hash] [run=TestHolders] keys of another roster get the present parties as holders when
	//  they are stored
	//lodge:check vault/threshold/holders [tests=./services/store/vault] [drop=e.Purpose !=
	//  PurposeThreshold] [run=TestMembers] [redundant=the standing of a threshold epoch ignores its
	//  holders] a threshold epoch depends on the roster
	if p := v.roster.Load(); p != nil && e.RosterHash == p.hash && e.Purpose != PurposeThreshold {
		e.Holders = p.holders
	}
	secret, err := v.CreateObject(e.SecretObject())
	if err != nil {
		return nil, err
	}
	public, err := v.CreateObject(e.PublicObject())
	if err != nil {
		secret.Abort()
		return nil, err
	}
	return &EpochWriter{Secret: secret, Public: public, v: v, epoch: e, parts: [2]*seal.ObjectWriter{secret, public}}, nil
}

// Commit makes the epoch durable, locked. After an error nothing is stored.
func (w *EpochWriter) Commit() error {
	defer w.Abort() // does nothing after success
	key := EpochKey(w.epoch.ID)
	release, err := w.v.Claim(key)
	if err != nil {
		return err
	}
	defer release()
	//lodge:check vault/epoch/once-at-last [tests=./services/store/vault]
	//  [run=TestTwoWritersOfAnEpoch] one identifier names two epochs when two writers commit
	if _, err := w.v.Epoch(w.epoch.ID); err == nil {
		return fmt.Errorf("%w: epoch %d", vaulterr.ErrExists, w.epoch.ID)
	}
	if err := w.v.EraseObjects([]string{w.epoch.SecretObject(), w.epoch.PublicObject()}); err != nil { // of an attempt in doubt
		return err
	}
	for _, p := range w.parts {
		if err := p.Commit(); err != nil {
			return err
		}
	}
	err = w.v.Update(func(tx store.Tx) error { return seal.Put(w.v.Store, tx, key, &w.epoch) })
	w.done = err == nil || errors.Is(err, store.ErrUncertain) // if it is not recorded, the next start erases it
	return err
}

// Abort erases the written data; after a Commit that succeeded it does nothing.
func (w *EpochWriter) Abort() {
	if w.done {
		return
	}
	for _, p := range w.parts {
		p.Abort()
	}
}

// Epoch gives the record of an epoch.
func (v *Keys) Epoch(id uint64) (Epoch, error) {
	return seal.Read(v.Store, func(tx store.Tx) (*Epoch, error) { return v.EpochIn(tx, id) })
}

// EpochIn is the record of an epoch within a transaction.
func (v *Keys) EpochIn(tx store.Tx, id uint64) (*Epoch, error) {
	return seal.Named[Epoch](v.Store, tx, EpochKey(id), "epoch", id)
}

// Epochs lists all epochs by id, retired ones included.
func (v *Keys) Epochs() ([]Epoch, error) { return seal.Records[Epoch](v.Store, EpochPrefix) }

// ActivateEpoch makes a locked epoch active; an epoch that was activated before does not change.
func (v *Keys) ActivateEpoch(id uint64) error {
	return v.Update(func(tx store.Tx) error {
		e, err := v.EpochIn(tx, id)
		switch {
		case err != nil:
			return err
		case e.State == EpochRetired:
			//lodge:check vault/epoch/retired [tests=./services/store/vault] [run=TestRetire] a
			//  retired epoch is activated
			return fmt.Errorf("%w: epoch %d", vaulterr.ErrErased, id)
		//lodge:check vault/drain/stays [tests=./services/store/vault] [run=TestDrainEpoch] an epoch
		//  that drains is activated again
		case e.State != EpochLocked:
			return nil
		}
		e.State = EpochActive
		return seal.Put(v.Store, tx, EpochKey(id), e)
	})
}

// OpenEpochSecret reads this party's share of an epoch that is active or drains; the caller wipes
// it.
func (v *Keys) OpenEpochSecret(id uint64) (io.ReadCloser, error) {
	e, err := v.Epoch(id)
	if err == nil {
		//lodge:check vault/roster/secret [tests=./services/store/vault] [run=TestStanding] a key
		//  share of another roster is read
		err = v.Works(&e)
	}
	if err != nil {
		return nil, err
	}
	return v.openEpoch(id, (*Epoch).SecretObject)
}

// OpenEpochPublic reads the public keys of an epoch that is active or drains.
func (v *Keys) OpenEpochPublic(id uint64) (io.ReadCloser, error) {
	return v.openEpoch(id, (*Epoch).PublicObject)
}

func (v *Keys) openEpoch(id uint64, object func(*Epoch) string) (io.ReadCloser, error) {
	e, err := v.Epoch(id)
	switch {
	case err != nil:
		return nil, err
	case e.State == EpochRetired:
		return nil, fmt.Errorf("%w: epoch %d is retired", vaulterr.ErrErased, id)
	//lodge:check vault/epoch/locked-keys [tests=./services/store/vault] [run=TestEpochs] keys are
	//  read before they are active at every party
	case e.State == EpochLocked:
		return nil, fmt.Errorf("%w: epoch %d is %s", vaulterr.ErrState, id, e.State)
	}
	return v.OpenObject(object(&e))
}

// RetireEpoch erases an epoch, its MAC keys and every batch under them, and the
// answers of its decryption ledger. It counts the batches that held data.
func (v *Keys) RetireEpoch(id uint64, reason string) (batches int, err error) {
	var objects []string
	//lodge:check vault/epoch/retire-generation [tests=./services/store/vault]
	//  [swap=v.Advance=>v.Update] [run=TestGeneration] an old copy of the store forgets unnoticed
	//  that an epoch was retired
	err = v.Advance(func(tx store.Tx) error {
		e, err := v.EpochIn(tx, id)
		if err != nil {
			return err
		}
		objects, batches, err = v.Retire(tx, e, reason)
		return err
	})
	return batches, v.EraseAfter(err, objects)
}

// Retire records an epoch as retired, with all under it, and names the blobs to erase.
func (v *Keys) Retire(tx store.Tx, e *Epoch, reason string) (objects []string, batches int, err error) {
	objects = append(objects, e.SecretObject(), e.PublicObject())
	if e.State != EpochRetired {
		e.State, e.Reason = EpochRetired, reason
		if err := seal.Put(v.Store, tx, EpochKey(e.ID), e); err != nil {
			return nil, 0, err
		}
	}
	under, batches, err := v.revokeUnder(tx, e, reason)
	if err != nil {
		return nil, 0, err
	}
	answers, err := v.Under.Forget(tx, e.ID)
	return slices.Concat(objects, under, answers), batches, err
}

func (e *Epoch) Clone() *Epoch {
	c := *e
	c.Galois, c.Members = slices.Clone(e.Galois), slices.Clone(e.Members)
	for i, m := range c.Members {
		c.Members[i] = bytes.Clone(m)
	}
	return &c
}
