package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/services/store"
)

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

	// Quorum and Form are of masks: the numbers of the members whom they were made by and for, and what they are.
	Quorum []uint32 `json:"quorum,omitempty"`
	Form   string   `json:"form,omitempty"`

	// Taken are the tuples that a reservation holds or held, and Gone those of them whose shares are not to be read
	// any more. Wiped are those of them that are erased. Lost counts those that were never delivered.
	Taken Spans  `json:"taken,omitempty"`
	Gone  Spans  `json:"gone,omitempty"`
	Wiped Spans  `json:"wiped,omitempty"`
	Lost  uint64 `json:"lost,omitempty"`
}

// Verdict is what all parties have signed at the end of the session: that they accept the batch's digest.
type Verdict struct {
	Version    uint32   `json:"version"` // of the protocol
	Round      uint32   `json:"round"`
	Transcript [32]byte `json:"transcript"`
	Signatures [][]byte `json:"signatures"` // in the order of the roster
}

// UnmarshalJSON takes products from before there was a sacrifice, whose records do not speak of one, for what they are.
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

// blobsPerBatch is how many blobs hold the shares of a batch.
const blobsPerBatch = 2

func (b *Batch) keyBlob() string  { return objectName("keys", b.ID) }
func (b *Batch) dataBlob() string { return objectName("tuples", b.ID) }

// Free are the tuples that may be reserved.
func (b *Batch) Free() Spans {
	if b.State != BatchAvailable {
		return nil
	}
	return b.Taken.Missing(b.Count)
}

// Class is what a tuple is and whose: tuples of one class are as good as each other.
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
	v      *Vault
	batch  Batch
	shares *segmentWriter
	mac    *writer // of the MAC key that is stored with it, or nil
	done   bool
}

// NewBatch begins to store a batch. An id is used once, ever.
func (v *Vault) NewBatch(b Batch) (*BatchWriter, error) {
	//lodge:check vault/batch/begun [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel]
	//  an existing batch is written again
	if _, err := v.Batch(b.ID); err == nil {
		return nil, fmt.Errorf("%w: batch %s", ErrExists, b.ID)
	}
	if b.Count == 0 || b.TupleBytes == 0 {
		return nil, fmt.Errorf("%w: batch %s has no tuples", ErrState, b.ID)
	}
	if err := b.checkKind(); err != nil {
		return nil, err
	}
	b.State, b.Created = BatchLocked, v.now().UTC()
	b.Reason, b.Taken, b.Gone, b.Wiped, b.Lost = "", nil, nil, nil, 0
	shares, err := v.createSegments(&b)
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
func (w *BatchWriter) Commit(fresh *NewMACKey) error {
	defer w.Abort() // does nothing after success
	v := w.v
	//lodge:check vault/masks/fresh-mac-key [run=TestMasksOfAQuorum] a MAC key is stored under a
	//  threshold key
	if fresh != nil && w.batch.masks() {
		return fmt.Errorf("%w: masks have no MAC key", ErrRange)
	}
	release, err := v.claim(batchPrefix + w.batch.ID)
	if err != nil {
		return err
	}
	defer release()
	//lodge:check vault/batch/exists [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel]
	//  one identifier names two batches
	if _, err := v.Batch(w.batch.ID); err == nil {
		return fmt.Errorf("%w: batch %s", ErrExists, w.batch.ID)
	}
	if fresh != nil {
		//lodge:check vault/batch/fresh-mac-key
		//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a
		//  fresh MAC key that is not for it
		if !fresh.fits(&w.batch) {
			return fmt.Errorf("%w: MAC key %s is not for batch %s", ErrState, fresh.ID, w.batch.ID)
		}
		release, err := v.claim(macPrefix + fresh.ID)
		if err != nil {
			return err
		}
		defer release()
		if w.mac, err = v.writeMAC(fresh); err != nil {
			return err
		}
	}
	if err := v.eraseAll([]string{w.batch.keyBlob(), w.batch.dataBlob()}); err != nil { // of an attempt in doubt
		return err
	}
	if err := w.shares.commit(); err != nil {
		return err
	}
	err = v.update(func(tx store.Tx) error {
		//lodge:check vault/batch/quarantine [run=TestQuarantine] a store that may be an old copy
		//  stores batches
		if err := v.trusted(tx); err != nil {
			return err
		}
		e, err := get[Epoch](v, tx, epochKey(w.batch.Epoch))
		//lodge:check vault/drain/batch [drop=e.State != EpochActive] [run=TestDrainEpoch] a batch
		//  is stored under an epoch that drains
		if err != nil || e.State != EpochActive {
			return fmt.Errorf("%w: epoch %d is not active", ErrState, w.batch.Epoch)
		}
		//lodge:check vault/roster/batch [run=TestStanding] a batch is stored under keys of another
		//  roster
		if err := v.works(e); err != nil {
			return err
		}
		if err := w.batch.fitsUnder(e); err != nil {
			return err
		}
		if w.batch.masks() {
			return v.putMasks(tx, e, &w.batch)
		}
		if fresh != nil {
			k := fresh.MACKey
			k.State, k.Created, k.Reason = MACLocked, v.now().UTC(), ""
			if err := put(v, tx, macPrefix+k.ID, &k); err != nil {
				return err
			}
		} else if err := v.usable(tx, &w.batch); err != nil {
			return err
		}
		return put(v, tx, batchPrefix+w.batch.ID, &w.batch)
	})
	w.done = err == nil || errors.Is(err, store.ErrUncertain) // if it is not recorded, the next start erases it
	return err
}

// fits reports whether a batch may lie under the key.
func (k *MACKey) fits(b *Batch) bool {
	//lodge:check vault/batch/mac-key/id [drop=k.ID == b.MACKey]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a MAC
	//  key with another identifier
	//lodge:check vault/batch/mac-key/epoch [drop=k.Epoch == b.Epoch]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a MAC
	//  key of another epoch
	//lodge:check vault/batch/mac-key/field [drop=k.Field == b.Field]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a MAC
	//  key of another field
	//lodge:check vault/batch/mac-key/tenant [drop=k.Tenant == b.Tenant]
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a batch is stored under a MAC
	//  key of another tenant
	return k.ID == b.MACKey && k.Epoch == b.Epoch && k.Field == b.Field && k.Tenant == b.Tenant
}

// usable says whether a batch may come to lie under its MAC key.
func (v *Vault) usable(tx store.Tx, b *Batch) error {
	k, err := v.macKey(tx, b.MACKey)
	switch {
	case err != nil:
		return err
	//lodge:check vault/batch/usable
	//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel|TestBurn] a batch is stored
	//  under a burnt MAC key
	case k.State != MACActive:
		return fmt.Errorf("%w: MAC key %s is %s", ErrState, b.MACKey, k.State)
	//lodge:check vault/batch/fits [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a
	//  batch is stored under another batch's MAC key
	case !k.fits(b):
		return fmt.Errorf("%w: MAC key %s belongs to another epoch, field or tenant", ErrState, b.MACKey)
	}
	return nil
}

// Abort erases what was written; after a Commit that succeeded it does nothing.
func (w *BatchWriter) Abort() {
	if w.done {
		return
	}
	w.shares.abort()
	if w.mac != nil {
		w.mac.abort()
	}
}

// batch is the record of a batch within a transaction.
func (v *Vault) batch(tx store.Tx, id string) (*Batch, error) {
	b, err := get[Batch](v, tx, batchPrefix+id)
	if err != nil {
		return nil, fmt.Errorf("%w: batch %s", err, id)
	}
	return b, nil
}

// Batch gives the record of a batch.
func (v *Vault) Batch(id string) (b Batch, err error) {
	err = v.store.View(func(tx store.Tx) error {
		r, err := v.batch(tx, id)
		if err == nil {
			b = *r
		}
		return err
	})
	return b, err
}

// Batches lists all batches by id, tombstones included.
func (v *Vault) Batches() ([]Batch, error) { return records[Batch](v, batchPrefix) }

// BatchesAfter calls f with all batches after an id, in order, until it says no.
func (v *Vault) BatchesAfter(after string, f func(*Batch) bool) error {
	return each(v, batchPrefix, after, f)
}

// ActivateBatch makes a locked batch available, and its MAC key active with it;
// one that was activated stays as it is.
func (v *Vault) ActivateBatch(id string) error {
	return v.advance(func(tx store.Tx) error {
		b, err := v.batch(tx, id)
		switch {
		case err != nil:
			return err
		case b.State == BatchRevoked:
			//lodge:check vault/batch/activate-revoked
			//  [run=TestBatch|TestTwoWriters|TestEpochs|TestRetire|TestModel] a revoked batch
			//  becomes available
			return fmt.Errorf("%w: batch %s", ErrErased, id)
		case b.State != BatchLocked:
			return nil
		}
		if err := v.trusted(tx); err != nil {
			return err
		}
		if !b.masks() {
			if err := v.activateMACKey(tx, b.MACKey); err != nil {
				return err
			}
		}
		b.State = BatchAvailable
		return put(v, tx, batchPrefix+id, b)
	})
}

// activateMACKey makes the key of a batch active with it.
func (v *Vault) activateMACKey(tx store.Tx, id string) error {
	k, err := v.macKey(tx, id)
	if err != nil || k.State != MACLocked {
		return err
	}
	k.State = MACActive
	return put(v, tx, macPrefix+k.ID, k)
}

// RevokeBatch erases a batch; a MAC key that was made for it and never became
// active goes with it.
func (v *Vault) RevokeBatch(id, reason string) error {
	var objects []string
	err := v.advance(func(tx store.Tx) error {
		objects = nil
		b, err := v.batch(tx, id)
		if err != nil {
			return err
		}
		if objects, err = v.revoke(tx, func(b *Batch) bool { return b.ID == id }, reason); err != nil {
			return err
		}
		more, err := v.burn(tx, func(k *MACKey) bool { return k.ID == b.MACKey && k.State == MACLocked }, reason)
		objects = append(objects, more...)
		return err
	})
	return v.eraseAfter(err, objects)
}

// revoke records as revoked the batches that which selects, and names their blobs.
func (v *Vault) revoke(tx store.Tx, which func(*Batch) bool, reason string) (objects []string, err error) {
	batches, err := list[Batch](v, tx, batchPrefix)
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		if !which(b) || !b.revoke(reason) {
			continue
		}
		if err := put(v, tx, batchPrefix+b.ID, b); err != nil {
			return nil, err
		}
		//lodge:check vault/masks/names [swap=dropMasks(tx, b)=>error(nil)]
		//  [run=TestMasksCrash|TestCheckOfMasks|TestFreeMasks] revoked masks stay in the index
		if err := dropMasks(tx, b); err != nil {
			return nil, err
		}
		objects = append(objects, b.keyBlob(), b.dataBlob())
	}
	return objects, nil
}

// revoke makes the record of a batch with data a tombstone. What a reservation holds of it is counted as lost when that
// ends.
func (b *Batch) revoke(reason string) bool {
	if b.State == BatchRevoked || b.State == BatchConsumed {
		return false
	}
	if b.State == BatchAvailable {
		b.Lost += b.Count - b.Taken.Count()
	}
	b.State, b.Reason = BatchRevoked, reason
	return true
}
