package keys

import (
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// MACState of a MAC key.
type MACState string

// The states of a MAC key, in order.
const (
	MACLocked  MACState = "locked"
	MACActive  MACState = "active"
	MACRetired MACState = "retired" // no new batch comes under it; tuples that were released under it stay valid
	MACBurnt   MACState = "burnt"   // it must not be trusted, or its epoch ended; erased with every batch under it
)

// MACKey is a key of a tenant in a field, of which this party holds a share.
type MACKey struct {
	ID      string    `json:"id"`
	State   MACState  `json:"state"`
	Epoch   uint64    `json:"epoch"`
	Params  string    `json:"params"`
	Field   string    `json:"field"`
	Tenant  string    `json:"tenant"`
	Digest  [32]byte  `json:"digest"` // of its public part
	Created time.Time `json:"created"`
	Reason  string    `json:"reason,omitempty"`
	// Checks names the sessions whose MAC check is under way: their check triples are consumed, and
	// no result is known.
	Checks []string `json:"checks,omitempty"`
	// Failed counts the checks that failed or did not end, and InARow those that failed since one
	// passed.
	Failed int `json:"failed,omitempty"`
	InARow int `json:"in_a_row,omitempty"`
	// Exposed is in records of protocol version 12 and before, whose check revealed the key when it
	// failed: sessions that had opened their part and had no verdict. Open burns such a key.
	Exposed []string `json:"exposed,omitempty"`
}

func (k *MACKey) Object() string { return seal.ObjectName("mac", k.ID) }

// NewMACKey is a MAC key that comes into being with the first batch under it.
type NewMACKey struct {
	MACKey
	Secret []byte // share and whatever is needed to use it; the caller wipes it
}

func (v *Keys) WriteMAC(fresh *NewMACKey) (*seal.ObjectWriter, error) {
	//lodge:check vault/mac-key/exists [tests=./services/store/vault]
	//  [run=TestBatch|TestTwo|TestBurn] one identifier names two MAC keys
	if _, err := v.MACKey(fresh.ID); err == nil {
		return nil, fmt.Errorf("%w: MAC key %s", vaulterr.ErrExists, fresh.ID)
	}
	if err := v.EraseObject(fresh.Object()); err != nil { // of an attempt in doubt
		return nil, err
	}
	data, err := v.CreateObject(fresh.Object())
	if err != nil {
		return nil, err
	}
	if _, err = data.Write(fresh.Secret); err == nil {
		err = data.Commit()
	}
	if err != nil {
		data.Abort()
		return nil, err
	}
	return data, nil
}

// MACKeyIn is the record of a MAC key within a transaction.
func (v *Keys) MACKeyIn(tx store.Tx, id string) (*MACKey, error) {
	return seal.Named[MACKey](v.Store, tx, MACPrefix+id, "MAC key", id)
}

// MACKey gives the record of a MAC key.
func (v *Keys) MACKey(id string) (MACKey, error) {
	return seal.Read(v.Store, func(tx store.Tx) (*MACKey, error) { return v.MACKeyIn(tx, id) })
}

// MACKeys lists all MAC keys by id, burnt ones included.
func (v *Keys) MACKeys() ([]MACKey, error) { return seal.Records[MACKey](v.Store, MACPrefix) }

// FindMACKey gives the active MAC key of an epoch, field and tenant, or ErrNotFound.
func (v *Keys) FindMACKey(epoch uint64, field, tenant string) (MACKey, error) {
	keys, err := v.MACKeys()
	if err != nil {
		return MACKey{}, err
	}
	for _, k := range keys {
		if k.State == MACActive && k.Epoch == epoch && k.Field == field && k.Tenant == tenant {
			return k, nil
		}
	}
	return MACKey{}, fmt.Errorf("%w: no active MAC key", vaulterr.ErrNotFound)
}

// Live returns an error unless tuples under the MAC key may be used.
func (k *MACKey) Live() error {
	switch k.State {
	case MACActive, MACRetired:
		return nil
	case MACBurnt:
		//lodge:check vault/mac-key/burnt [tests=./services/store/vault] [return=nil]
		//  [run=TestBurn|TestRetire|TestMACKeys] a burnt MAC key is used
		return fmt.Errorf("%w: MAC key %s is burnt", vaulterr.ErrErased, k.ID)
	}
	return fmt.Errorf("%w: MAC key %s is %s", vaulterr.ErrState, k.ID, k.State)
}

// OpenMACKey reads the secret of an active or retired MAC key; the caller wipes it.
func (v *Keys) OpenMACKey(id string) (io.ReadCloser, error) {
	k, err := v.MACKey(id)
	//lodge:check vault/mac-key/open [tests=./services/store/vault]
	//  [run=TestBurn|TestRetire|TestMACKeys] a burnt MAC key is read
	if err == nil {
		err = k.Live()
	}
	if err == nil {
		//lodge:check vault/roster/mac-key [tests=./services/store/vault] [run=TestStanding] a MAC
		//  key of other parties is read
		err = v.Backend.View(func(tx store.Tx) error { return v.Gives(tx, k.Epoch) })
	}
	if err != nil {
		return nil, err
	}
	return v.OpenObject(k.Object())
}

// BurnMACKey erases a MAC key that must not be trusted any more, and every batch under it, verified
// or not. It counts the batches that held data.
func (v *Keys) BurnMACKey(id, reason string) (batches int, err error) {
	var objects []string
	err = v.Advance(func(tx store.Tx) error {
		objects = nil
		if _, err := v.MACKeyIn(tx, id); err != nil {
			return err
		}
		//lodge:check vault/mac-key/burn [tests=./services/store/vault] [swap=k.ID == id=>false]
		//  [run=TestBurn] a MAC key survives its failed check
		burnt, err := v.Burn(tx, func(k *MACKey) bool { return k.ID == id }, reason)
		if err != nil {
			return err
		}
		//lodge:check vault/mac-key/burn-batches [tests=./services/store/vault] [swap=macKey ==
		//  id=>false] [run=TestBurn] batches under a burnt MAC key stay available
		revoked, n, err := v.Under.RevokeBatches(tx, func(_ uint64, macKey string) bool { return macKey == id }, reason)
		objects, batches = append(burnt, revoked...), n
		return err
	})
	return batches, v.EraseAfter(err, objects)
}

// Burn marks the selected MAC keys as burnt, and returns their objects.
func (v *Keys) Burn(tx store.Tx, which func(*MACKey) bool, reason string) (objects []string, err error) {
	keys, err := seal.List[MACKey](v.Store, tx, MACPrefix)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.State == MACBurnt || !which(k) {
			continue
		}
		k.State, k.Reason, k.Checks = MACBurnt, reason, nil
		if err := seal.Put(v.Store, tx, MACPrefix+k.ID, k); err != nil {
			return nil, err
		}
		objects = append(objects, k.Object())
	}
	return objects, nil
}
