package gbfv

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// RandPack sets mu to a random plaintext that reduces to the coefficients c_j in Z_p: mu = P·x for
// x from the discrete Gaussian of g's width on the coset P^-1·c + Z^N (MatriGear, RandPack, sampled
// in x where it is spherical). |mu| < (b+1)·max|x|. mu has at least MessageWords words per
// coefficient.
//
// A random message needs no packing: draw coeffs uniformly and unpack them to learn the slots.
func (s *Scheme) RandPack(mu intpoly.Poly, coeffs field.Vec, g *sample.Gaussian, stream *sample.Stream) {
	randPack(s.Pack, mu, coeffs, g, stream)
}

// RandPackDiag is RandPack for the message alpha in every slot, in the subring Z[X^D]: mu = P·x
// with x in that subring too, Gaussian of dimension M on P^-1·alpha + Z^M.
func (s *Scheme) RandPackDiag(mu intpoly.Poly, alpha field.Element, g *sample.Gaussian, stream *sample.Stream) {
	coeffs := s.Field.NewVec(1) // the constant polynomial alpha has this value in every slot
	small := intpoly.New(s.Pack.M(), mu.W)
	defer coeffs.Wipe()
	defer small.Wipe()
	copy(coeffs.At(0), alpha)
	randPack(s.constant, small, coeffs, g, stream)
	clear(mu.C)
	for i := range s.Pack.M() {
		copy(mu.Coeff(i*s.Slots()), small.Coeff(i))
	}
}

// randPack is RandPack with a packing.
func randPack(pack *field.Packing, mu intpoly.Poly, coeffs field.Vec, g *sample.Gaussian, stream *sample.Stream) {
	n := mu.N()
	digits := intpoly.New(n, pack.DigitWords())
	words := make([]uint64, 2*n)
	centres := make([]sample.Frac, n)
	z, x := make([]int64, n), make([]int64, n)
	defer func() {
		digits.Wipe()
		clear(words)
		clear(centres)
		clear(z)
		clear(x)
	}()
	pack.Digits(digits, coeffs)
	pack.CosetCentres(words, x, digits)
	for k := range centres {
		centres[k] = sample.Frac{Hi: words[2*k], Lo: words[2*k+1]}
	}
	g.SampleAt(z, centres, stream)
	for k, v := range z {
		x[k] += v
	}
	pack.AssembleRandPack(mu, digits, x)
}
