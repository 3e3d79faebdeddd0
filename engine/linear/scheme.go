package linear

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// Errors that callers can cause. Every error of this package wraps one of them, or is a *keyset.UnknownError.
var (
	ErrShape      = errors.New("linear: wrong shape")
	ErrRange      = errors.New("linear: value out of range")
	ErrNoise      = errors.New("linear: no room for the noise")
	ErrKeys       = errors.New("linear: malformed keys")
	ErrForeign    = errors.New("linear: of another key or set")
	ErrCiphertext = errors.New("linear: malformed ciphertext")
	ErrAnswer     = errors.New("linear: malformed answer")
	ErrProof      = errors.New("linear: the proof does not hold")
)

// SeedSize is the size in bytes of a public seed.
const SeedSize = sample.SeedSize

// Scheme is a prepared set. It is immutable and may be shared.
type Scheme struct {
	*Set
	hash   [32]byte
	basis  *ring.Basis // of Q
	first  *ring.Basis // of q_0
	plain  *ring.Basis // of T
	lift   *ring.Extender
	lower  *ring.Extender   // from q_0 to T
	digits []*ring.Extender // from each prime to all
	divide *ring.Divider    // by Q/q_0
	gauss  *sample.Gaussian
	scale  []uint64 // 1/T modulo the primes
	times  []uint64 // T modulo the primes
	moved  uint64   // Q/q_0 modulo T

	// For sets with proofs: Gaussians of secrets and of masks, the norm of responses, and
	// floor(2^192/T).
	witnesses, masks *sample.Gaussian
	norm             *sigma.Norm
	inverse          [3]uint64
}

// New prepares a set.
func New(set *Set) (*Scheme, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	s := &Scheme{Set: set, hash: set.Hash()}
	var err error
	if s.basis, err = ring.NewBasis(set.LogN, set.Q); err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	if s.plain, err = ring.NewBasis(set.LogN, []uint64{set.T}); err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	if s.gauss, err = sample.NewGaussian(set.ErrorWidth); err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	s.first = s.basis.Prefix(1)
	s.lift, s.lower = ring.NewExtender(s.plain, s.basis), ring.NewExtender(s.first, s.plain)
	rest := s.basis.Range(1, len(set.Q))
	s.divide = ring.NewDivider(s.first, rest)
	t := new(big.Int).SetUint64(set.T)
	for i, q := range set.Q {
		p := new(big.Int).SetUint64(q)
		s.scale = append(s.scale, new(big.Int).ModInverse(t, p).Uint64())
		s.times = append(s.times, new(big.Int).Mod(t, p).Uint64())
		s.digits = append(s.digits, ring.NewExtender(s.basis.Range(i, i+1), s.basis))
	}
	s.moved = new(big.Int).Mod(rest.Modulus(), t).Uint64()
	if set.Proof != nil {
		err = s.prepareProof(t)
	}
	return s, err
}

// prepareProof prepares the tables for proofs.
func (s *Scheme) prepareProof(t *big.Int) (err error) {
	p, all := s.Proof, new(big.Int).Lsh(big.NewInt(1), 192)
	all.Quo(all, t)
	low := new(big.Int).SetUint64(math.MaxUint64)
	for i := range s.inverse {
		s.inverse[i] = new(big.Int).And(all, low).Uint64()
		all.Rsh(all, 64)
	}
	if s.witnesses, err = sample.NewGaussian(p.SecretWidth); err != nil {
		return fmt.Errorf("linear: %w", err)
	}
	if s.masks, err = sample.NewGaussian(p.MaskWidth); err != nil {
		return fmt.Errorf("linear: %w", err)
	}
	if s.norm, err = sigma.NewNorm(s.N(), proofBits, p.Bound); err != nil {
		return fmt.Errorf("linear: %w", err)
	}
	return nil
}

// Find prepares the set with the given name. The error may be a *keyset.UnknownError.
func Find(name string) (*Scheme, error) {
	set, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	return New(set)
}

// plaintext returns the arithmetic modulo T.
func (s *Set) plaintext() *kernel.Modulus {
	m, err := kernel.NewModulus(s.T)
	if err != nil {
		panic(err) // T is an odd prime
	}
	return &m
}

// centred sets dst to the residues modulo Q of coefficients modulo T, each in (-T/2, T/2).
func (s *Scheme) centred(dst ring.Poly, m []uint64) { s.lift.Extend(dst, ring.Poly{C: [][]uint64{m}}) }

// halved returns half of a residue modulo T if answers are doubled, and the residue itself
// otherwise.
func (s *Set) halved(x uint64) uint64 {
	if s.HasProof() {
		//lodge:check linear/proof-half [swap=(x + s.T&-(x&1))=>x] results are not halved although
		//  answers are doubled
		return (x + s.T&-(x&1)) / 2
	}
	return x
}

// multiplier sets dst to centred coefficients, in the form of a factor of ciphertexts. It may
// overwrite the coefficients.
func (s *Scheme) multiplier(dst ring.NTT, m []uint64) {
	for i, x := range m {
		m[i] = s.halved(x)
	}
	s.centred(ring.Poly(dst), m)
	s.basis.Forward(dst, ring.Poly(dst))
}

// scalar returns a centred number modulo the primes, in the form of a factor of ciphertexts.
func (s *Scheme) scalar(v uint64) []uint64 {
	v = s.halved(v)
	c := make([]uint64, len(s.Q))
	for i, q := range s.Q {
		c[i] = v % q
		if v > s.T/2 {
			c[i] = q - (s.T-v)%q
		}
	}
	return c
}

// message sets dst to m/T, the encoding of messages in ciphertexts.
func (s *Scheme) message(dst ring.Poly, m []uint64) {
	s.centred(dst, m)
	s.basis.MulScalar(dst, dst, s.scale)
}

// addErrors adds an error to dst.
func (s *Scheme) addErrors(dst ring.Poly, stream *sample.Stream) {
	defer stream.Wipe()
	s.addSmall(dst, s.gauss.Sample, stream)
}

// addSmall adds the output of a sampler, in [-2^31, 2^31].
func (s *Scheme) addSmall(dst ring.Poly, sampler func([]int64, *sample.Stream), stream *sample.Stream) {
	r := s.basis.Borrow()
	s.drawSmall(r, sampler, stream)
	s.basis.Add(dst, dst, r)
	wipe(r)
}

// drawSmall sets dst to the output of a sampler, in [-2^31, 2^31].
func (s *Scheme) drawSmall(dst ring.Poly, sampler func([]int64, *sample.Stream), stream *sample.Stream) {
	v, p := take[int64](&integers, s.N()), intpoly.Poly{W: 1, C: take[uint64](&words, s.N())}
	sampler(v, stream)
	intpoly.FromInt64(p, v)
	s.basis.FromSmall(dst, p)
	giveBack(&integers, v)
	giveBack(&words, p.C)
}

// ternary sets dst to a ternary polynomial.
func (s *Scheme) ternary(dst ring.NTT, stream *sample.Stream) {
	defer stream.Wipe()
	s.drawSmall(ring.Poly(dst), sample.Ternary, stream)
	s.basis.Forward(dst, ring.Poly(dst))
}

// decode returns the messages for phases modulo q_0, which it overwrites.
func (s *Scheme) decode(phase []uint64) []uint64 {
	full, out := s.first.NewPoly(), s.plain.NewPoly()
	copy(full.C[0], phase)
	s.first.MulScalar(full, full, s.times[:1])
	s.lower.Extend(out, full)
	s.plain.MulScalar(out, out, []uint64{s.moved})
	clear(phase)
	message := append([]uint64(nil), out.C[0][:len(phase)]...)
	wipe(full)
	wipe(out)
	return message
}

// wipe zeroes a polynomial and frees its memory for reuse.
func wipe(p ring.Poly) {
	p.Zero()
	p.Free()
}
