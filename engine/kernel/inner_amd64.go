//go:build !purego

package kernel

import "math/bits"

// vectorInner computes Inner for the first n terms, if the selected path has a kernel for the
// modulus.
func (m *Modulus) vectorInner(a, b []uint64) (sum uint64, n int, residues bool) {
	residues = true
	if Selected() < IFMA || bits.Len64(m.Q) > 52 {
		return 0, 0, true
	}
	// A lane of the lower sums receives an eighth of the terms, each below 2^52.
	const most = 1 << 14
	for n+32 <= len(a) {
		k := min(most, (len(a)-n)&^31)
		var s [24]uint64
		innerIFMA(&s[0], &a[n], &b[n], k, m.Q-1)
		// 2^52 times the upper sums, and the lower ones, all below 2^63
		var lo, hi, above uint64
		for i := range 8 {
			low, c := bits.Add64(s[8+i]<<52, s[i], 0)
			up := s[8+i]>>12 + c
			lo, c = bits.Add64(lo, low, 0)
			hi += up + c
			above |= s[16+i]
		}
		sum = m.Add(sum, m.Reduce(hi, lo))
		residues = residues && above>>63 == 0
		n += k
	}
	return sum, n, residues
}
