package kernel

// Digit describes one digit of a residue x: the bit field of ((x + Centre) mod q) + Offset that
// Mask and Shift select, minus Middle. Centre is a residue, the sum is below 2^64, and the digit
// lies between -q and q.
type Digit struct{ Centre, Offset, Shift, Mask, Middle uint64 }

// DigitVec sets dst to the digits of the residues a, as residues. Slices are at least as long as
// dst, and dst may be a.
func (m *Modulus) DigitVec(dst, a []uint64, d *Digit) {
	a = a[:len(dst)]
	n := m.vectorDigit(dst, a, d)
	dst, a = dst[n:], a[n:len(dst)]
	for i, x := range a {
		x = m.once(x+d.Centre) + d.Offset
		x = x>>(d.Shift&63)&d.Mask - d.Middle
		dst[i] = x + m.Q&-(x>>63)
	}
}
