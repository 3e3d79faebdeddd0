// Package kernel implements modular arithmetic on words and slices of words, for odd moduli of up
// to 61 bits. All residues are canonical, in [0, q), on entry and exit. No operation branches on a
// residue or uses one as an index.
//
// Operations on vectors and matrices have kernels for several instruction sets (Path), with the
// same results. The fastest kernels that the processor supports are selected when a program starts.
// Command engine/kernel/gen generates their assembly.
package kernel

import (
	"fmt"
	"math/bits"
)

const (
	// MaxBits is the size of the largest modulus in bits.
	MaxBits = 61
	// MaxBitsIFMA is the size of the largest modulus that the path IFMA serves with its own
	// kernels.
	MaxBitsIFMA = 50
)

// Modulus holds a modulus of n bits with its Barrett constants: floor(2^128/q) for any two words,
// and floor(2^(n+62)/q) for products of residues.
type Modulus struct {
	Q      uint64
	hi, lo uint64
	short  uint64
	shift  uint8 // n-2
}

// NewModulus returns the constants for q, which is odd with 3 <= q < 2^61.
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

// Reduce returns (2^64 hi + lo) mod q for any two words.
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

// product returns x = (2^64 hi + lo) mod q for x < 2^(2n), q of n bits: a product of residues, plus
// one residue.
func (m *Modulus) product(hi, lo uint64) uint64 {
	// The estimate differs from x/q by at most x/2^(n+62) + 2^(n-2)/q <= 1 plus the fraction, so r
	// < 2q. If n = 2 then hi = 0, and the amount of its shift does not matter.
	top := hi<<((64-m.shift)&63) | lo>>(m.shift&63)
	quotient, _ := bits.Mul64(top, m.short)
	return m.once(lo - quotient*m.Q)
}

// once returns r - q if r >= q, else r, for r < 2q.
func (m *Modulus) once(r uint64) uint64 {
	d := r - m.Q
	return d + m.Q&uint64(int64(d)>>63)
}

// Mul returns a b mod q.
func (m *Modulus) Mul(a, b uint64) uint64 { return m.product(bits.Mul64(a, b)) }

// Factor is a public residue prepared as a multiplier: c and floor(2^64 c/q) (Shoup's method).
type Factor struct{ c, scaled uint64 }

// Factor prepares c as a multiplier.
func (m *Modulus) Factor(c uint64) Factor {
	scaled, _ := bits.Div64(c, 0, m.Q)
	return Factor{c, scaled}
}

// Scale returns a f mod q for any word a.
func (m *Modulus) Scale(a uint64, f Factor) uint64 {
	quotient, _ := bits.Mul64(a, f.scaled) // at most 1 too small
	return m.once(a*f.c - quotient*m.Q)
}

// Add returns a + b mod q.
func (m *Modulus) Add(a, b uint64) uint64 { return m.once(a + b) }

// Sub returns a - b mod q.
func (m *Modulus) Sub(a, b uint64) uint64 {
	d := a - b
	return d + m.Q&uint64(int64(d)>>63)
}

// Neg returns -a mod q.
func (m *Modulus) Neg(a uint64) uint64 { return m.Sub(0, a) }

// Exp returns a^e mod q for a public exponent.
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

// Inverse returns a^-1 mod q for q prime and a not 0.
func (m *Modulus) Inverse(a uint64) uint64 { return m.Exp(a, m.Q-2) }
