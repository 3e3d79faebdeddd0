package kernel

import "math/bits"

// The slices of a vector operation are at least as long as dst. dst may be one of the operands.

// AddVec sets dst = a + b mod q.
func (m *Modulus) AddVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := m.vectorAdd(dst, a, b)
	dst, a, b = dst[n:], a[n:len(dst)], b[n:len(dst)]
	for i := range dst {
		dst[i] = m.Add(a[i], b[i])
	}
}

// SubVec sets dst = a - b mod q.
func (m *Modulus) SubVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := m.vectorSub(dst, a, b)
	dst, a, b = dst[n:], a[n:len(dst)], b[n:len(dst)]
	for i := range dst {
		dst[i] = m.Sub(a[i], b[i])
	}
}

// NegVec sets dst = -a mod q.
func (m *Modulus) NegVec(dst, a []uint64) {
	a = a[:len(dst)]
	n := m.vectorNeg(dst, a)
	dst, a = dst[n:], a[n:len(dst)]
	for i := range dst {
		dst[i] = m.Sub(0, a[i])
	}
}

// SignedVec sets dst = a mod q for integers a in two's complement, |a| < q.
func (m *Modulus) SignedVec(dst, a []uint64) {
	a = a[:len(dst)]
	n := m.vectorSigned(dst, a)
	dst, a = dst[n:], a[n:len(dst)]
	for i, x := range a {
		dst[i] = x + m.Q&-(x>>63)
	}
}

// ScaleVec sets dst = c a mod q for a public c.
func (m *Modulus) ScaleVec(dst, a []uint64, c uint64) { m.ScaleByVec(dst, a, m.Factor(c)) }

// ScaleByVec sets dst = f a mod q.
func (m *Modulus) ScaleByVec(dst, a []uint64, f Factor) {
	a = a[:len(dst)]
	n := m.vectorScale(dst, a, f, false)
	dst, a = dst[n:], a[n:len(dst)]
	for i := range dst {
		dst[i] = m.Scale(a[i], f)
	}
}

// ReduceVec sets dst = a mod q for any words a.
func (m *Modulus) ReduceVec(dst, a []uint64) {
	f := m.Factor(1)
	a = a[:len(dst)]
	n := m.vectorScale(dst, a, f, true)
	dst, a = dst[n:], a[n:len(dst)]
	for i := range dst {
		dst[i] = m.Scale(a[i], f)
	}
}

// MulVec sets dst = a b mod q, slot by slot.
func (m *Modulus) MulVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := m.vectorMul(dst, a, b)
	dst, a, b = dst[n:], a[n:len(dst)], b[n:len(dst)]
	for i := range dst {
		dst[i] = m.Mul(a[i], b[i])
	}
}

// MulAddVec sets dst += a b mod q, slot by slot.
func (m *Modulus) MulAddVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	n := m.vectorMulAdd(dst, a, b)
	dst, a, b = dst[n:], a[n:len(dst)], b[n:len(dst)]
	for i := range dst {
		hi, lo := bits.Mul64(a[i], b[i])
		lo, c := bits.Add64(lo, dst[i], 0)
		dst[i] = m.product(hi+c, lo)
	}
}

// MulSumVec sets dst = a b + c d mod q, slot by slot. dst must not be c or d.
func (m *Modulus) MulSumVec(dst, a, b, c, d []uint64) {
	n := len(dst)
	a, b, c, d = a[:n], b[:n], c[:n], d[:n]
	if !m.vectorMulSum(dst, a, b, c, d) {
		m.MulVec(dst, a, b)
		m.MulAddVec(dst, c, d)
	}
}

// AddMultiples adds f[0] a + f[1] b + f[2] c + f[3] d to dst, slot by slot modulo 2^64. dst must
// not be an operand.
func AddMultiples(dst, a, b, c, d []uint64, f *[4]uint64) {
	n := len(dst)
	a, b, c, d = a[:n], b[:n], c[:n], d[:n]
	done := vectorAddMultiples(dst, a, b, c, d, f)
	dst, a, b, c, d = dst[done:], a[done:], b[done:], c[done:], d[done:]
	for i := range dst {
		dst[i] += f[0]*a[i] + f[1]*b[i] + f[2]*c[i] + f[3]*d[i]
	}
}
