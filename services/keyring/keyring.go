// Package keyring stores the keys of epochs in the vault and loads them for the protocols.
package keyring

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/vault"
)

// Keys are the keys of an active epoch at this party.
type Keys struct {
	Epoch      vault.Epoch
	Public     *keygen.PublicKeys
	PublicHash round.Digest
	Secret     ring.NTT // this party's share
}

// Ring loads keys and keeps the last ones in memory, and schemes by set and field.
type Ring struct {
	vault   *vault.Vault
	workers int

	mu      sync.Mutex
	last    *Keys
	schemes map[string]*gbfv.Scheme
}

// New makes a ring over a vault.
func New(v *vault.Vault, workers int) *Ring {
	return &Ring{vault: v, workers: workers, schemes: map[string]*gbfv.Scheme{}}
}

// Scheme gives the scheme of a set and a field, and refuses sets of too little statistical security; an empty field means any, for what does not depend on it.
func (r *Ring) Scheme(set, field string) (*gbfv.Scheme, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scheme(set, field)
}

func (r *Ring) scheme(set, field string) (*gbfv.Scheme, error) {
	s, err := params.Lookup(set)
	if err != nil {
		return nil, invalid(err)
	}
	if err := s.CheckStatSecurity(); err != nil {
		return nil, rpc.Errorf(rpc.PolicyRefused, "use another parameter set", "%v", err)
	}
	if field == "" {
		field = s.Fields[0].Name
	}
	f, err := s.Field(field)
	if err != nil {
		return nil, invalid(err)
	}
	name := set + "/" + field
	if r.schemes[name] == nil {
		if r.schemes[name], err = gbfv.New(s, f); err != nil {
			return nil, err
		}
	}
	return r.schemes[name], nil
}

func invalid(err error) error {
	return rpc.Errorf(rpc.Invalid, "`lodge params list` shows what there is", "%v", err)
}

// Workers is how many goroutines a computation may use.
func (r *Ring) Workers() int { return r.workers }

// maxFrame bounds a stored polynomial.
const maxFrame = round.MaxFrame

// Store begins to store the result of key generation; the caller commits.
func Store(v *vault.Vault, e vault.Epoch, s *gbfv.Scheme, result keygen.Result) (*vault.EpochWriter, error) {
	w, err := v.NewEpoch(e)
	if err != nil {
		return nil, err
	}
	if err := write(w, s, result); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

func write(w *vault.EpochWriter, s *gbfv.Scheme, result keygen.Result) error {
	secret := make([]byte, 0, 2*len(result.Secret))
	defer func() { clear(secret[:cap(secret)]) }()
	for _, c := range result.Secret {
		if c != int64(int16(c)) {
			return errors.New("keyring: a secret does not fit its encoding")
		}
		secret = binary.LittleEndian.AppendUint16(secret, uint16(int16(c)))
	}
	if _, err := w.Secret.Write(secret); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w.Public, 1<<20)
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(result.Keys.Dim))
	out.Write(n[:]) // a bufio.Writer keeps its first error for Flush
	for i := range keygen.EncodedFrames(s, result.Keys.Dim) {
		f := result.Keys.Frame(s, i)
		binary.LittleEndian.PutUint32(n[:], uint32(len(f)))
		out.Write(n[:])
		out.Write(f)
	}
	return out.Flush()
}

// Load gives the keys of an active epoch of this purpose.
func (r *Ring) Load(id uint64, purpose string) (*Keys, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.vault.Epoch(id)
	if err != nil {
		return nil, Refused(err, fmt.Sprintf("epoch %d", id))
	}
	if e.Purpose != purpose {
		return nil, rpc.Errorf(rpc.KeyPurpose, "generate keys for this purpose", "epoch %d was made for %s, not for %s", id, e.Purpose, purpose)
	}
	switch e.State {
	case vault.EpochRetired:
		r.last = nil
		return nil, rpc.Errorf(rpc.Burnt, "use another epoch", "epoch %d is retired", id)
	case vault.EpochLocked:
		return nil, rpc.Errorf(rpc.Conflict, "wait until the job that makes it is complete", "epoch %d is not active", id)
	}
	if r.last != nil && r.last.Epoch.ID == id {
		return r.last, nil
	}
	s, err := r.scheme(e.Params, "")
	if err != nil {
		return nil, err
	}
	k := &Keys{Epoch: e}
	if k.Public, err = r.loadPublic(id, s); err != nil {
		return nil, err
	}
	if k.Public.Digest(s, r.workers) != round.Digest(e.Digest) {
		return nil, fmt.Errorf("keyring: stored keys of epoch %d differ from their digest: %w", id, vault.ErrCorrupt)
	}
	k.PublicHash = k.Public.PublicHash(s)
	if k.Secret, err = r.loadSecret(id, s); err != nil {
		return nil, err
	}
	r.last = k
	return k, nil
}

func (r *Ring) loadPublic(id uint64, s *gbfv.Scheme) (*keygen.PublicKeys, error) {
	in, err := r.vault.OpenEpochPublic(id)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readPublic(in, s)
}

// readPublic reads the dimension of public keys and their frames, each after its length, to the end.
func readPublic(in io.Reader, s *gbfv.Scheme) (*keygen.PublicKeys, error) {
	buffered := bufio.NewReaderSize(in, 1<<20)
	var n [4]byte
	if _, err := io.ReadFull(buffered, n[:]); err != nil {
		return nil, err
	}
	dim := int(binary.LittleEndian.Uint32(n[:]))
	if dim < 1 || dim > s.N()/2 || dim&(dim-1) != 0 {
		return nil, vault.ErrCorrupt
	}
	var frame []byte
	return keygen.Decode(s, dim, func() ([]byte, error) {
		if _, err := io.ReadFull(buffered, n[:]); err != nil {
			return nil, err
		}
		size := binary.LittleEndian.Uint32(n[:])
		if size > maxFrame {
			return nil, vault.ErrCorrupt
		}
		if int(size) > cap(frame) {
			frame = make([]byte, size)
		}
		frame = frame[:size]
		_, err := io.ReadFull(buffered, frame)
		return frame, err
	})
}

func (r *Ring) loadSecret(id uint64, s *gbfv.Scheme) (ring.NTT, error) {
	in, err := r.vault.OpenEpochSecret(id)
	if err != nil {
		return ring.NTT{}, err
	}
	defer in.Close()
	return readSecret(in, s)
}

// readSecret reads the coefficients of a secret, two bytes each, to the end.
func readSecret(in io.Reader, s *gbfv.Scheme) (ring.NTT, error) {
	b := make([]byte, 2*s.N())
	secret := make([]int64, s.N())
	defer clear(b)
	defer clear(secret)
	if _, err := io.ReadFull(in, b); err != nil {
		return ring.NTT{}, err
	}
	if n, err := in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return ring.NTT{}, vault.ErrCorrupt
	}
	for i := range secret {
		secret[i] = int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	}
	return keygen.Lift(s, secret), nil
}

// Forget drops the keys of an epoch from memory.
func (r *Ring) Forget(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && r.last.Epoch.ID == id {
		r.last.Secret.Zero()
		r.last = nil
	}
}

// Refused turns a vault's refusal into an error for the caller.
func Refused(err error, what string) error {
	switch {
	case errors.Is(err, vault.ErrNotFound):
		return rpc.Errorf(rpc.NotFound, "", "no %s at this party", what)
	case errors.Is(err, vault.ErrExists):
		return rpc.Errorf(rpc.Conflict, "", "%s exists already", what)
	case errors.Is(err, vault.ErrErased):
		return rpc.Errorf(rpc.Burnt, "", "%s is erased", what)
	case errors.Is(err, vault.ErrDelivered):
		return rpc.Errorf(rpc.Delivered, "tuples go to one client, once", "%s went to another client", what)
	case errors.Is(err, vault.ErrSpent):
		return rpc.Errorf(rpc.Burnt, "generate new keys: `lodge jobs submit --kind keys`", "%s: %v", what, err)
	case errors.Is(err, vault.ErrState):
		return rpc.Errorf(rpc.Conflict, "", "%s is not in the state for this", what)
	}
	return err
}
