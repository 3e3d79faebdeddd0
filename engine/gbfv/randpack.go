package gbfv

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// RandPack sets mu to a random plaintext that reduces to the coefficients c_j in Z_p: mu = P·x for x from
// the discrete Gaussian of g's width on the coset P^-1·c + Z^N (MatriGear, RandPack, sampled in x where it
// is spherical). |mu| < (b+1)·max|x|. mu has MessageWords words per coefficient.
//
// No packing is needed for a random message: draw coeffs uniformly and unpack them to learn the slots.
func (s *Scheme) RandPack(mu intpoly.Poly, coeffs field.Vec, g *sample.Gaussian, stream *sample.Stream) {
	s.randPack(mu, coeffs, 1, g, stream)
}

// RandPackDiag is RandPack for the message alpha in every slot, in the subring Z[X^D]: mu = P·x with x in
// that subring too, Gaussian of dimension M on P^-1·alpha + Z^M.
func (s *Scheme) RandPackDiag(mu intpoly.Poly, alpha field.Element, g *sample.Gaussian, stream *sample.Stream) {
	coeffs := s.Field.NewVec(s.Slots()) // the constant polynomial alpha has this value in every slot
	defer coeffs.Wipe()
	copy(coeffs.At(0), alpha)
	s.randPack(mu, coeffs, s.Slots(), g, stream)
}

// randPack samples x at every step-th coefficient only.
func (s *Scheme) randPack(mu intpoly.Poly, coeffs field.Vec, step int, g *sample.Gaussian, stream *sample.Stream) {
	n := s.N()
	digits := intpoly.New(n, s.Pack.DigitWords())
	words := make([]uint64, 2*n)
	centres := make([]sample.Frac, n/step)
	z, x := make([]int64, n/step), make([]int64, n)
	defer func() {
		digits.Wipe()
		clear(words)
		clear(centres)
		clear(z)
		clear(x)
	}()
	s.Pack.Digits(digits, coeffs)
	s.Pack.CosetCentres(words, x, digits)
	for k := range centres {
		centres[k] = sample.Frac{Hi: words[2*k*step], Lo: words[2*k*step+1]}
	}
	g.SampleAt(z, centres, stream)
	for k, v := range z {
		x[k*step] += v
	}
	s.Pack.AssembleRandPack(mu, digits, x)
}
