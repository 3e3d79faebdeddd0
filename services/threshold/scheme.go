package threshold

import (
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/lwe"
	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
)

// scheme is the interface of the schemes of keys. A parameter set determines the scheme.
type scheme interface {
	name() string
	hash() [32]byte

	// check returns an error unless the scheme supports keys for this number of holders with these
	// automorphisms.
	check(holders int, galois []uint32) error
	// keysMemory returns the memory of key generation in bytes. It returns the errors of check.
	keysMemory(spec *jobv1.SessionSpec, holders int) (uint64, error)
	startKeys(c keysConfig) (round.Transition[*made], error)
	// layout returns the layout of public keys with the given number of automorphisms.
	layout(galois int) layout
	// receive starts to receive public keys, given their header. The keys must have these
	// automorphisms.
	receive(header []byte, galois []uint32) (receiver, error)
	// parts returns the parts of a share of the secrets, in the order in which they are stored.
	parts() []part
	// own reports whether every party has its own keys, so that epochs have no keys.
	own() bool

	// params returns the parameters of decryption by a quorum under masks of a form.
	params(quorum int, form jobv1.MaskForm) (decrypt.Params, error)
	// failure returns the probability that a decryption with masks of the paper's form fails, under
	// keys made by the given number of parties.
	failure(p decrypt.Params, makers, threshold int) float64
	// floods returns the maximum number of ciphertexts for which a holder answers with flooding; 0
	// if flooding is not supported.
	floods(holders int, threshold uint32) uint64
	// ciphertexts validates the header's description of the ciphertexts, which quorums of threshold
	// + 1 decrypt.
	ciphertexts(h *thresholdv1.DecryptHeader, threshold uint32) (ciphertexts, error)
}

// keysConfig is the input of key generation.
type keysConfig struct {
	session round.Session
	spec    *jobv1.SessionSpec
	source  *sample.Source
	workers int
	members [][]byte // signing keys of the holders
}

// made holds new keys, and this party's share.
type made struct {
	share  []secret.Box[share.Vec] // by part
	public *publicKeys
}

// Wipe erases the share.
func (m *made) Wipe() {
	for i := range m.share {
		m.share[i].Wipe()
	}
}

// publicKeys holds public keys in the form in which they are stored and sent.
type publicKeys struct {
	keyset.Head
	digest [32]byte
	append func(dst []byte, i int) []byte // appends chunk i
	galois []uint32
}

// receiver assembles public keys from their chunks.
type receiver interface {
	Put(i int, chunk []byte) error
	// finish returns the keys after all chunks were received, if they have the digest.
	finish(digest [32]byte) (*publicKeys, error)
}

// layout describes the chunks of public keys; all sizes are in bytes.
type layout struct {
	header, chunks int
	chunk          func(i int) int
}

// size returns the size of header and chunks.
func (l layout) size() uint64 {
	n := uint64(l.header)
	for i := range l.chunks {
		n += uint64(l.chunk(i))
	}
	return n
}

// part is one part of a share of the secrets: n residues modulo q.
type part struct {
	q uint64
	n int
}

// ciphertexts holds the ciphertexts of a request. Each opened value is a message;
// decrypt.Ciphertexts returns the phases.
type ciphertexts interface {
	decrypt.Ciphertexts
	// size returns the size of an encoded ciphertext in bytes.
	size() int
	// each returns the number of messages of a ciphertext.
	each() int
	// memory returns the memory of a ciphertext in bytes, in addition to its encoding and without
	// its messages.
	memory() uint64
	// decode decodes the next ciphertext, or returns why it is invalid.
	decode(encoded []byte) error
	// prepare is called when all ciphertexts were decoded.
	prepare() error
	// release is called when the ciphertexts are no longer used.
	release()
}

// newScheme returns the scheme of a set. For multi-key ciphertexts only the set of the pinned
// context is supported.
func (s *Service) newScheme(name string) (scheme, error) {
	if _, err := mk.Lookup(name); err == nil {
		switch c := s.Keys.Context; {
		case c == nil:
			return nil, multikey.NotConfigured()
		case c.Name != name:
			return nil, rpc.Errorf(rpc.Foreign, "make a group for the set that the roster pins", "a group for %s, but the roster pins multi-key ciphertexts of %s", name, c.Name)
		default:
			return &multikeyScheme{c}, nil
		}
	}
	if set, err := bgv.Lookup(name); err == nil {
		made, err := bgv.New(set)
		if err != nil {
			return nil, err
		}
		return &bgvScheme{made}, nil
	}
	made, err := newLWE(name)
	if err != nil {
		return nil, err
	}
	return &lweScheme{made}, nil
}

func newLWE(name string) (*lwe.Scheme, error) {
	set, err := lwe.Lookup(name)
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "`lodge params list` lists the sets for threshold keys", "%v", err)
	}
	return lwe.New(set)
}

// sharing is a field and a number of holders.
type sharing struct {
	q       uint64
	holders int
}

// shamirOf returns the cached sharing of a field among holders: checking that the modulus is prime
// takes longer than decrypting a message.
func (s *Service) shamirOf(q uint64, holders int) (*share.Shamir, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.shamirs[sharing{q, holders}]; known != nil {
		return known, nil
	}
	made, err := share.New(q, holders)
	if err != nil {
		return nil, err
	}
	s.shamirs[sharing{q, holders}] = made
	return made, nil
}

// schemeOf returns the cached scheme of a set.
func (s *Service) schemeOf(name string) (scheme, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.schemes[name]; known != nil {
		return known, nil
	}
	made, err := s.newScheme(name)
	if err != nil {
		return nil, err
	}
	s.schemes[name] = made
	return made, nil
}
