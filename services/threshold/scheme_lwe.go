package threshold

import (
	"context"
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/lwekeys"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// lweScheme is the scheme of package lwe.
type lweScheme struct{ *lwe.Scheme }

func (s *lweScheme) name() string   { return s.Name }
func (s *lweScheme) hash() [32]byte { return s.Hash() }

func (s *lweScheme) check(_ int, galois []uint32) error {
	if len(galois) > 0 {
		return rpc.Errorf(rpc.Invalid, "omit the rotations, or use another set", "keys of %s do not support automorphisms", s.Name)
	}
	return nil
}

func (s *lweScheme) keysMemory(spec *jobv1.SessionSpec, holders int) (uint64, error) {
	if err := s.check(holders, spec.GetGalois()); err != nil {
		return 0, err
	}
	bytes, err := lwekeys.MemoryBytes(s.Scheme, holders, int(spec.GetThreshold()))
	return uint64(bytes), err
}

func (s *lweScheme) startKeys(c keysConfig) (round.Transition[*made], error) {
	t, err := lwekeys.Start(lwekeys.Config{
		Session: c.session, Scheme: s.Scheme, Threshold: int(c.spec.GetThreshold()), Source: c.source, Workers: c.workers,
	})
	if err != nil {
		return round.Transition[*made]{}, err
	}
	return round.Then(t, func(_ context.Context, r lwekeys.Result) (round.Transition[*made], error) {
		return round.Done(&made{[]secret.Box[share.Vec]{r.Z, r.S}, lwePublic(r.Keys)}), nil
	}), nil
}

func lwePublic(k *lwe.Keys) *publicKeys {
	return &publicKeys{keyset.Head{Header: k.Header(), Digests: k.ChunkDigests()}, k.Digest(), k.AppendChunk, nil}
}

func (s *lweScheme) layout(int) layout { return layout{lwe.HeaderSize, s.Chunks(), s.ChunkSize} }

// lweReceiver receives keys of package lwe.
type lweReceiver struct{ *lwe.Receiver }

func (s *lweScheme) receive(header []byte, _ []uint32) (receiver, error) {
	in, err := s.Receive(header)
	return lweReceiver{in}, err
}

func (r lweReceiver) finish(digest [32]byte) (*publicKeys, error) {
	keys, err := r.Finish(digest)
	if err != nil {
		return nil, err
	}
	return lwePublic(keys), nil
}

// parts returns the shares of z, under which messages are encrypted, and of s.
func (s *lweScheme) parts() []part { return []part{{s.Q, s.N()}, {s.Q, s.Dim}} }
func (s *lweScheme) own() bool     { return false }

func (s *lweScheme) params(quorum int, form jobv1.MaskForm) (decrypt.Params, error) {
	p, err := decrypt.ParamsOf(s.Scheme, quorum-1, form == jobv1.MaskForm_MASK_FORM_PAPER)
	if err != nil {
		return p, rpc.Errorf(rpc.Invalid, "use another parameter set, or a smaller threshold", "%v", err)
	}
	return p, nil
}

func (s *lweScheme) failure(p decrypt.Params, makers, threshold int) float64 {
	return decrypt.FailureProbability(p.Kind, p.Modulus, p.Parties, s.NoiseOf(makers, threshold).Bootstrapped())
}

func (s *lweScheme) floods(int, uint32) uint64 { return 0 }

// lweCiphertexts holds LWE ciphertexts of one message each, or ring ciphertexts of which the first
// coefficients are opened.
type lweCiphertexts struct {
	s            *lwe.Scheme
	coefficients int        // of each ring ciphertext; 0 for LWE ciphertexts
	count        int        // expected number of ciphertexts
	lwe          []lwe.LWE  // the LWE ciphertexts, or these:
	wheels       [][]uint64 // the vectors of a ring ciphertext's messages (lwe.Scheme.Unroll)
	bs           [][]uint64 // and their other parts
	scratch      *lwe.Ring  // for decoding a ring ciphertext
	words        []uint64   // for the next LWE ciphertexts
	slabs        []*slab    // the slab of words, and earlier slabs
}

// slab is memory for LWE ciphertexts that requests reuse: clearing and collecting it would take
// longer than decoding.
type slab [1 << 17]uint64

var slabs = sync.Pool{New: func() any { return new(slab) }}

// next returns memory for an LWE ciphertext, with arbitrary content.
func (c *lweCiphertexts) next() []uint64 {
	n := c.s.N()
	if len(c.words) < n {
		if c.count*n <= len(slab{})/2 {
			c.words = make([]uint64, c.count*n)
		} else {
			s, _ := slabs.Get().(*slab)
			c.slabs, c.words = append(c.slabs, s), s[:]
		}
	}
	words := c.words[:n:n]
	c.words = c.words[n:]
	return words
}

// release returns the memory of LWE ciphertexts.
func (c *lweCiphertexts) release() {
	for _, s := range c.slabs {
		slabs.Put(s)
	}
	c.lwe, c.words, c.slabs = nil, nil, nil
}

func (s *lweScheme) ciphertexts(h *thresholdv1.DecryptHeader, _ uint32) (ciphertexts, error) {
	n := uint32(s.N())
	ring := h.GetForm() == thresholdv1.CiphertextForm_CIPHERTEXT_FORM_RING
	switch {
	//lodge:check threshold/request/form [run=TestMalformedRequests] ciphertexts of an unknown form
	//  are accepted
	case !ring && h.GetForm() != thresholdv1.CiphertextForm_CIPHERTEXT_FORM_LWE:
		return nil, rpc.Errorf(rpc.Invalid, fmt.Sprintf("keys of %s decrypt LWE or ring ciphertexts: give the form", s.Name), "ciphertexts of form %s", h.GetForm())
	case ring != (h.GetCoefficients() > 0) || h.GetCoefficients() > n:
		return nil, rpc.Errorf(rpc.Invalid, "", "%d coefficients of each; 1 to %d are supported for ring ciphertexts, none for others", h.GetCoefficients(), n)
	case h.GetLevel() != 0 || h.GetFlooding():
		return nil, rpc.Errorf(rpc.Invalid, "", "LWE and ring ciphertexts have no levels, and are decrypted without flooding")
	}
	return &lweCiphertexts{s: s.Scheme, count: int(h.GetCount()), coefficients: int(h.GetCoefficients())}, nil
}

func (c *lweCiphertexts) size() int {
	if c.coefficients > 0 {
		return c.s.RingSize()
	}
	return c.s.LWESize()
}

func (c *lweCiphertexts) each() int { return max(1, c.coefficients) }

func (c *lweCiphertexts) memory() uint64 {
	words := uint64(8 * c.s.N())
	if c.coefficients > 0 {
		words *= 3
	}
	return words
}

func (c *lweCiphertexts) decode(encoded []byte) error {
	if c.coefficients == 0 {
		x := lwe.LWE{A: c.next()}
		if err := c.s.DecodeLWE(&x, encoded); err != nil {
			return err
		}
		c.lwe = append(c.lwe, x)
		return nil
	}
	if c.scratch == nil {
		c.scratch = c.s.NewRing()
	}
	if err := c.s.DecodeRing(c.scratch, encoded); err != nil {
		return err
	}
	wheel := make([]uint64, 2*c.s.N())
	c.s.Unroll(wheel, c.scratch)
	c.wheels, c.bs = append(c.wheels, wheel), append(c.bs, append([]uint64(nil), c.scratch.B[:c.coefficients]...))
	return nil
}

func (c *lweCiphertexts) prepare() error { return nil }

func (c *lweCiphertexts) Len() int { return len(c.lwe) + len(c.wheels)*c.coefficients }

func (c *lweCiphertexts) At(i int) (a []uint64, b uint64) {
	if c.coefficients == 0 {
		return c.lwe[i].A, c.lwe[i].B
	}
	n, k := c.s.N(), i%c.coefficients
	return c.wheels[i/c.coefficients][n-1-k : 2*n-1-k], c.bs[i/c.coefficients][k]
}
