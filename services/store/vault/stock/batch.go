package stock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const BatchPrefix = "batch/"

// BatchState of a batch of tuples.
type BatchState string

// The states of a batch, in order.
const (
	BatchLocked    BatchState = "locked"    // stored, not yet active everywhere
	BatchAvailable BatchState = "available" // its tuples may be reserved
	BatchConsumed  BatchState = "consumed"  // all of them are gone; this record is the tombstone
	BatchRevoked   BatchState = "revoked"   // erased; this record is the tombstone
)

// Batch is a set of tuples, of which this party holds shares.
type Batch struct {
	ID      string     `json:"id"`
	State   BatchState `json:"state"`
	Epoch   uint64     `json:"epoch"`
	MACKey  string     `json:"mac_key"`
	Params  string     `json:"params"`
	Field   string     `json:"field"`
	Kind    string     `json:"kind"` // "scalar", "matrix" and so on
	Dim     uint32     `json:"dim"`
	Rows    uint32     `json:"rows,omitempty"`
	Inner   uint32     `json:"inner,omitempty"`
	Columns uint32     `json:"columns,omitempty"`
	// Convolution is the shape of convolutions, which have no rows, inner and columns.
	Convolution Convolution `json:"convolution,omitzero"`
	InputParty  uint32      `json:"input_party,omitempty"` // whom the values of input masks are known to
	// NoSacrifice says that products were made without a sacrifice.
	NoSacrifice bool      `json:"no_sacrifice"`
	Count       uint64    `json:"count"`
	Tenant      string    `json:"tenant"`
	Digest      [32]byte  `json:"digest"` // public, the same at every party
	SessionID   [32]byte  `json:"session_id"`
	Verdict     Verdict   `json:"verdict"`
	TupleBytes  uint64    `json:"tuple_bytes"` // of this party's shares of one tuple
	Created     time.Time `json:"created"`
	Reason      string    `json:"reason,omitempty"`

	// Quorum and Form are only for masks: the numbers of the quorum's members, and the kind of
	// masks.
	Quorum []uint32 `json:"quorum,omitempty"`
	Form   string   `json:"form,omitempty"`

	// Taken are the tuples that a reservation holds or held, and Gone those of them whose shares
	// are not to be read any more. Wiped are those of them that are erased. Lost counts those that
	// were never delivered.
	Taken Spans  `json:"taken,omitempty"`
	Gone  Spans  `json:"gone,omitempty"`
	Wiped Spans  `json:"wiped,omitempty"`
	Lost  uint64 `json:"lost,omitempty"`
}

// Verdict is the statement that all parties sign at the end of the session: they accept the batch's
// digest.
type Verdict struct {
	Version    uint32   `json:"version"` // of the protocol
	Round      uint32   `json:"round"`
	Transcript [32]byte `json:"transcript"`
	Signatures [][]byte `json:"signatures"` // in the order of the roster
}

// UnmarshalJSON reads records from before the sacrifice was introduced as records without a
// sacrifice.
func (b *Batch) UnmarshalJSON(record []byte) error {
	type fields Batch
	f := fields{NoSacrifice: true}
	if err := json.Unmarshal(record, &f); err != nil {
		return err
	}
	*b = Batch(f)
	b.NoSacrifice = b.NoSacrifice && kind.Of(b.Kind).Multiplies()
	return nil
}

func (b *Batch) KeyBlob() string { return seal.ObjectName("keys", b.ID) }

func (b *Batch) DataBlob() string { return seal.ObjectName("tuples", b.ID) }

// Free are the tuples that may be reserved.
func (b *Batch) Free() Spans {
	if b.State != BatchAvailable {
		return nil
	}
	return b.Taken.Missing(b.Count)
}

// Class is the kind of a tuple and its tenant: tuples of one class are interchangeable.
type Class struct {
	Tenant      string      `json:"tenant"`
	Kind        string      `json:"kind"`
	Params      string      `json:"params"`
	Field       string      `json:"field"`
	Rows        uint32      `json:"rows,omitempty"`
	Inner       uint32      `json:"inner,omitempty"`
	Columns     uint32      `json:"columns,omitempty"`
	Convolution Convolution `json:"convolution,omitzero"`
	InputParty  uint32      `json:"input_party,omitempty"`
	NoSacrifice bool        `json:"no_sacrifice,omitempty"`
}

// Class of the batch's tuples.
func (b *Batch) Class() Class {
	return Class{b.Tenant, b.Kind, b.Params, b.Field, b.Rows, b.Inner, b.Columns, b.Convolution, b.InputParty, b.NoSacrifice}
}

// BatchWriter stores a new batch: write its share data, then Commit or Abort.
type BatchWriter struct {
	v      *Stock
	batch  Batch
	shares *segmentWriter
	mac    *seal.ObjectWriter // of the MAC key that is stored with it, or nil
	done   bool
}

// NewBatch begins to store a batch. An id is used once, ever.
func (v *Stock) NewBatch(b Batch) (*BatchWriter, error) {
	//lodge:check vault/batch/begun [tests=./services/store/vault]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] an existing batch is written
	//  again
	if _, err := v.Batch(b.ID); err == nil {
		return nil, fmt.Errorf("%w: batch %s", vaulterr.ErrExists, b.ID)
	}
	if b.Count == 0 || b.TupleBytes == 0 {
		return nil, fmt.Errorf("%w: batch %s has no tuples", vaulterr.ErrState, b.ID)
	}
	if err := b.CheckKind(); err != nil {
		return nil, err
	}
	b.State, b.Created = BatchLocked, v.Clock().UTC()
	b.Reason, b.Taken, b.Gone, b.Wiped, b.Lost = "", nil, nil, nil, 0
	shares, err := v.CreateSegments(&b)
	if err != nil {
		return nil, err
	}
	return &BatchWriter{v: v, batch: b, shares: shares}, nil
}

// Write appends share data, tuple by tuple.
func (w *BatchWriter) Write(p []byte) (int, error) { return w.shares.Write(p) }

// Commit makes the batch durable, locked, together with the MAC key that was
// made for it, if any; otherwise its MAC key must be active. Masks have none.
// After an error nothing is stored.
func (w *BatchWriter) Commit(fresh *keys.NewMACKey) error {
	defer w.Abort() // does nothing after success
	v := w.v
	//lodge:check vault/masks/fresh-mac-key [tests=./services/store/vault] [run=TestMasksOfAQuorum]
	//  a MAC key is stored under a threshold key
	if fresh != nil && w.batch.Masks() {
		return fmt.Errorf("%w: masks have no MAC key", vaulterr.ErrRange)
	}
	release, err := v.Claim(BatchPrefix + w.batch.ID)
	if err != nil {
		return err
	}
	defer release()
	//lodge:check vault/batch/exists [tests=./services/store/vault]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] one identifier names two
	//  batches
	if _, err := v.Batch(w.batch.ID); err == nil {
		return fmt.Errorf("%w: batch %s", vaulterr.ErrExists, w.batch.ID)
	}
	if fresh != nil {
		//lodge:check vault/batch/fresh-mac-key [tests=./services/store/vault]
		//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a
		//  fresh MAC key that is not for it
		if !w.batch.fitsKey(&fresh.MACKey) {
			return fmt.Errorf("%w: MAC key %s is not for batch %s", vaulterr.ErrState, fresh.ID, w.batch.ID)
		}
		release, err := v.Claim(keys.MACPrefix + fresh.ID)
		if err != nil {
			return err
		}
		defer release()
		if w.mac, err = v.keys.WriteMAC(fresh); err != nil {
			return err
		}
	}
	if err := v.EraseObjects([]string{w.batch.KeyBlob(), w.batch.DataBlob()}); err != nil { // of an attempt in doubt
		return err
	}
	if err := w.shares.commit(); err != nil {
		return err
	}
	err = v.Update(func(tx store.Tx) error {
		//lodge:check vault/batch/quarantine [tests=./services/store/vault] [run=TestQuarantine] a
		//  store that may be an old copy stores batches
		if err := v.Trusted(tx); err != nil {
			return err
		}
		e, err := seal.Get[keys.Epoch](v.Store, tx, keys.EpochKey(w.batch.Epoch))
		//lodge:check vault/drain/batch [tests=./services/store/vault] [drop=e.State !=
		//  keys.EpochActive] [run=TestDrainEpoch] a batch is stored under an epoch that drains
		if err != nil || e.State != keys.EpochActive {
			return fmt.Errorf("%w: epoch %d is not active", vaulterr.ErrState, w.batch.Epoch)
		}
		//lodge:check vault/roster/batch [tests=./services/store/vault] [run=TestStanding] a batch
		//  is stored under keys of another roster
		if err := v.keys.Works(e); err != nil {
			return err
		}
		if err := w.batch.FitsUnder(e); err != nil {
			return err
		}
		if w.batch.Masks() {
			return v.putMasks(tx, e, &w.batch)
		}
		if fresh != nil {
			k := fresh.MACKey
			k.State, k.Created, k.Reason = keys.MACLocked, v.Clock().UTC(), ""
			if err := seal.Put(v.Store, tx, keys.MACPrefix+k.ID, &k); err != nil {
				return err
			}
		} else if err := v.usable(tx, &w.batch); err != nil {
			return err
		}
		return seal.Put(v.Store, tx, BatchPrefix+w.batch.ID, &w.batch)
	})
	w.done = err == nil || errors.Is(err, store.ErrUncertain) // if it is not recorded, the next start erases it
	return err
}

// fitsKey reports whether the batch may lie under a MAC key.
func (b *Batch) fitsKey(k *keys.MACKey) bool {
	//lodge:check vault/batch/mac-key/id [tests=./services/store/vault] [drop=k.ID == b.MACKey]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a MAC
	//  key with another identifier
	//lodge:check vault/batch/mac-key/epoch [tests=./services/store/vault] [drop=k.Epoch == b.Epoch]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a MAC
	//  key of another epoch
	//lodge:check vault/batch/mac-key/field [tests=./services/store/vault] [drop=k.Field == b.Field]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a MAC
	//  key of another field
	//lodge:check vault/batch/mac-key/tenant [tests=./services/store/vault] [drop=k.Tenant ==
	//  b.Tenant] [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored
	//  under a MAC key of another tenant
	return k.ID == b.MACKey && k.Epoch == b.Epoch && k.Field == b.Field && k.Tenant == b.Tenant
}

// usable says whether a batch may come to lie under its MAC key.
func (v *Stock) usable(tx store.Tx, b *Batch) error {
	k, err := v.keys.MACKeyIn(tx, b.MACKey)
	switch {
	case err != nil:
		return err
	//lodge:check vault/batch/usable [tests=./services/store/vault]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel|TestBurn] a batch is stored
	//  under a burnt MAC key
	case k.State != keys.MACActive:
		return fmt.Errorf("%w: MAC key %s is %s", vaulterr.ErrState, b.MACKey, k.State)
	//lodge:check vault/batch/fits [tests=./services/store/vault]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under
	//  another batch's MAC key
	case !b.fitsKey(k):
		return fmt.Errorf("%w: MAC key %s belongs to another epoch, field or tenant", vaulterr.ErrState, b.MACKey)
	}
	return nil
}

// Abort erases the written data; after a Commit that succeeded it does nothing.
func (w *BatchWriter) Abort() {
	if w.done {
		return
	}
	w.shares.abort()
	if w.mac != nil {
		w.mac.Abort()
	}
}

// BatchIn is the record of a batch within a transaction.
func (v *Stock) BatchIn(tx store.Tx, id string) (*Batch, error) {
	return seal.Named[Batch](v.Store, tx, BatchPrefix+id, "batch", id)
}

// Batch gives the record of a batch.
func (v *Stock) Batch(id string) (Batch, error) {
	return seal.Read(v.Store, func(tx store.Tx) (*Batch, error) { return v.BatchIn(tx, id) })
}

// Batches lists all batches by id, tombstones included.
func (v *Stock) Batches() ([]Batch, error) { return seal.Records[Batch](v.Store, BatchPrefix) }

// BatchesAfter calls f with all batches after an id, in order, until it says no.
func (v *Stock) BatchesAfter(after string, f func(*Batch) bool) error {
	return seal.Each(v.Store, BatchPrefix, after, f)
}

// ActivateBatch makes a locked batch available, and its MAC key active with it; a batch that was
// activated before does not change.
func (v *Stock) ActivateBatch(id string) error {
	return v.Advance(func(tx store.Tx) error {
		b, err := v.BatchIn(tx, id)
		switch {
		case err != nil:
			return err
		case b.State == BatchRevoked:
			//lodge:check vault/batch/activate-revoked [tests=./services/store/vault]
			//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a revoked batch
			//  becomes available
			return fmt.Errorf("%w: batch %s", vaulterr.ErrErased, id)
		case b.State != BatchLocked:
			return nil
		}
		if err := v.Trusted(tx); err != nil {
			return err
		}
		if !b.Masks() {
			if err := v.activateMACKey(tx, b.MACKey); err != nil {
				return err
			}
		}
		b.State = BatchAvailable
		return seal.Put(v.Store, tx, BatchPrefix+id, b)
	})
}

// activateMACKey makes the key of a batch active with it.
func (v *Stock) activateMACKey(tx store.Tx, id string) error {
	k, err := v.keys.MACKeyIn(tx, id)
	if err != nil || k.State != keys.MACLocked {
		return err
	}
	k.State = keys.MACActive
	return seal.Put(v.Store, tx, keys.MACPrefix+k.ID, k)
}

// RevokeBatch erases a batch, and the MAC key that was made for it unless that key became active.
func (v *Stock) RevokeBatch(id, reason string) error {
	var objects []string
	err := v.Advance(func(tx store.Tx) error {
		objects = nil
		b, err := v.BatchIn(tx, id)
		if err != nil {
			return err
		}
		if objects, _, err = v.Revoke(tx, func(b *Batch) bool { return b.ID == id }, reason); err != nil {
			return err
		}
		more, err := v.keys.Burn(tx, func(k *keys.MACKey) bool { return k.ID == b.MACKey && k.State == keys.MACLocked }, reason)
		objects = append(objects, more...)
		return err
	})
	return v.EraseAfter(err, objects)
}

// Revoke marks the selected batches as revoked, and returns their blobs.
func (v *Stock) Revoke(tx store.Tx, which func(*Batch) bool, reason string) (objects []string, batches int, err error) {
	all, err := seal.List[Batch](v.Store, tx, BatchPrefix)
	if err != nil {
		return nil, 0, err
	}
	for _, b := range all {
		if !which(b) || !b.Revoke(reason) {
			continue
		}
		if err := seal.Put(v.Store, tx, BatchPrefix+b.ID, b); err != nil {
			return nil, 0, err
		}
		//lodge:check vault/masks/names [tests=./services/store/vault] [swap=dropMasks(tx,
		//  b)=>error(nil)] [run=TestMasksCrash|TestCheckOfMasks|TestFreeMasks] revoked masks stay
		//  in the index
		if err := dropMasks(tx, b); err != nil {
			return nil, 0, err
		}
		objects, batches = append(objects, b.KeyBlob(), b.DataBlob()), batches+1
	}
	return objects, batches, nil
}

// Revoke makes the record of a batch with data a tombstone. Tuples of a reservation count as lost
// when the reservation ends.
func (b *Batch) Revoke(reason string) bool {
	if b.State == BatchRevoked || b.State == BatchConsumed {
		return false
	}
	if b.State == BatchAvailable {
		b.Lost += b.Count - b.Taken.Count()
	}
	b.State, b.Reason = BatchRevoked, reason
	return true
}

func (b *Batch) Clone() *Batch {
	c := *b
	c.Quorum, c.Taken, c.Gone, c.Wiped = slices.Clone(b.Quorum), slices.Clone(b.Taken), slices.Clone(b.Gone), slices.Clone(b.Wiped)
	c.Verdict.Signatures = slices.Clone(b.Verdict.Signatures)
	for i, s := range c.Verdict.Signatures {
		c.Verdict.Signatures[i] = bytes.Clone(s)
	}
	return &c
}

// Stored reports whether the batch's shares are stored, except erased ones.
func (b *Batch) Stored() bool { return b.State == BatchLocked || b.State == BatchAvailable }
