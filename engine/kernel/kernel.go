// Package kernel is modular arithmetic on words and slices of words, for odd moduli of up to 61 bits. All
// residues are canonical, in [0, q), on entry and exit. Nothing branches on or indexes by a residue.
package kernel

import (
	"fmt"
	"math/bits"
)

// MaxBits is the size of the largest modulus in bits.
const MaxBits = 61

// Modulus is a modulus of n bits with its Barrett constants: floor(2^128/q) for any two words, and
// floor(2^(n+62)/q) for products of residues.
type Modulus struct {
	Q      uint64
	hi, lo uint64
	short  uint64
	shift  uint8 // n-2
}

// NewModulus prepares q, odd, 3 <= q < 2^61.
func NewModulus(q uint64) (Modulus, error) {
	if q < 3 || q&1 == 0 || bits.Len64(q) > MaxBits {
		return Modulus{}, fmt.Errorf("kernel: modulus %d is not an odd number of at most %d bits", q, MaxBits)
	}
	hi, r := bits.Div64(1, 0, q)
	lo, _ := bits.Div64(r, 0, q)
	shift := bits.Len64(q) - 2
	short, _ := bits.Div64(1<<shift, 0, q)
	return Modulus{Q: q, hi: hi, lo: lo, short: short, shift: uint8(shift)}, nil
}

// Reduce gives (2^64 hi + lo) mod q for any two words.
func (m *Modulus) Reduce(hi, lo uint64) uint64 {
	// The quotient estimate is at most 1 too small; only its low word matters as r < 2q < 2^64.
	h1, l1 := bits.Mul64(lo, m.hi)
	h2, l2 := bits.Mul64(hi, m.lo)
	h3, _ := bits.Mul64(lo, m.lo)
	s, c1 := bits.Add64(l1, l2, 0)
	_, c2 := bits.Add64(s, h3, 0)
	r := lo - (hi*m.hi+h1+h2+c1+c2)*m.Q
	return m.once(r)
}

// product gives x = (2^64 hi + lo) mod q for x < 2^(2n), q of n bits: a product of residues, plus one residue.
func (m *Modulus) product(hi, lo uint64) uint64 {
	// The estimate is x/q less at most x/2^(n+62) + 2^(n-2)/q <= 1 and less the fraction, so that r < 2q.
	// If n = 2 then hi = 0, and its shift by 64 may be any other.
	top := hi<<((64-m.shift)&63) | lo>>(m.shift&63)
	quotient, _ := bits.Mul64(top, m.short)
	return m.once(lo - quotient*m.Q)
}

// once gives r - q if r >= q, else r, for r < 2q.
func (m *Modulus) once(r uint64) uint64 {
	d := r - m.Q
	return d + m.Q&uint64(int64(d)>>63)
}

// Mul gives a b mod q.
func (m *Modulus) Mul(a, b uint64) uint64 { return m.product(bits.Mul64(a, b)) }

// Factor is a public residue prepared as a multiplier: c and floor(2^64 c/q) (Shoup's method).
type Factor struct{ c, scaled uint64 }

// Factor prepares c.
func (m *Modulus) Factor(c uint64) Factor {
	scaled, _ := bits.Div64(c, 0, m.Q)
	return Factor{c, scaled}
}

// Scale gives a f mod q for any word a.
func (m *Modulus) Scale(a uint64, f Factor) uint64 {
	quotient, _ := bits.Mul64(a, f.scaled) // at most 1 too small
	return m.once(a*f.c - quotient*m.Q)
}

// Add gives a + b mod q.
func (m *Modulus) Add(a, b uint64) uint64 { return m.once(a + b) }

// Sub gives a - b mod q.
func (m *Modulus) Sub(a, b uint64) uint64 {
	d := a - b
	return d + m.Q&uint64(int64(d)>>63)
}

// Neg gives -a mod q.
func (m *Modulus) Neg(a uint64) uint64 { return m.Sub(0, a) }

// Exp gives a^e mod q for a public exponent.
func (m *Modulus) Exp(a, e uint64) uint64 {
	r := uint64(1)
	for ; e > 0; e >>= 1 {
		if e&1 == 1 {
			r = m.Mul(r, a)
		}
		a = m.Mul(a, a)
	}
	return r
}

// Inverse gives a^-1 mod q for q prime and a not 0.
func (m *Modulus) Inverse(a uint64) uint64 { return m.Exp(a, m.Q-2) }

// AddVec sets dst = a + b mod q.
func (m *Modulus) AddVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = m.Add(a[i], b[i])
	}
}

// SubVec sets dst = a - b mod q.
func (m *Modulus) SubVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = m.Sub(a[i], b[i])
	}
}

// NegVec sets dst = -a mod q.
func (m *Modulus) NegVec(dst, a []uint64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = m.Sub(0, a[i])
	}
}

// ScaleVec sets dst = c a mod q for a public c.
func (m *Modulus) ScaleVec(dst, a []uint64, c uint64) {
	f := m.Factor(c)
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = m.Scale(a[i], f)
	}
}

// MulVec sets dst = a b mod q, slot by slot.
func (m *Modulus) MulVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = m.Mul(a[i], b[i])
	}
}

// MulAddVec sets dst += a b mod q, slot by slot.
func (m *Modulus) MulAddVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		hi, lo := bits.Mul64(a[i], b[i])
		lo, c := bits.Add64(lo, dst[i], 0)
		dst[i] = m.product(hi+c, lo)
	}
}
