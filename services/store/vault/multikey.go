package vault

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A party's own multi-key keys are made without anybody else, and are numbered by the party. The secret and the public
// part are objects, the rest is a record that stays for ever, so that a number is used once.

const multikeyPrefix = "multikey/"

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
	// Salt binds the keys' public seed to the party's signing key; keys made by older versions have none.
	Salt       []byte    `json:"salt,omitempty"`
	Params     string    `json:"params"`
	ParamsHash [32]byte  `json:"params_hash"`
	CRS        [32]byte  `json:"crs"`
	Key        [32]byte  `json:"key"`  // their name
	Size       uint64    `json:"size"` // of the public part, header and chunks
	Created    time.Time `json:"created"`
	// Client and Request name who asked for the keys, and in which request: the same again makes no others.
	Client  string `json:"client"`
	Request []byte `json:"request"`
	// Record and Revocation are what the party has signed of the keys, for others.
	Record     []byte    `json:"record"`
	Revocation []byte    `json:"revocation,omitempty"`
	Retired    time.Time `json:"retired,omitzero"`
	Reason     string    `json:"reason,omitempty"` // of retirement
}

func multikeyKey(version uint64) string { return fmt.Sprintf("%s%020d", multikeyPrefix, version) }
func (k *MultikeyKey) secretObject() string {
	return objectName("multikey-secret", fmt.Sprint(k.Version))
}

func (k *MultikeyKey) publicObject() string {
	return objectName("multikey-public", fmt.Sprint(k.Version))
}

// MultikeyWriter stores new keys: write both parts, then Commit or Abort.
type MultikeyWriter struct {
	Secret, Public io.Writer
	v              *Vault
	key            MultikeyKey
	parts          [2]*writer
	release        func()
	done           bool
}

// NewMultikey begins to store keys under the next version, which Version tells, and which is later than one that others know of.
// Nobody else gets one before Commit or Abort.
func (v *Vault) NewMultikey(known uint64) (*MultikeyWriter, error) {
	release, err := v.claim(multikeyPrefix)
	if err != nil {
		return nil, err
	}
	w, err := v.newMultikey(release, known)
	if err != nil {
		release()
	}
	return w, err
}

func (v *Vault) newMultikey(release func(), known uint64) (*MultikeyWriter, error) {
	if err := v.store.View(v.trusted); err != nil {
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
	if err := v.eraseAll([]string{k.secretObject(), k.publicObject()}); err != nil { // of an attempt in doubt
		return nil, err
	}
	secret, err := v.create(k.secretObject())
	if err != nil {
		return nil, err
	}
	public, err := v.create(k.publicObject())
	if err != nil {
		secret.abort()
		return nil, err
	}
	return &MultikeyWriter{Secret: secret, Public: public, v: v, key: k, parts: [2]*writer{secret, public}, release: release}, nil
}

// Version is that of the keys.
func (w *MultikeyWriter) Version() uint64 { return w.key.Version }

// Commit makes the keys durable and active, under the writer's version. After an error nothing is stored.
func (w *MultikeyWriter) Commit(k MultikeyKey) error {
	defer w.Abort() // erases nothing after success
	k.Version, k.State, k.Retired, k.Reason, k.Revocation = w.key.Version, MultikeyActive, time.Time{}, "", nil
	for _, p := range w.parts {
		if err := p.commit(); err != nil {
			return err
		}
	}
	err := w.v.advance(func(tx store.Tx) error {
		if err := w.v.trusted(tx); err != nil {
			return err
		}
		return put(w.v, tx, multikeyKey(k.Version), &k)
	})
	w.done = err == nil || errors.Is(err, store.ErrUncertain) // if it is not recorded, the next start erases it
	return err
}

// Abort erases what was written, unless it was committed.
func (w *MultikeyWriter) Abort() {
	if !w.done {
		for _, p := range w.parts {
			p.abort()
		}
	}
	w.done = true
	w.release()
	w.release = func() {}
}

// MultikeyKeys lists this party's own keys by version, retired ones included.
func (v *Vault) MultikeyKeys() ([]MultikeyKey, error) {
	return records[MultikeyKey](v, multikeyPrefix)
}

// MultikeyKey gives the record of a version.
func (v *Vault) MultikeyKey(version uint64) (k MultikeyKey, err error) {
	err = v.store.View(func(tx store.Tx) error {
		r, err := get[MultikeyKey](v, tx, multikeyKey(version))
		if err != nil {
			return fmt.Errorf("%w: version %d of the multi-key keys", err, version)
		}
		k = *r
		return nil
	})
	return k, err
}

// OpenMultikeySecret reads the secret of a version that is active; the caller wipes it.
func (v *Vault) OpenMultikeySecret(version uint64) (io.ReadCloser, error) {
	if err := v.store.View(v.trusted); err != nil {
		return nil, err
	}
	return v.openMultikey(version, (*MultikeyKey).secretObject)
}

// OpenMultikeyPublic reads the public part of a version that is active.
func (v *Vault) OpenMultikeyPublic(version uint64) (io.ReadCloser, error) {
	return v.openMultikey(version, (*MultikeyKey).publicObject)
}

func (v *Vault) openMultikey(version uint64, object func(*MultikeyKey) string) (io.ReadCloser, error) {
	k, err := v.MultikeyKey(version)
	if err != nil {
		return nil, err
	}
	if k.State == MultikeyRetired {
		return nil, fmt.Errorf("%w: version %d of the multi-key keys is retired", vaulterr.ErrErased, version)
	}
	return v.open(object(&k))
}

// RetireMultikey erases the keys of a version, for good, and keeps what the party has signed of that. Keys that are retired
// stay as they are.
func (v *Vault) RetireMultikey(version uint64, reason string, revocation []byte) error {
	var objects []string
	err := v.advance(func(tx store.Tx) error {
		k, err := get[MultikeyKey](v, tx, multikeyKey(version))
		if err != nil {
			return fmt.Errorf("%w: version %d of the multi-key keys", err, version)
		}
		objects = []string{k.secretObject(), k.publicObject()}
		if k.State == MultikeyRetired {
			return nil
		}
		k.State, k.Reason, k.Retired, k.Revocation = MultikeyRetired, reason, v.now().UTC(), revocation
		return put(v, tx, multikeyKey(version), k)
	})
	return v.eraseAfter(err, objects)
}
