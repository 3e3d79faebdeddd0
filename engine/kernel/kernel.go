// Package kernel is modular arithmetic on words and slices of words, for odd moduli of up to 61 bits. All
// residues are canonical, in [0, q), on entry and exit. Nothing branches on or indexes by a residue.
package kernel

import (
	"fmt"
	"math/bits"
)

// MaxBits is the size of the largest modulus in bits.
const MaxBits = 61

// Modulus is a modulus with its Barrett constant floor(2^128/q).
type Modulus struct {
	Q      uint64
	hi, lo uint64
}

// NewModulus prepares q, odd, 3 <= q < 2^61.
func NewModulus(q uint64) (Modulus, error) {
	if q < 3 || q&1 == 0 || bits.Len64(q) > MaxBits {
		return Modulus{}, fmt.Errorf("kernel: modulus %d is not an odd number of at most %d bits", q, MaxBits)
	}
	hi, r := bits.Div64(1, 0, q)
	lo, _ := bits.Div64(r, 0, q)
	return Modulus{Q: q, hi: hi, lo: lo}, nil
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

// once gives r - q if r >= q, else r, for r < 2q.
func (m *Modulus) once(r uint64) uint64 {
	d := r - m.Q
	return d + m.Q&uint64(int64(d)>>63)
}

// Mul gives a b mod q.
func (m *Modulus) Mul(a, b uint64) uint64 { return m.Reduce(bits.Mul64(a, b)) }

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

// ScaleVec sets dst = c a mod q.
func (m *Modulus) ScaleVec(dst, a []uint64, c uint64) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = m.Mul(a[i], c)
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
		dst[i] = m.Reduce(hi+c, lo)
	}
}
