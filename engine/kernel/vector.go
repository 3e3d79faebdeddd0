package kernel

import "math/bits"

// The operations on vectors take slices at least as long as dst, which may be one of them.

// AddVec sets dst = a + b mod q.
func (m *Modulus) AddVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	if m.vectorAdd(dst, a, b) {
		return
	}
	for i := range dst {
		dst[i] = m.Add(a[i], b[i])
	}
}

// SubVec sets dst = a - b mod q.
func (m *Modulus) SubVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	if m.vectorSub(dst, a, b) {
		return
	}
	for i := range dst {
		dst[i] = m.Sub(a[i], b[i])
	}
}

// NegVec sets dst = -a mod q.
func (m *Modulus) NegVec(dst, a []uint64) {
	a = a[:len(dst)]
	if m.vectorNeg(dst, a) {
		return
	}
	for i := range dst {
		dst[i] = m.Sub(0, a[i])
	}
}

// ScaleVec sets dst = c a mod q for a public c.
func (m *Modulus) ScaleVec(dst, a []uint64, c uint64) { m.ScaleByVec(dst, a, m.Factor(c)) }

// ScaleByVec sets dst = f a mod q.
func (m *Modulus) ScaleByVec(dst, a []uint64, f Factor) {
	a = a[:len(dst)]
	if m.vectorScale(dst, a, f, false) {
		return
	}
	for i := range dst {
		dst[i] = m.Scale(a[i], f)
	}
}

// ReduceVec sets dst = a mod q for any words a.
func (m *Modulus) ReduceVec(dst, a []uint64) {
	f := m.Factor(1)
	a = a[:len(dst)]
	if m.vectorScale(dst, a, f, true) {
		return
	}
	for i := range dst {
		dst[i] = m.Scale(a[i], f)
	}
}

// MulVec sets dst = a b mod q, slot by slot.
func (m *Modulus) MulVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	if m.vectorMul(dst, a, b) {
		return
	}
	for i := range dst {
		dst[i] = m.Mul(a[i], b[i])
	}
}

// MulAddVec sets dst += a b mod q, slot by slot.
func (m *Modulus) MulAddVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	if m.vectorMulAdd(dst, a, b) {
		return
	}
	for i := range dst {
		hi, lo := bits.Mul64(a[i], b[i])
		lo, c := bits.Add64(lo, dst[i], 0)
		dst[i] = m.product(hi+c, lo)
	}
}
