package kernel

import "math/bits"

// Inner returns sum_i a_i b_i mod q for residues b, and reports whether all a are residues too. If
// one is not, the sum is meaningless.
func (m *Modulus) Inner(a, b []uint64) (sum uint64, residues bool) {
	b = b[:len(a)]
	sum, n, residues := m.vectorInner(a, b)
	a, b = a[n:], b[n:]
	// The sum of n products of two residues and one more residue is below 2^128.
	block := 1 << min(20, 127-2*bits.Len64(m.Q))
	for len(a) > 0 {
		k := min(block, len(a))
		hi, lo, above := inner(a[:k], b[:k], m.Q-1)
		sum = m.Add(sum, m.Reduce(hi, lo))
		residues = residues && above>>63 == 0
		a, b = a[k:], b[k:]
	}
	return sum, residues
}

// inner returns sum_i a_i b_i modulo 2^128, and the bits of all x and top - x for x in a. With top
// = q-1, none of these reaches 2^63 if x is below q, and one does otherwise.
func inner(a, b []uint64, top uint64) (hi, lo, above uint64) {
	b = b[:len(a)]
	var h0, l0, h1, l1, c uint64 // two sums, which the processor can add in parallel
	for i := 0; i+1 < len(a); i += 2 {
		x, y := a[i], a[i+1]
		above |= x | (top - x) | y | (top - y)
		h, l := bits.Mul64(x, b[i])
		l0, c = bits.Add64(l0, l, 0)
		h0, _ = bits.Add64(h0, h, c)
		h, l = bits.Mul64(y, b[i+1])
		l1, c = bits.Add64(l1, l, 0)
		h1, _ = bits.Add64(h1, h, c)
	}
	if n := len(a) - 1; n >= 0 && n%2 == 0 {
		x := a[n]
		above |= x | (top - x)
		h, l := bits.Mul64(x, b[n])
		l0, c = bits.Add64(l0, l, 0)
		h0, _ = bits.Add64(h0, h, c)
	}
	lo, c = bits.Add64(l0, l1, 0)
	hi, _ = bits.Add64(h0, h1, c)
	return hi, lo, above
}
