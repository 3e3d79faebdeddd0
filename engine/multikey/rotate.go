package multikey

import (
	"github.com/sp301415/tfhe-go/math/poly"
)

// decompose sets dst to the transforms of the digits of p in gadget g (the library's form).
func (b *bench) decompose(p poly.Poly[uint64], g gadget, dst []poly.FourierPoly) {
	b.decomposer.DecomposePolyAssign(p, g, b.pieces[:g.Level()])
	for j := range g.Level() {
		b.transform.ToFourierPolyAssign(b.pieces[j], dst[j])
	}
}

// multiply sets dst = a b if first, else adds a b to it.
func (b *bench) multiply(dst, x, y poly.FourierPoly, first bool) {
	if first {
		b.transform.MulFourierPolyAssign(x, y, dst)
	} else {
		b.transform.MulAddFourierPolyAssign(x, y, dst)
	}
}

// exponent returns a word of an LWE ciphertext rounded to a multiple of 1/2N, modulo 2N.
func (s *Scheme) exponent(x uint32) int {
	shift := lweBits - s.LogN - 1
	return int((x+1<<(shift-1))>>shift) & (2*s.N() - 1)
}

// rounding returns the error of rounding a word to a multiple of 1/2N, in [-2^31/2N, 2^31/2N).
func (s *Scheme) rounding(x uint32) int32 {
	shift := lweBits - s.LogN - 1
	half := uint32(1) << (shift - 1)
	return int32((x+half)&(2*half-1)) - int32(half)
}

// body returns the exponent of the word b of a ciphertext.
//
// Rounding the masks changes the phase b + sum_i a_i z_i by less than sum_i d_i z_i, with the
// public errors d_i of all parts, and each z_i is 1 with probability p = 1/(Block+1). So sum_i d_i
// p of it is known before the rotation. A centred set adds it to b first, rounded down to a word,
// which leaves sum_i d_i (z_i - p).
func (s *Scheme) body(c *Ciphertext) int {
	if !s.Centred {
		return s.exponent(c.B)
	}
	var sum int64
	for _, p := range c.Parts {
		for _, x := range p.A {
			sum += int64(s.rounding(x))
		}
	}
	each := int64(s.Block + 1)
	mean := sum / each
	if sum%each < 0 { // division rounds towards 0
		mean--
	}
	return s.exponent(c.B + uint32(mean))
}

// exponents returns the exponents of a part.
func (s *Scheme) exponents(a []uint32) []uint16 {
	list := make([]uint16, len(a))
	for i, x := range a {
		list[i] = uint16(s.exponent(x))
	}
	return list
}

// Rotation is the part of a bootstrap that needs only one party's keys: X^-<a, z>, where a consists
// of multiples of 1/2N.
type Rotation struct {
	Key       KeyID
	Exponents []uint16 // one for each coordinate, below 2N
}

// Accumulator is the result of a rotation: the words of its ring elements, two halves of a
// ciphertext for each digit of Lev.
type Accumulator []uint64

// accumulatorWords returns the number of words of an accumulator.
func (s *Scheme) accumulatorWords() int { return 2 * s.Lev.Digits * s.N() }

// elements returns the ring elements of an accumulator, which share its words.
func (s *Scheme) elements(a Accumulator) [][2]poly.Poly[uint64] {
	list := make([][2]poly.Poly[uint64], s.Lev.Digits)
	for l := range list {
		for half := range list[l] {
			at := (2*l + half) * s.N()
			list[l][half] = poly.Poly[uint64]{Coeffs: a[at : at+s.N() : at+s.N()]}
		}
	}
	return list
}

// rotate computes a party's accumulators of gadget Lev from the rows of its rotation key. Row l is
// a ring ciphertext of B^-(l+1) X^-<a, z>. A step processes the coordinates of a block, of which at
// most one is 1:
//
//	acc <- acc + sum_i (X^-a_i - 1) (acc (*) RGSW(z_i)),
//
// and all rows of the gadget together, so that a step's part of the key and its monomials are read
// and made once.
func (b *bench) rotate(s *Scheme, rotation [][2]poly.FourierPoly, exponents []uint16) Accumulator {
	out := make(Accumulator, s.accumulatorWords())
	acc := s.elements(out)
	for l := range acc {
		acc[l][0].Coeffs[0] = s.lev.BaseQ(l)
	}
	each := 2 * s.Rotation.Digits
	halves := 1 // the mask is 0 before the first step
	for at := 0; at < s.Dim; at += s.Block {
		started := false
		for i := at; i < at+s.Block; i++ {
			e := int(exponents[i])
			if e == 0 {
				continue
			}
			if !started {
				for l := range acc {
					for half := range halves {
						b.decompose(acc[l][half], s.rotation, b.digits[l][half])
					}
				}
			}
			b.transform.MonomialSubOneToFourierPolyAssign(2*s.N()-e, b.monomial)
			key := rotation[i*each : (i+1)*each]
			for l := range acc {
				for half, sum := range b.sums {
					for k := range halves * s.Rotation.Digits {
						b.multiply(sum, key[k][half], b.digits[l][k/s.Rotation.Digits][k%s.Rotation.Digits], k == 0)
					}
					b.multiply(b.totals[l][half], sum, b.monomial, !started)
				}
			}
			started = true
		}
		if !started {
			continue
		}
		for l := range acc {
			for half := range acc[l] {
				b.transform.ToPolyAddAssignUnsafe(b.totals[l][half], acc[l][half])
			}
		}
		halves = 2
	}
	return out
}

// transforms returns the transforms of an accumulator's elements.
func (b *bench) transforms(s *Scheme, a Accumulator) [][2]poly.FourierPoly {
	acc := s.elements(a)
	out := make([][2]poly.FourierPoly, len(acc))
	for l := range acc {
		for half := range acc[l] {
			out[l][half] = b.transform.ToFourierPoly(acc[l][half])
		}
	}
	return out
}
