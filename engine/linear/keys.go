package linear

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"sync/atomic"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// SecretKey is a secret s: ternary, or Gaussian where inputs are proved. Printing it reveals
// nothing.
type SecretKey struct {
	scheme *Scheme
	s      secret.Box[residues]
	digest [32]byte // of its public key

	// Where inputs are proved: the public key, its witness, and whether a proof was begun.
	public  *PublicKey
	witness secret.Box[*witness]
	proves  atomic.Bool
}

// residues allows a box to hold a polynomial.
type residues struct{ ring.NTT }

// Wipe zeroes the polynomial.
func (r residues) Wipe() { r.Zero() }

// Wipe erases the secret. A wiped key panics when it is used.
func (k *SecretKey) Wipe() {
	k.s.Wipe()
	if !k.witness.Empty() {
		k.witness.Wipe()
	}
}

// PublicKey holds samples (b, a) under s. Each a is derived from the seed:
//
//	the first     b = -a s + e
//	the others    b = -a s + e + g_i s^2
//
// one for each prime i, where g_i is 1 modulo this prime and 0 modulo the others. The other samples
// relinearise products of ciphertexts and are omitted if there are no such products. A PublicKey is
// immutable and may be shared.
type PublicKey struct {
	scheme *Scheme
	seed   [SeedSize]byte
	b      []ring.NTT
	a      []ring.NTT
	digest [32]byte
}

// Generate generates keys. products states whether they support products of ciphertexts, which keys
// of sets with proofs never do. The source must be used for these keys only.
func (s *Scheme) Generate(products bool, source *sample.Source) (*SecretKey, *PublicKey) {
	k, p := &SecretKey{scheme: s}, &PublicKey{scheme: s}
	seed := source.Stream("linear key seed")
	_, _ = seed.Read(p.seed[:])
	key := s.basis.NewNTT()
	k.s = secret.NewBox(residues{key})
	if s.HasProof() {
		s.generateProved(k, p, key, source)
		return k, p
	}
	s.ternary(key, source.Stream("linear secret"))
	samples := 1
	if products {
		samples += len(s.Q)
	}
	square := s.basis.BorrowNTT()
	s.basis.MulNTT(square, key, key)
	for i := range samples {
		b, product := s.basis.NewNTT(), s.basis.BorrowNTT()
		s.addErrors(ring.Poly(b), source.Stream("linear key error", uint64(i)))
		s.basis.Forward(b, ring.Poly(b))
		a := s.expand(&p.seed, "linear key", uint64(i))
		s.basis.MulNTT(product, a, key)
		s.basis.SubNTT(b, b, product)
		if i > 0 {
			one := s.basis.Range(i-1, i)
			one.AddNTT(ring.NTT{C: b.C[i-1 : i]}, ring.NTT{C: b.C[i-1 : i]}, ring.NTT{C: square.C[i-1 : i]})
		}
		wipe(ring.Poly(product))
		p.a, p.b = append(p.a, a), append(p.b, b)
	}
	wipe(ring.Poly(square))
	p.digest = sha256.Sum256(p.Encode())
	k.digest = p.digest
	return k, p
}

// generateProved generates keys for proved inputs, from Gaussian secrets, which it keeps. They do
// not support products of ciphertexts.
func (s *Scheme) generateProved(k *SecretKey, p *PublicKey, key ring.NTT, source *sample.Source) {
	w, v := &witness{intpoly.New(s.N(), 1), intpoly.New(s.N(), 1)}, make([]int64, s.N())
	k.witness = secret.NewBox(w)
	for i, label := range []string{"linear secret", "linear key error"} {
		stream := source.Stream(label)
		s.witnesses.Sample(v, stream)
		stream.Wipe()
		intpoly.FromInt64([]intpoly.Poly{w.s, w.e}[i], v)
	}
	clear(v)
	s.basis.FromSmall(ring.Poly(key), w.s)
	s.basis.Forward(key, ring.Poly(key))
	b, a := s.basis.NewNTT(), s.expand(&p.seed, "linear key", 0)
	s.image(b, a, key, w.e, false)
	p.a, p.b = []ring.NTT{a}, []ring.NTT{b}
	p.digest = sha256.Sum256(p.Encode())
	k.digest, k.public = p.digest, p
}

// expand returns the uniform polynomial of a public seed.
func (s *Scheme) expand(seed *[SeedSize]byte, label string, i uint64) ring.NTT {
	a := s.basis.BorrowNTT()
	sample.Expand(a.C, s.Q, seed[:], label, i)
	return a
}

// Digest returns the identity of the key including its set: SHA-256 of its encoding.
func (p *PublicKey) Digest() [32]byte { return p.digest }

// Products reports whether the key supports products of ciphertexts.
func (p *PublicKey) Products() bool { return len(p.b) > 1 }

// PublicKeySize returns the size in bytes of an encoded key.
func (s *Scheme) PublicKeySize(products bool) int {
	samples := 1
	if products {
		samples += len(s.Q)
	}
	return 2*SeedSize + samples*codec.PolySize(s.N(), s.Q)
}

// Encode returns the hash of the set, the seed, and b of each sample.
func (p *PublicKey) Encode() []byte {
	b := make([]byte, 0, p.scheme.PublicKeySize(p.Products()))
	b = append(append(b, p.scheme.hash[:]...), p.seed[:]...)
	for _, v := range p.b {
		b = codec.AppendPoly(b, v.C, p.scheme.Q)
	}
	return b
}

// DecodePublicKey returns the inverse of Encode. It accepts nothing else, and allocates nothing
// before it has checked the length. The error wraps [ErrKeys], or [ErrForeign] for a key of another
// set.
func (s *Scheme) DecodePublicKey(b []byte) (*PublicKey, error) {
	samples, size := 1, codec.PolySize(s.N(), s.Q)
	switch len(b) {
	case s.PublicKeySize(false):
	case s.PublicKeySize(true):
		//lodge:check linear/proof-samples key parts without a proof are accepted
		if s.HasProof() {
			return nil, fmt.Errorf("%w: proofs cover only the first sample", ErrKeys)
		}
		samples += len(s.Q)
	//lodge:check linear/public-length a key is decoded without a limit on its size
	default:
		return nil, fmt.Errorf("%w: a length of %d bytes is invalid", ErrKeys, len(b))
	}
	//lodge:check linear/public-set a public key of another parameter set is accepted
	if !bytes.Equal(b[:SeedSize], s.hash[:]) {
		return nil, fmt.Errorf("%w: the public key is not of set %s", ErrForeign, s.Name)
	}
	p := &PublicKey{scheme: s, digest: sha256.Sum256(b), seed: [SeedSize]byte(b[SeedSize:])}
	b = b[2*SeedSize:]
	for i := range samples {
		v := s.basis.NewNTT()
		//lodge:check linear/public-residue a public key has several encodings
		if err := codec.DecodePoly(v.C, s.Q, b[i*size:(i+1)*size]); err != nil {
			return nil, fmt.Errorf("%w: sample %d: %w", ErrKeys, i, err)
		}
		p.b = append(p.b, v)
		p.a = append(p.a, s.expand(&p.seed, "linear key", uint64(i)))
	}
	return p, nil
}
