package lwe

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Errors that callers can cause. All errors of this package wrap an error of this list, or an error
// of package [codec].
var (
	ErrCiphertext = errors.New("lwe: malformed ciphertext")
	ErrKeys       = errors.New("lwe: malformed keys")
	ErrSet        = errors.New("lwe: of another parameter set")
	ErrMessage    = errors.New("lwe: message out of range")
)

// Scheme is a [Set] prepared for computation. It is immutable and may be shared.
type Scheme struct {
	*Set
	mod      kernel.Modulus
	ntt      *kernel.NTT
	rotation digits
	switches digits
	errors   *sample.Gaussian // of encryptions
	hash     [32]byte
}

// New prepares a valid set.
func New(set *Set) (*Scheme, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	own := *set
	basis, err := ring.NewBasis(set.LogN, []uint64{set.Q})
	if err != nil {
		return nil, fmt.Errorf("lwe: set %s: %w", set.Name, err)
	}
	s := &Scheme{Set: &own, hash: own.Hash()}
	s.rotation, s.switches = newDigits(set.Rotation, set.Q), newDigits(set.Switch, set.Q)
	if s.mod, err = kernel.NewModulus(set.Q); err != nil {
		return nil, err
	}
	// The transform is that of package ring, whose root is the value of X in slot 0.
	x, values := basis.NewPoly(), basis.NewNTT()
	x.C[0][1] = 1
	basis.Forward(values, x)
	if s.ntt, err = kernel.NewNTT(s.mod, s.N(), values.C[0][0]); err != nil {
		return nil, err
	}
	if s.errors, err = sample.NewGaussian(width(set.Variance)); err != nil {
		return nil, err
	}
	return s, nil
}

// Forward sets dst to the transform of src, N residues each, in the order of slots of package ring.
// They may be the same.
func (s *Scheme) Forward(dst, src []uint64) { s.ntt.Forward(dst, src) }

// Inverse undoes Forward.
func (s *Scheme) Inverse(dst, src []uint64) { s.ntt.Inverse(dst, src) }

// Modulus is the arithmetic modulo Q.
func (s *Scheme) Modulus() kernel.Modulus { return s.mod }

// Dot is the inner product <a, b> mod Q of at most 2^16 residues, in a time that does not depend on
// them.
func (s *Scheme) Dot(a, b []uint64) uint64 {
	if len(a) != len(b) || len(a) > 1<<16 {
		panic("lwe: inner product of vectors that differ in length or are too long")
	}
	var high, low uint64
	for i, x := range a {
		h, l := bits.Mul64(x, b[i])
		var c uint64
		low, c = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, c) // below 2^(2·54+16-64)
	}
	return s.mod.Reduce(high, low)
}

// canonical reports whether all words are residues modulo Q.
func (s *Scheme) canonical(v []uint64) bool {
	var below uint64 = 1
	for _, x := range v {
		_, b := bits.Sub64(x, s.Q, 0)
		below &= b
	}
	return below == 1
}
