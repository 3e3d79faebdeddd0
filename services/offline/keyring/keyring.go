// Package keyring stores the keys of epochs in the vault and loads them for the protocols.
package keyring

import (
	"bufio"
	"bytes"
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
	"github.com/lodge-mpc/lodge/services/host/rpc"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Keys are the keys of an active epoch at this party. The caller must call Release.
type Keys struct {
	Epoch      vaultkeys.Epoch
	Public     *keygen.PublicKeys
	PublicHash round.Digest
	Secret     ring.NTT // this party's share

	ring *Ring
}

// Ring loads keys and shares them among their users. It keeps the most recently used keys in
// memory, and erases other keys after their last use. It keeps schemes by set and field.
type Ring struct {
	vault   Vault
	workers int
	passive bool // whether keys may be used that are not proved

	mu      sync.Mutex
	loaded  map[uint64]*loaded
	last    uint64 // the epoch that stays in memory
	schemes map[string]*gbfv.Scheme
}

// loaded is an epoch in memory, or on its way there.
type loaded struct {
	ready chan struct{} // closed when keys or err is set
	keys  *Keys
	err   error
	users int
}

// New makes a ring over a vault; passive says whether keys may be used whose generation was only
// passively secure.
func New(v Vault, workers int, passive bool) *Ring {
	return &Ring{vault: v, workers: workers, passive: passive, loaded: map[uint64]*loaded{}, schemes: map[string]*gbfv.Scheme{}}
}

// Scheme returns the scheme of a set and a field, or an error if the set has too little statistical
// security. Callers that do not depend on the field pass an empty one.
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
	//lodge:check keyring/statistical-security [tests=./services/party,./services/offline/keyring]
	//  [run=TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed]
	//  [redundant=tests of the registry demand this of every set] decryptions leave too little
	//  statistical security
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

// SetOf is the set that resolves instances under the keys of an epoch: where these were proved,
// with the bounds of their proofs.
func SetOf(e vaultkeys.Epoch, s *gbfv.Scheme) *params.Set {
	if e.KeygenSecurity == params.Proved {
		return s.Set.Proved()
	}
	return s.Set
}

func invalid(err error) error {
	return rpc.Errorf(rpc.Invalid, "`lodge params list` shows what there is", "%v", err)
}

// Workers is how many goroutines a computation may use.
func (r *Ring) Workers() int { return r.workers }

// maxFrame bounds a stored polynomial.
const maxFrame = round.MaxFrame

// Store begins to store the result of key generation; the caller commits.
func Store(v interface {
	NewEpoch(e vaultkeys.Epoch) (*vaultkeys.EpochWriter, error)
}, e vaultkeys.Epoch, s *gbfv.Scheme, result keygen.Result) (*vaultkeys.EpochWriter, error) {
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

func write(w *vaultkeys.EpochWriter, s *gbfv.Scheme, result keygen.Result) error {
	secret := make([]byte, 0, 2*len(result.Secret))
	defer func() { clear(secret[:cap(secret)]) }()
	for _, c := range result.Secret {
		//lodge:check keyring/secret [run=TestKeysThat] a secret coefficient is truncated when it is
		//  stored
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

// Epoch gives the record of an epoch of this purpose under which something new may be made.
func (r *Ring) Epoch(id uint64, purpose string) (vaultkeys.Epoch, error) {
	e, err := r.Held(id, purpose)
	//lodge:check keyring/draining [tests=./services/party,./services/offline/keyring]
	//  [run=TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed]
	//  new tuples are made under an epoch that drains
	if err == nil && e.State == vaultkeys.EpochDraining {
		next := "`lodge keys rotate` makes another epoch"
		if e.Successor != 0 {
			next = fmt.Sprintf("use epoch %d, which has taken its place", e.Successor)
		}
		why := ""
		if e.Reason != "" {
			why = " (" + e.Reason + ")"
		}
		return e, rpc.Errorf(rpc.Conflict, next, "epoch %d is draining%s: what was made under it may be used up, and nothing new is made", id, why)
	}
	return e, err
}

// Held returns the record of an epoch of this purpose whose keys may be used, at least for results
// that were made under it earlier.
func (r *Ring) Held(id uint64, purpose string) (vaultkeys.Epoch, error) {
	e, err := r.vault.Epoch(id)
	switch {
	case err != nil:
		return e, vaulterr.RPC(err, fmt.Sprintf("epoch %d", id))
	//lodge:check keyring/purpose [tests=./services/party,./services/offline/keyring]
	//  [run=TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed]
	//  keys serve a purpose they were not made for
	case e.Purpose != purpose:
		return e, rpc.Errorf(rpc.KeyPurpose, "generate keys for this purpose", "epoch %d was made for %s, not for %s", id, e.Purpose, purpose)
	//lodge:check keyring/retired [tests=./services/party,./services/offline/keyring]
	//  [run=TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed]
	//  a retired epoch is used
	case e.State == vaultkeys.EpochRetired:
		return e, rpc.Errorf(rpc.Burnt, "use another epoch", "epoch %d is retired", id)
	//lodge:check keyring/locked [run=TestKeysThat] an epoch is used before it is active at every
	//  party
	case e.State == vaultkeys.EpochLocked:
		return e, rpc.Errorf(rpc.Conflict, "wait until the job that makes it is complete", "epoch %d is not active", id)
	//lodge:check keyring/roster [tests=./services/party,./services/offline/keyring]
	//  [run=TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed]
	//  keys of another roster are used
	case r.vault.Standing(&e) != vaultkeys.SameRoster:
		return e, vaulterr.RPC(fmt.Errorf("%w: epoch %d", vaulterr.ErrRoster, id), "")
	//lodge:check keyring/passive [tests=./services/party,./services/offline/keyring]
	//  [run=TestDecryption|TestRefusals|TestPassive|TestRetir|TestRoster|TestKeys|TestDrain|TestMixed]
	//  unproved keys are used although the operator does not allow them
	case e.KeygenSecurity != params.Proved && !r.passive:
		return e, rpc.Errorf(rpc.PassiveKeygen, "`lodge keys rotate` makes an epoch of a set whose keys are proved; allow_passive_keygen: true accepts this, for development",
			"the keys of epoch %d are only passively secure, and this party does not allow that", id)
	}
	return e, nil
}

// Load gives the keys of an epoch that Held gives. Those who ask for the same epoch at once wait
// for one load; the caller must call Release.
func (r *Ring) Load(id uint64, purpose string) (*Keys, error) {
	e, err := r.Held(id, purpose)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	l, found := r.loaded[id]
	if !found {
		l = &loaded{ready: make(chan struct{})}
		r.loaded[id] = l
	}
	l.users++
	r.mu.Unlock()
	if !found {
		l.keys, l.err = r.load(e)
		close(l.ready)
	}
	<-l.ready
	if l.err != nil {
		r.release(id, l)
		return nil, l.err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.Held(id, purpose); err != nil { // it was retired meanwhile, and Forget may have come before us
		r.leave(id, l)
		return nil, err
	}
	if old := r.last; old != id && r.loaded[id] == l {
		r.last = id
		r.drop(old)
	}
	return l.keys, nil
}

// Release ends the use of keys that Load gave. The last user's erases them when another epoch has
// taken their place in memory, or when they were forgotten.
func (k *Keys) Release() {
	k.ring.mu.Lock()
	l := k.ring.loaded[k.Epoch.ID]
	k.ring.mu.Unlock()
	if l != nil && l.keys == k {
		k.ring.release(k.Epoch.ID, l)
	}
}

func (r *Ring) release(id uint64, l *loaded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(id, l)
}

// leave is release for a caller that holds the lock.
func (r *Ring) leave(id uint64, l *loaded) {
	l.users--
	if l.err != nil || id != r.last {
		r.drop(id)
	}
}

// drop erases an epoch's keys in memory unless somebody uses them. The caller holds the lock.
func (r *Ring) drop(id uint64) {
	l := r.loaded[id]
	if l == nil || l.users > 0 {
		return
	}
	if l.keys != nil {
		l.keys.Secret.Zero()
	}
	delete(r.loaded, id)
}

// Forget lets the last user of an epoch's keys erase them.
func (r *Ring) Forget(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == id {
		r.last = 0
	}
	r.drop(id)
}

func (r *Ring) load(e vaultkeys.Epoch) (*Keys, error) {
	s, err := r.Scheme(e.Params, "")
	if err != nil {
		return nil, err
	}
	k := &Keys{Epoch: e, ring: r}
	if k.Public, err = r.loadPublic(e.ID, s); err != nil {
		return nil, err
	}
	if k.Public.Digest(s, r.workers) != round.Digest(e.Digest) {
		return nil, fmt.Errorf("keyring: stored keys of epoch %d differ from their digest: %w", e.ID, vaulterr.ErrCorrupt)
	}
	k.PublicHash = k.Public.PublicHash(s)
	if k.Secret, err = r.loadSecret(e.ID, s); err != nil {
		return nil, err
	}
	return k, nil
}

// ProofKey gives the public key as PublicFrames does; nothing if the set is not known any more.
func (k *Keys) ProofKey() (seed, polynomial []byte) {
	s, err := k.ring.Scheme(k.Epoch.Params, "")
	if err != nil {
		return nil, nil
	}
	return k.Public.Frame(s, 0), k.Public.Frame(s, 1)
}

// MemoryBytes returns the memory that the keys of an epoch occupy.
func (r *Ring) MemoryBytes(e vaultkeys.Epoch) (uint64, error) {
	s, err := r.Scheme(e.Params, "")
	if err != nil {
		return 0, err
	}
	return uint64(keygen.EncodedFrames(s, int(e.Dim))) * uint64(s.N()) * uint64(len(s.Set.Q)) * 8, nil
}

// PublicKey reads an epoch's public key and its hash, without the keys that Load gives.
func (r *Ring) PublicKey(e vaultkeys.Epoch) (*gbfv.PublicKey, round.Digest, error) {
	s, err := r.Scheme(e.Params, "")
	if err != nil {
		return nil, round.Digest{}, err
	}
	seed, polynomial, err := r.PublicFrames(e.ID)
	if err != nil {
		return nil, round.Digest{}, err
	}
	return keygen.DecodePublic(s, seed, polynomial)
}

// PublicFrames reads the two frames of an epoch's public key: the seed of the reference string, and
// a polynomial.
func (r *Ring) PublicFrames(id uint64) (seed, polynomial []byte, err error) {
	in, err := r.vault.OpenEpochPublic(id)
	if err != nil {
		return nil, nil, vaulterr.RPC(err, fmt.Sprintf("epoch %d", id))
	}
	defer in.Close()
	frames, _, err := readFrames(in)
	if err != nil {
		return nil, nil, err
	}
	if seed, err = frames(); err != nil {
		return nil, nil, err
	}
	seed = bytes.Clone(seed)
	polynomial, err = frames()
	return seed, polynomial, err
}

func (r *Ring) loadPublic(id uint64, s *gbfv.Scheme) (*keygen.PublicKeys, error) {
	in, err := r.vault.OpenEpochPublic(id)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readPublic(in, s)
}

func readPublic(in io.Reader, s *gbfv.Scheme) (*keygen.PublicKeys, error) {
	frames, dim, err := readFrames(in)
	if err != nil {
		return nil, err
	}
	if dim < 1 || dim > s.N()/2 || dim&(dim-1) != 0 {
		return nil, vaulterr.ErrCorrupt
	}
	return keygen.Decode(s, dim, frames)
}

// readFrames reads what write wrote: the dimension, and frame after frame, each valid until the
// next.
func readFrames(in io.Reader) (next func() ([]byte, error), dim int, err error) {
	buffered := bufio.NewReaderSize(in, 1<<20)
	var n [4]byte
	if _, err := io.ReadFull(buffered, n[:]); err != nil {
		return nil, 0, err
	}
	dim = int(binary.LittleEndian.Uint32(n[:]))
	var frame []byte
	return func() ([]byte, error) {
		if _, err := io.ReadFull(buffered, n[:]); err != nil {
			return nil, err
		}
		size := binary.LittleEndian.Uint32(n[:])
		if size > maxFrame {
			return nil, vaulterr.ErrCorrupt
		}
		if int(size) > cap(frame) {
			frame = make([]byte, size)
		}
		frame = frame[:size]
		_, err := io.ReadFull(buffered, frame)
		return frame, err
	}, dim, nil
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
		return ring.NTT{}, vaulterr.ErrCorrupt
	}
	for i := range secret {
		secret[i] = int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
	}
	return keygen.Lift(s, secret), nil
}
