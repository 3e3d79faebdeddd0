package kernel

import (
	"math/bits"
	"slices"
)

// Weighted sums over the residues of a number modulo several primes, which extend the number to
// another prime. Rows hold the residues y_i[k] = y[i·stride + k]. A row has one residue for each
// number of the result.

const (
	// MaxTerms is the largest number of rows in a sum.
	MaxTerms = 60
	// MaxWordTerms is the largest number of rows whose words are longer than MaxBits bits.
	MaxWordTerms = 7
)

// Fraction computes y/f for residues y modulo f, in units of 2^-64. The result is below the exact
// value by less than 3 units.
type Fraction struct{ scaled, shift uint64 }

// Fraction returns the constants of the modulus for Modulus.Fraction's approximation of y/q.
func (m *Modulus) Fraction() Fraction {
	length := bits.Len64(m.Q)
	scaled, _ := bits.Div64(1<<(length-1), 0, m.Q) // floor(2^(63+length)/q)
	return Fraction{scaled, uint64(length - 1)}
}

// of returns floor(y scaled/2^shift).
func (f Fraction) of(y uint64) uint64 {
	hi, lo := bits.Mul64(y, f.scaled)
	return hi<<((64-f.shift)&63) | lo>>(f.shift&63)
}

// RoundFractions sets v[k] = floor(1/2 + sum_i y_i[k]/f_i) with approximate fractions. It panics if
// there are more than MaxTerms fractions.
func RoundFractions(v []uint8, y []uint64, stride int, f []Fraction) {
	if len(f) > MaxTerms || len(f) > 0 && len(v) > 0 && len(y) < (len(f)-1)*stride+len(v) {
		panic("kernel: a sum of more than MaxTerms fractions")
	}
	for k := vectorRoundFractions(v, y, stride, f); k < len(v); k++ {
		sum, carries, at := uint64(1)<<63, uint64(0), k
		for _, g := range f {
			var c uint64
			sum, c = bits.Add64(sum, g.of(y[at]), 0)
			carries += c
			at += stride
		}
		v[k] = uint8(carries)
	}
}

// Sum is a weighted sum of rows modulo a prime.
type Sum struct {
	Modulus
	weights []uint64 // c_i and floor(2^64 c_i/q), alternating; the pair for v last
	forms   *sumForms
}

// sumForms holds the constants in Montgomery form for a modulus and rows of at most MaxBitsIFMA
// bits.
type sumForms struct {
	weights  []uint64 // 2^52 c_i, followed by 2^52 times the weight of v
	inverse  uint64   // 1/q mod 2^52
	multiple uint64   // q 2^halvings; twice this exceeds every sum divided by 2^52
	halvings int
}

// NewSum prepares sum_i c_i y_i + last v, for residues c_i and last, and rows of at most length <=
// 64 bits.
func (m *Modulus) NewSum(c []uint64, last uint64, length int) *Sum {
	if len(c) > MaxTerms || length > MaxBits && len(c) > MaxWordTerms {
		panic("kernel: too many rows, or too long rows, in a sum")
	}
	s := &Sum{Modulus: *m}
	for _, x := range c {
		f := m.Factor(x)
		s.weights = append(s.weights, f.c, f.scaled)
	}
	f := m.Factor(last)
	s.weights = append(s.weights, f.c, f.scaled)
	if max(length, bits.Len64(m.Q)) <= MaxBitsIFMA {
		s.forms = m.sumForms(append(slices.Clone(c), last))
	}
	return s
}

func (m *Modulus) sumForms(c []uint64) *sumForms {
	s := &sumForms{inverse: m.inverse64() & (1<<52 - 1)}
	shift := m.Factor(m.Exp(2, 52))
	for _, x := range c {
		s.weights = append(s.weights, m.Scale(x, shift))
	}
	// Sums are below 2^50 q for each term except the last, so 1/2^52 of a sum is below (terms/4 +
	// 1) q, and below (terms/4 + 2) q after q is added.
	for s.multiple = m.Q; s.multiple*2 < uint64(len(c)/4+3)*m.Q; s.multiple *= 2 {
		s.halvings++
	}
	return s
}

// inverse64 returns 1/q mod 2^64.
func (m *Modulus) inverse64() uint64 {
	inverse := m.Q // right modulo 2^3
	for range 5 {
		inverse *= 2 - m.Q*inverse // twice as many bits
	}
	return inverse
}

// Weight returns c_i.
func (s *Sum) Weight(i int) Factor { return Factor{s.weights[2*i], s.weights[2*i+1]} }

func (s *Sum) terms() int { return len(s.weights)/2 - 1 }

// Apply sets dst[k] = sum_i c_i y_i[k] + last v[k] mod q.
func (s *Sum) Apply(dst, y []uint64, stride int, v []uint8) {
	terms := s.terms()
	v = v[:len(dst)]
	if terms > 0 && len(dst) > 0 && len(y) < (terms-1)*stride+len(dst) {
		panic("kernel: rows are shorter than the sum")
	}
	last := s.weights[2*terms]
	// At most 61 products below 2^122 fit in 128 bits, or 7 below 2^125 and one below 2^69.
	for k := s.vectorApply(dst, y, stride, v); k < len(dst); k++ {
		hi, lo := bits.Mul64(uint64(v[k]), last)
		at := k
		for i := 0; i < len(s.weights)-2; i += 2 {
			h, l := bits.Mul64(y[at], s.weights[i])
			var c uint64
			lo, c = bits.Add64(lo, l, 0)
			hi, _ = bits.Add64(hi, h, c)
			at += stride
		}
		dst[k] = s.Reduce(hi, lo)
	}
}
