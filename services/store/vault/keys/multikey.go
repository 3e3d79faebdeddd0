package keys

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A party's own multi-key keys are made without anybody else, and are numbered by the party. The
// secret and the public part are objects, the rest is a record that stays for ever, so that a
// number is used once.

const MultikeyPrefix = "multikey/"

// MultikeyState of a party's own keys.
type MultikeyState string

// The states of multi-key keys, in order.
const (
	MultikeyActive  MultikeyState = "active"
	MultikeyRetired MultikeyState = "retired" // erased; the record is the tombstone
)

// MultikeyKey is a version of this party's own keys.
type MultikeyKey struct {
	Version uint64        `json:"version"` // 1, 2, ...
	State   MultikeyState `json:"state"`
	Owner   uint32        `json:"owner"` // as the header of the keys has it
	// Salt binds the keys' public seed to the party's signing key; keys made by older versions have
	// no salt.
	Salt       []byte    `json:"salt,omitempty"`
	Params     string    `json:"params"`
	ParamsHash [32]byte  `json:"params_hash"`
	CRS        [32]byte  `json:"crs"`
	Key        [32]byte  `json:"key"`  // their name
	Size       uint64    `json:"size"` // of the public part, header and chunks
	Created    time.Time `json:"created"`
	// Client and Request name who asked for the keys, and in which request: the same again makes no
	// others.
	Client  string `json:"client"`
	Request []byte `json:"request"`
	// Record and Revocation are the statements about the keys that the party has signed for others.
	Record     []byte    `json:"record"`
	Revocation []byte    `json:"revocation,omitempty"`
	Retired    time.Time `json:"retired,omitzero"`
	Reason     string    `json:"reason,omitempty"` // of retirement
}

func MultikeyVersionKey(version uint64) string {
	return fmt.Sprintf("%s%020d", MultikeyPrefix, version)
}

func (k *MultikeyKey) SecretObject() string {
	return seal.ObjectName("multikey-secret", fmt.Sprint(k.Version))
}

func (k *MultikeyKey) PublicObject() string {
	return seal.ObjectName("multikey-public", fmt.Sprint(k.Version))
}

// MultikeyWriter stores new keys: write both parts, then Commit or Abort.
type MultikeyWriter struct {
	Secret, Public io.Writer
	v              *Keys
	key            MultikeyKey
	parts          [2]*seal.ObjectWriter
	release        func()
	done           bool
}

// NewMultikey begins to store keys under the next version, which is later than all stored versions
// and than known, the latest version that others know. Nobody else gets one before Commit or Abort.
func (v *Keys) NewMultikey(known uint64) (*MultikeyWriter, error) {
	release, err := v.Claim(MultikeyPrefix)
	if err != nil {
		return nil, err
	}
	w, err := v.newMultikey(release, known)
	if err != nil {
		release()
	}
	return w, err
}

func (v *Keys) newMultikey(release func(), known uint64) (*MultikeyWriter, error) {
	if err := v.Backend.View(v.Trusted); err != nil {
		return nil, err
	}
	all, err := v.MultikeyKeys()
	if err != nil {
		return nil, err
	}
	k := MultikeyKey{Version: known + 1}
	if n := len(all); n > 0 {
		k.Version = max(k.Version, all[n-1].Version+1)
	}
	if err := v.EraseObjects([]string{k.SecretObject(), k.PublicObject()}); err != nil { // of an attempt in doubt
		return nil, err
	}
	secret, err := v.CreateObject(k.SecretObject())
	if err != nil {
		return nil, err
	}
	public, err := v.CreateObject(k.PublicObject())
	if err != nil {
		secret.Abort()
		return nil, err
	}
	return &MultikeyWriter{Secret: secret, Public: public, v: v, key: k, parts: [2]*seal.ObjectWriter{secret, public}, release: release}, nil
}

// Version is that of the keys.
func (w *MultikeyWriter) Version() uint64 { return w.key.Version }

// Commit makes the keys durable and active, under the writer's version. After an error nothing is
// stored.
func (w *MultikeyWriter) Commit(k MultikeyKey) error {
	defer w.Abort() // erases nothing after success
	k.Version, k.State, k.Retired, k.Reason, k.Revocation = w.key.Version, MultikeyActive, time.Time{}, "", nil
	for _, p := range w.parts {
		if err := p.Commit(); err != nil {
			return err
		}
	}
	err := w.v.Advance(func(tx store.Tx) error {
		if err := w.v.Trusted(tx); err != nil {
			return err
		}
		return seal.Put(w.v.Store, tx, MultikeyVersionKey(k.Version), &k)
	})
	w.done = err == nil || errors.Is(err, store.ErrUncertain) // if it is not recorded, the next start erases it
	return err
}

// Abort erases the written data, unless it was committed.
func (w *MultikeyWriter) Abort() {
	if !w.done {
		for _, p := range w.parts {
			p.Abort()
		}
	}
	w.done = true
	w.release()
	w.release = func() {}
}

// MultikeyKeys lists this party's own keys by version, retired ones included.
func (v *Keys) MultikeyKeys() ([]MultikeyKey, error) {
	return seal.Records[MultikeyKey](v.Store, MultikeyPrefix)
}

// MultikeyKey gives the record of a version.
func (v *Keys) MultikeyKey(version uint64) (k MultikeyKey, err error) {
	err = v.Backend.View(func(tx store.Tx) error {
		r, err := seal.Get[MultikeyKey](v.Store, tx, MultikeyVersionKey(version))
		if err != nil {
			return fmt.Errorf("%w: version %d of the multi-key keys", err, version)
		}
		k = *r
		return nil
	})
	return k, err
}

// OpenMultikeySecret reads the secret of a version that is active; the caller wipes it.
func (v *Keys) OpenMultikeySecret(version uint64) (io.ReadCloser, error) {
	if err := v.Backend.View(v.Trusted); err != nil {
		return nil, err
	}
	return v.openMultikey(version, (*MultikeyKey).SecretObject)
}

// OpenMultikeyPublic reads the public part of a version that is active.
func (v *Keys) OpenMultikeyPublic(version uint64) (io.ReadCloser, error) {
	return v.openMultikey(version, (*MultikeyKey).PublicObject)
}

func (v *Keys) openMultikey(version uint64, object func(*MultikeyKey) string) (io.ReadCloser, error) {
	k, err := v.MultikeyKey(version)
	if err != nil {
		return nil, err
	}
	if k.State == MultikeyRetired {
		return nil, fmt.Errorf("%w: version %d of the multi-key keys is retired", vaulterr.ErrErased, version)
	}
	return v.OpenObject(object(&k))
}

// RetireMultikey erases the keys of a version permanently and stores the signed revocation. It does
// nothing if the keys are already retired.
func (v *Keys) RetireMultikey(version uint64, reason string, revocation []byte) error {
	var objects []string
	err := v.Advance(func(tx store.Tx) error {
		k, err := seal.Get[MultikeyKey](v.Store, tx, MultikeyVersionKey(version))
		if err != nil {
			return fmt.Errorf("%w: version %d of the multi-key keys", err, version)
		}
		objects = []string{k.SecretObject(), k.PublicObject()}
		if k.State == MultikeyRetired {
			return nil
		}
		k.State, k.Reason, k.Retired, k.Revocation = MultikeyRetired, reason, v.Clock().UTC(), revocation
		return seal.Put(v.Store, tx, MultikeyVersionKey(version), k)
	})
	return v.EraseAfter(err, objects)
}
