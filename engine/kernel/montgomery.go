package kernel

import "math/bits"

// MontgomeryModulus multiplies residues in Montgomery form, x 2^64 mod q. Lattigo's rings keep
// polynomials that are multiplied often in this form. Multiplying a form by a residue yields a
// residue, and multiplying two forms yields a form.
type MontgomeryModulus struct {
	Modulus
	inverse  uint64 // q^-1 mod 2^64
	to, from Factor // 2^64 and 2^-64
}

// Montgomery prepares the Montgomery form modulo m.
func (m *Modulus) Montgomery() MontgomeryModulus {
	f := MontgomeryModulus{Modulus: *m, inverse: m.Q} // right modulo 2^3
	for range 5 {
		f.inverse *= 2 - m.Q*f.inverse // twice as many bits
	}
	f.to, f.from = m.Factor(m.Reduce(1, 0)), m.Factor(f.Mul(1, 1))
	return f
}

// To sets dst = a 2^64 mod q: it converts residues to forms.
func (m *MontgomeryModulus) To(dst, a []uint64) { m.ScaleByVec(dst, a, m.to) }

// From sets dst = a/2^64 mod q: it converts forms to residues.
func (m *MontgomeryModulus) From(dst, a []uint64) { m.ScaleByVec(dst, a, m.from) }

// Mul returns a b/2^64 mod q.
func (m *MontgomeryModulus) Mul(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	minus, _ := bits.Mul64(lo*m.inverse, m.Q)
	return m.Sub(hi, minus)
}

// MulVec sets dst = a b/2^64 mod q, slot by slot.
func (m *MontgomeryModulus) MulVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := m.vectorMul(dst, a, b); i < len(dst); i++ {
		dst[i] = m.Mul(a[i], b[i])
	}
}

// MulAddVec sets dst += a b/2^64 mod q, slot by slot.
func (m *MontgomeryModulus) MulAddVec(dst, a, b []uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := m.vectorMulAdd(dst, a, b); i < len(dst); i++ {
		dst[i] = m.Add(dst[i], m.Mul(a[i], b[i]))
	}
}
