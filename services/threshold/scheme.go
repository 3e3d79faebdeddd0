package threshold

import (
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// scheme is what the service asks of the scheme that keys are of, which a set of parameters names.
type scheme interface {
	name() string
	hash() [32]byte

	// check refuses keys that there are none of, for so many holders and with these automorphisms.
	check(holders int, galois []uint32) error
	// keysMemory is what key generation holds, in bytes. It refuses what check does.
	keysMemory(spec *jobv1.SessionSpec, holders int) (uint64, error)
	startKeys(c keysConfig) (round.Transition[*made], error)
	// layout is that of public keys with so many automorphisms.
	layout(galois int) layout
	// receive begins with the header of public keys, which are to have these automorphisms.
	receive(header []byte, galois []uint32) (receiver, error)
	// parts are what a share of the secrets is made of, in the order in which they are stored.
	parts() []part
	// key is how many of the parts decrypt.
	key() int
	// own reports whether every party has keys of its own, and an epoch none.
	own() bool

	// params is how so many holders decrypt under masks of a form.
	params(quorum int, form jobv1.MaskForm) (decrypt.Params, error)
	// failure is the probability that a decryption with masks of the paper's form fails, under keys that so many parties made.
	failure(p decrypt.Params, makers, threshold int) float64
	// floods is how many ciphertexts a holder answers for with flooding, at most; 0 where there is none.
	floods(holders int, threshold uint32) uint64
	// ciphertexts checks what a header says of the ciphertexts that follow, which quorums of threshold + 1 decrypt.
	ciphertexts(h *thresholdv1.DecryptHeader, threshold uint32) (ciphertexts, error)
}

// keysConfig is what key generation is given.
type keysConfig struct {
	session round.Session
	spec    *jobv1.SessionSpec
	source  *sample.Source
	workers int
	members [][]byte // signing keys of the holders
}

// made are new keys, and this party's share.
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

// publicKeys are public keys as they are stored and sent.
type publicKeys struct {
	digest  [32]byte
	header  []byte
	digests [][32]byte                     // of the chunks
	append  func(dst []byte, i int) []byte // appends chunk i
	galois  []uint32
}

// receiver puts public keys together from their chunks.
type receiver interface {
	Put(i int, chunk []byte) error
	// finish gives the keys, of which all chunks have come, if they have the digest.
	finish(digest [32]byte) (*publicKeys, error)
}

// layout says how public keys are cut: all sizes are in bytes.
type layout struct {
	header, chunks int
	chunk          func(i int) int
}

// size of header and chunks.
func (l layout) size() uint64 {
	n := uint64(l.header)
	for i := range l.chunks {
		n += uint64(l.chunk(i))
	}
	return n
}

// part is one part of a share of the secrets: so many residues modulo q.
type part struct {
	q uint64
	n int
}

// ciphertexts are those of a request: what is opened of each is a message, of which decrypt.Ciphertexts has the phases.
type ciphertexts interface {
	decrypt.Ciphertexts
	// size of an encoded ciphertext, in bytes.
	size() int
	// each is how many messages a ciphertext has.
	each() int
	// memory is what each ciphertext takes here beside its encoding, in bytes, messages aside.
	memory() uint64
	// decode takes the next ciphertext. The error says why it is none.
	decode(encoded []byte) error
	// prepare is called when all have come.
	prepare() error
	// release is called when nothing is asked of them any more.
	release()
}

// Schemes by the names of their sets. Of multi-key ciphertexts there is that of the pinned context.
func (s *Service) newScheme(name string) (scheme, error) {
	if _, err := mk.Lookup(name); err == nil {
		switch c := s.Keys.Context; {
		case c == nil:
			return nil, multikey.NotConfigured()
		case c.Name != name:
			return nil, rpc.Errorf(rpc.Foreign, "make a group for the set that the roster pins", "a group for %s; the roster pins multi-key ciphertexts of %s", name, c.Name)
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
		return nil, rpc.Errorf(rpc.Invalid, "`lodge params list` shows the sets for threshold keys", "%v", err)
	}
	return lwe.New(set)
}

// sharing is a field and a number of holders.
type sharing struct {
	q       uint64
	holders int
}

// shamirOf gives the sharing of a field among holders. Whether the modulus is prime takes longer to find out than a message to
// decrypt.
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

// schemeOf gives the scheme of a set.
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
