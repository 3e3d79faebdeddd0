package vault

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// MACState of a MAC key.
type MACState string

// The states of a MAC key, in order.
const (
	MACLocked MACState = "locked"
	MACActive MACState = "active"
	MACBurnt  MACState = "burnt" // its check failed or its epoch ended; erased
)

// MACKey is a key of a tenant in a field, of which this party holds a share.
type MACKey struct {
	ID      string    `json:"id"`
	State   MACState  `json:"state"`
	Epoch   uint64    `json:"epoch"`
	Field   string    `json:"field"`
	Tenant  string    `json:"tenant"`
	Digest  [32]byte  `json:"digest"` // of its public part
	Created time.Time `json:"created"`
	Reason  string    `json:"reason,omitempty"`
	// Exposed names the sessions that have opened what tells the key to a cheating peer, and have no verdict yet.
	Exposed []string `json:"exposed,omitempty"`
}

func (k *MACKey) object() string { return objectName("mac", k.ID) }

// BatchState of a batch of tuples.
type BatchState string

// The states of a batch, in order.
const (
	BatchLocked    BatchState = "locked"    // stored, not yet active everywhere
	BatchAvailable BatchState = "available" // may go to one client
	BatchConsumed  BatchState = "consumed"  // went to Client; kept for it to ask again
	BatchRevoked   BatchState = "revoked"   // erased; this record is the tombstone
)

// Batch is a set of tuples, of which this party holds shares.
type Batch struct {
	ID         string     `json:"id"`
	State      BatchState `json:"state"`
	Epoch      uint64     `json:"epoch"`
	MACKey     string     `json:"mac_key"`
	Params     string     `json:"params"`
	Field      string     `json:"field"`
	Kind       string     `json:"kind"` // "scalar", "matrix" and so on
	Dim        uint32     `json:"dim"`
	Rows       uint32     `json:"rows,omitempty"`
	Inner      uint32     `json:"inner,omitempty"`
	Columns    uint32     `json:"columns,omitempty"`
	InputParty uint32     `json:"input_party,omitempty"` // whom the values of input masks are known to
	Count      uint64     `json:"count"`
	Tenant     string     `json:"tenant"`
	Digest     [32]byte   `json:"digest"` // public, the same at every party
	SessionID  [32]byte   `json:"session_id"`
	ShareBytes uint64     `json:"share_bytes"` // filled in by Commit
	Created    time.Time  `json:"created"`
	Client     string     `json:"client,omitempty"` // whom it went to
	Delivered  time.Time  `json:"delivered,omitzero"`
	Reason     string     `json:"reason,omitempty"`
}

func (b *Batch) object() string { return objectName("batch", b.ID) }

// BatchWriter stores a new batch: write its share data, then Commit or Abort.
type BatchWriter struct {
	v     *Vault
	batch Batch
	data  *writer
	mac   *writer // of the MAC key that is stored with it, or nil
	done  bool
}

// NewBatch begins to store a batch. An id is used once, ever.
func (v *Vault) NewBatch(b Batch) (*BatchWriter, error) {
	if _, err := v.Batch(b.ID); err == nil {
		return nil, fmt.Errorf("%w: batch %s", ErrExists, b.ID)
	}
	b.State, b.Created = BatchLocked, v.now().UTC()
	b.Client, b.Delivered, b.Reason = "", time.Time{}, ""
	data, err := v.create(b.object())
	if err != nil {
		return nil, err
	}
	return &BatchWriter{v: v, batch: b, data: data}, nil
}

// Write appends share data.
func (w *BatchWriter) Write(p []byte) (int, error) { return w.data.Write(p) }

// NewMACKey is a MAC key that comes into being with the first batch under it.
type NewMACKey struct {
	MACKey
	Secret []byte // share and whatever is needed to use it; the caller wipes it
}

// Commit makes the batch durable, locked, together with the MAC key that was
// made for it, if any; otherwise its MAC key must be active.
// After an error nothing is stored.
func (w *BatchWriter) Commit(fresh *NewMACKey) error {
	defer w.Abort() // does nothing after success
	v := w.v
	release, err := v.claim(batchPrefix + w.batch.ID)
	if err != nil {
		return err
	}
	defer release()
	if _, err := v.Batch(w.batch.ID); err == nil {
		return fmt.Errorf("%w: batch %s", ErrExists, w.batch.ID)
	}
	if fresh != nil {
		release, err := v.claim(macPrefix + fresh.ID)
		if err != nil {
			return err
		}
		defer release()
		if w.mac, err = v.writeMAC(fresh); err != nil {
			return err
		}
	}
	if err := w.data.commit(); err != nil {
		return err
	}
	w.batch.ShareBytes = w.data.size
	err = v.store.Update(func(tx Tx) error {
		if e, err := get[Epoch](v, tx, epochKey(w.batch.Epoch)); err != nil || e.State != EpochActive {
			return fmt.Errorf("%w: epoch %d is not active", ErrState, w.batch.Epoch)
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
	w.done = err == nil
	return err
}

// usable says whether a batch may come to lie under its MAC key.
func (v *Vault) usable(tx Tx, b *Batch) error {
	k, err := get[MACKey](v, tx, macPrefix+b.MACKey)
	switch {
	case err != nil:
		return fmt.Errorf("%w: MAC key %s", err, b.MACKey)
	case k.State != MACActive:
		return fmt.Errorf("%w: MAC key %s is %s", ErrState, b.MACKey, k.State)
	case k.Epoch != b.Epoch || k.Field != b.Field || k.Tenant != b.Tenant:
		return fmt.Errorf("%w: MAC key %s belongs to another epoch, field or tenant", ErrState, b.MACKey)
	}
	return nil
}

func (v *Vault) writeMAC(fresh *NewMACKey) (*writer, error) {
	if _, err := v.MACKey(fresh.ID); err == nil {
		return nil, fmt.Errorf("%w: MAC key %s", ErrExists, fresh.ID)
	}
	data, err := v.create(fresh.object())
	if err != nil {
		return nil, err
	}
	if _, err = data.Write(fresh.Secret); err == nil {
		err = data.commit()
	}
	if err != nil {
		data.abort()
		return nil, err
	}
	return data, nil
}

// Abort erases what was written; after a Commit that succeeded it does nothing.
func (w *BatchWriter) Abort() {
	if w.done {
		return
	}
	w.data.abort()
	if w.mac != nil {
		w.mac.abort()
	}
}

// Batch gives the record of a batch.
func (v *Vault) Batch(id string) (b Batch, err error) {
	err = v.store.View(func(tx Tx) error {
		r, err := get[Batch](v, tx, batchPrefix+id)
		if err != nil {
			return fmt.Errorf("%w: batch %s", err, id)
		}
		b = *r
		return nil
	})
	return b, err
}

// Batches lists all batches by id, tombstones included.
func (v *Vault) Batches() ([]Batch, error) { return records[Batch](v, batchPrefix) }

// ActivateBatch makes a locked batch available, and its MAC key active with it;
// one that was activated stays as it is.
func (v *Vault) ActivateBatch(id string) error {
	return v.store.Update(func(tx Tx) error {
		b, err := get[Batch](v, tx, batchPrefix+id)
		switch {
		case err != nil:
			return fmt.Errorf("%w: batch %s", err, id)
		case b.State == BatchRevoked:
			return fmt.Errorf("%w: batch %s", ErrErased, id)
		case b.State != BatchLocked:
			return nil
		}
		k, err := get[MACKey](v, tx, macPrefix+b.MACKey)
		if err != nil {
			return fmt.Errorf("%w: MAC key %s", err, b.MACKey)
		}
		if k.State == MACLocked {
			k.State = MACActive
			if err := put(v, tx, macPrefix+k.ID, k); err != nil {
				return err
			}
		}
		b.State = BatchAvailable
		return put(v, tx, batchPrefix+id, b)
	})
}

// Deliver gives a batch to a client. That it went to this client is durable
// before Deliver returns; the same client gets the same bytes again, any other
// ErrDelivered. first says whether this was the first time.
func (v *Vault) Deliver(id, client string) (b Batch, data io.ReadCloser, first bool, err error) {
	if client == "" {
		return b, nil, false, fmt.Errorf("%w: no client", ErrState)
	}
	err = v.store.Update(func(tx Tx) error {
		first = false
		r, err := get[Batch](v, tx, batchPrefix+id)
		if err != nil {
			return fmt.Errorf("%w: batch %s", err, id)
		}
		switch {
		case r.State == BatchRevoked:
			return fmt.Errorf("%w: batch %s", ErrErased, id)
		case r.State == BatchLocked:
			return fmt.Errorf("%w: batch %s is locked", ErrState, id)
		case r.State == BatchConsumed && r.Client != client:
			return fmt.Errorf("%w: batch %s", ErrDelivered, id)
		case r.State == BatchAvailable:
			first = true
			r.State, r.Client, r.Delivered = BatchConsumed, client, v.now().UTC()
			if err := put(v, tx, batchPrefix+id, r); err != nil {
				return err
			}
		}
		b = *r
		return nil
	})
	if err != nil {
		return b, nil, false, err
	}
	data, err = v.open(b.object())
	return b, data, first, err
}

// RevokeBatch erases a batch; a MAC key that was made for it and never became
// active goes with it.
func (v *Vault) RevokeBatch(id, reason string) error {
	var objects []string
	err := v.store.Update(func(tx Tx) error {
		objects = nil
		b, err := get[Batch](v, tx, batchPrefix+id)
		if err != nil {
			return fmt.Errorf("%w: batch %s", err, id)
		}
		if objects, err = v.revoke(tx, func(b *Batch) bool { return b.ID == id }, reason); err != nil {
			return err
		}
		more, err := v.burn(tx, func(k *MACKey) bool { return k.ID == b.MACKey && k.State == MACLocked }, reason)
		objects = append(objects, more...)
		return err
	})
	if err != nil {
		return err
	}
	return v.eraseAll(objects)
}

// MACKey gives the record of a MAC key.
func (v *Vault) MACKey(id string) (k MACKey, err error) {
	err = v.store.View(func(tx Tx) error {
		r, err := get[MACKey](v, tx, macPrefix+id)
		if err != nil {
			return fmt.Errorf("%w: MAC key %s", err, id)
		}
		k = *r
		return nil
	})
	return k, err
}

// MACKeys lists all MAC keys by id, burnt ones included.
func (v *Vault) MACKeys() ([]MACKey, error) { return records[MACKey](v, macPrefix) }

// FindMACKey gives the active MAC key of an epoch, field and tenant, or ErrNotFound.
func (v *Vault) FindMACKey(epoch uint64, field, tenant string) (MACKey, error) {
	keys, err := v.MACKeys()
	if err != nil {
		return MACKey{}, err
	}
	for _, k := range keys {
		if k.State == MACActive && k.Epoch == epoch && k.Field == field && k.Tenant == tenant {
			return k, nil
		}
	}
	return MACKey{}, fmt.Errorf("%w: no active MAC key", ErrNotFound)
}

// OpenMACKey reads what was stored with an active MAC key; the caller wipes it.
func (v *Vault) OpenMACKey(id string) (io.ReadCloser, error) {
	k, err := v.MACKey(id)
	switch {
	case err != nil:
		return nil, err
	case k.State == MACBurnt:
		return nil, fmt.Errorf("%w: MAC key %s is burnt", ErrErased, id)
	case k.State != MACActive:
		return nil, fmt.Errorf("%w: MAC key %s is %s", ErrState, id, k.State)
	}
	return v.open(k.object())
}

// ExposeMACKey records that a session is about to open its part of a MAC check. If the session ends without a verdict,
// the key must be burnt; if this process ends first, Open burns it.
func (v *Vault) ExposeMACKey(id, session string) error {
	return v.changeMACKey(id, func(k *MACKey) { k.Exposed = append(k.Exposed, session) })
}

// SettleMACKey records that the check of a session has passed.
func (v *Vault) SettleMACKey(id, session string) error {
	return v.changeMACKey(id, func(k *MACKey) {
		k.Exposed = slices.DeleteFunc(k.Exposed, func(s string) bool { return s == session })
	})
}

// changeMACKey changes the record of an active MAC key.
func (v *Vault) changeMACKey(id string, change func(k *MACKey)) error {
	return v.store.Update(func(tx Tx) error {
		k, err := get[MACKey](v, tx, macPrefix+id)
		switch {
		case err != nil:
			return fmt.Errorf("%w: MAC key %s", err, id)
		case k.State != MACActive:
			return fmt.Errorf("%w: MAC key %s is %s", ErrState, id, k.State)
		}
		change(k)
		return put(v, tx, macPrefix+id, k)
	})
}

// burnExposed burns the MAC keys whose checks were under way when the process ended. Their data is left to the sweep.
func (v *Vault) burnExposed() error {
	return v.store.Update(func(tx Tx) error {
		exposed := map[string]bool{}
		_, err := v.burn(tx, func(k *MACKey) bool {
			exposed[k.ID] = len(k.Exposed) > 0
			return exposed[k.ID]
		}, "the process ended during a MAC check")
		if err == nil {
			_, err = v.revoke(tx, func(b *Batch) bool { return exposed[b.MACKey] }, "its MAC key is burnt")
		}
		return err
	})
}

// BurnMACKey erases a MAC key whose check has failed, and every batch under it,
// verified or not.
func (v *Vault) BurnMACKey(id, reason string) error {
	var objects []string
	err := v.store.Update(func(tx Tx) error {
		objects = nil
		if _, err := get[MACKey](v, tx, macPrefix+id); err != nil {
			return fmt.Errorf("%w: MAC key %s", err, id)
		}
		burnt, err := v.burn(tx, func(k *MACKey) bool { return k.ID == id }, reason)
		if err != nil {
			return err
		}
		revoked, err := v.revoke(tx, func(b *Batch) bool { return b.MACKey == id }, reason)
		objects = append(burnt, revoked...)
		return err
	})
	if err != nil {
		return err
	}
	return v.eraseAll(objects)
}

// burn records as burnt the MAC keys that which selects, and names their objects.
func (v *Vault) burn(tx Tx, which func(*MACKey) bool, reason string) (objects []string, err error) {
	keys, err := list[MACKey](v, tx, macPrefix)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.State == MACBurnt || !which(k) {
			continue
		}
		k.State, k.Reason = MACBurnt, reason
		if err := put(v, tx, macPrefix+k.ID, k); err != nil {
			return nil, err
		}
		objects = append(objects, k.object())
	}
	return objects, nil
}

// revoke records as revoked the batches that which selects, and names their objects.
func (v *Vault) revoke(tx Tx, which func(*Batch) bool, reason string) (objects []string, err error) {
	batches, err := list[Batch](v, tx, batchPrefix)
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		if b.State == BatchRevoked || !which(b) {
			continue
		}
		b.State, b.Reason = BatchRevoked, reason
		if err := put(v, tx, batchPrefix+b.ID, b); err != nil {
			return nil, err
		}
		objects = append(objects, b.object())
	}
	return objects, nil
}
