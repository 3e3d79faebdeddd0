package bgv

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"

	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// ErrKeys is returned for keys that are malformed or do not belong to a set.
var ErrKeys = errors.New("bgv: malformed keys")

// SeedSize is the size of the seed of the reference string in bytes.
const SeedSize = sample.SeedSize

// MaxGalois is the maximum number of automorphisms of keys.
const MaxGalois = 128

// Keys are the public keys for a secret s. They consist of samples (b, a), where a follows from the
// seed:
//
//	public          b = -a s + e
//	relinearisation b = -a s + e + P s^2 modulo the primes of digit i, and without the last term modulo others
//	automorphism g  b = -a s(X^(1/g)) + e + P s, the last term as above
//
// The public key has one sample, and each of the others has one for each digit of the gadget.
type Keys struct {
	Seed   [SeedSize]byte
	Galois []uint64   // the automorphisms, ascending
	B      []ring.NTT // on all primes: public, relinearisation by digit, and then by automorphism and digit
}

// CheckGalois checks a list of automorphisms X -> X^g: it must be ascending, with at most
// [MaxGalois] entries, all of them odd and in (1, 2N). Otherwise it returns an error that wraps
// [ErrKeys].
func (s *Set) CheckGalois(list []uint64) error {
	if len(list) > MaxGalois {
		return fmt.Errorf("%w: %d automorphisms are too many", ErrKeys, len(list))
	}
	last := uint64(1)
	for _, g := range list {
		//lodge:check bgv/automorphisms [swap=g <= last=>g == last] keys have several encodings
		if g <= last || g%2 == 0 || g >= 2<<s.LogN {
			return fmt.Errorf("%w: the automorphisms %d are not odd and ascending in (1, 2N)", ErrKeys, list)
		}
		last = g
	}
	return nil
}

// Samples returns the number of samples of keys with the given number of automorphisms.
func (s *Set) Samples(galois int) int { return 1 + s.Digits()*(1+galois) }

// NewKeys allocates keys. Their samples are zero.
func (s *Scheme) NewKeys(seed [SeedSize]byte, galois []uint64) (*Keys, error) {
	if err := s.CheckGalois(galois); err != nil {
		return nil, err
	}
	k := &Keys{Seed: seed, Galois: galois}
	for range s.Samples(len(galois)) {
		k.B = append(k.B, s.basis.NewNTT())
	}
	return k, nil
}

// Uniform sets a to the uniform half of a sample.
func (s *Scheme) Uniform(a ring.NTT, seed *[SeedSize]byte, sampleNumber int) {
	sample.Expand(a.C, s.QP(), seed[:], "lodge bgv sample", uint64(sampleNumber))
}

// SpecialProduct returns P modulo prime k of Q.
func (s *Scheme) SpecialProduct(k int) uint64 {
	p := s.basis.Range(len(s.Q), len(s.Q)+len(s.P)).Modulus()
	return p.Mod(p, new(big.Int).SetUint64(s.Q[k])).Uint64()
}

// KeysToLattigo converts the keys to Lattigo's types.
func (s *Scheme) KeysToLattigo(k *Keys) (*rlwe.PublicKey, *rlwe.MemEvaluationKeySet) {
	public := s.PublicToLattigo(k)
	relin := rlwe.NewRelinearizationKey(s.Lattigo)
	s.fillGadget(&relin.GadgetCiphertext, k, 1)
	var galois []*rlwe.GaloisKey
	for i, g := range k.Galois {
		key := rlwe.NewGaloisKey(s.Lattigo)
		key.GaloisElement, key.NthRoot = g, s.Lattigo.RingQ().NthRoot()
		s.fillGadget(&key.GadgetCiphertext, k, 1+s.Digits()*(1+i))
		galois = append(galois, key)
	}
	return public, rlwe.NewMemEvaluationKeySet(relin, galois...)
}

// PublicToLattigo converts only the public key. k need only have the first sample.
func (s *Scheme) PublicToLattigo(k *Keys) *rlwe.PublicKey {
	public := rlwe.NewPublicKey(s.Lattigo)
	s.fill(public.Value, k, 0)
	return public
}

func (s *Scheme) fillGadget(to *rlwe.GadgetCiphertext, k *Keys, first int) {
	for i := range to.Value {
		s.fill(to.Value[i][0], k, first+i)
	}
}

// fill sets to to (b, a), times 2^64 as in Lattigo's representation.
func (s *Scheme) fill(to []ringqp.Poly, k *Keys, number int) {
	a := s.basis.NewNTT()
	s.Uniform(a, &k.Seed, number)
	montgomery := make([]uint64, s.basis.Len())
	for i, q := range s.QP() {
		r := new(big.Int).Lsh(big.NewInt(1), 64)
		montgomery[i] = r.Mod(r, new(big.Int).SetUint64(q)).Uint64()
	}
	for i, from := range []ring.NTT{k.B[number], a} {
		rows := ring.Poly{C: append(append([][]uint64(nil), to[i].Q.Coeffs...), to[i].P.Coeffs...)}
		s.basis.MulScalar(rows, ring.Poly(from), montgomery)
	}
}
