package bgv

import (
	"fmt"
	"math/big"

	"github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// Scheme is a [Set] prepared for use. It is immutable and safe for concurrent use.
type Scheme struct {
	*Set
	Lattigo bgv.Parameters // for users
	basis   *ring.Basis    // of Q and the special primes
	plain   *ring.Basis    // of T
	encoder *bgv.Encoder
	// lift extends from Q_l to T for each level l.
	lift []*ring.Extender
}

// New prepares a set for use. It returns an error if the set is invalid.
func New(set *Set) (*Scheme, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	s := &Scheme{Set: set}
	var err error
	s.Lattigo, err = bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
		LogN: set.LogN, Q: set.Q, P: set.P, PlaintextModulus: set.T,
	})
	if err != nil {
		return nil, fmt.Errorf("bgv: set %s: %w", set.Name, err)
	}
	if s.basis, err = ring.NewBasis(set.LogN, set.QP()); err != nil {
		return nil, err
	}
	if s.plain, err = ring.NewBasis(set.LogN, []uint64{set.T}); err != nil {
		return nil, err
	}
	s.encoder = bgv.NewEncoder(s.Lattigo)
	for l := range set.Q {
		s.lift = append(s.lift, ring.NewExtender(s.basis.Prefix(l+1), s.plain))
	}
	return s, nil
}

// Basis returns the basis of keys: all primes, the special ones last.
func (s *Scheme) Basis() *ring.Basis { return s.basis }

// Level returns the basis of ciphertexts of level l.
func (s *Scheme) Level(l int) *ring.Basis { return s.basis.Prefix(l + 1) }

// MaxLevel returns the level of fresh ciphertexts.
func (s *Scheme) MaxLevel() int { return len(s.Q) - 1 }

// MaxNoise returns the largest noise of a ciphertext of level l that can be decrypted at level k <=
// l, under a key of the given number of parties.
func (s *Scheme) MaxNoise(l, k, parties int) *big.Int {
	most := new(big.Int).Lsh(big.NewInt(1), uint(s.LogNoise))
	if l == k {
		return most
	}
	room := big.NewInt(int64(s.Rounding(parties)) + 1)
	most.Sub(most, room).Mul(most, s.Level(l).Modulus())
	return most.Div(most, s.Level(k).Modulus())
}

// Galois returns the element of the automorphism that moves the slots of both rows k columns to the
// left.
func (s *Scheme) Galois(k int) uint64 { return s.Lattigo.GaloisElementForColRotation(k) }

// RotateRows returns the element of the automorphism that swaps the rows.
func (s *Scheme) RotateRows() uint64 { return s.Lattigo.GaloisElementForRowRotation() }
