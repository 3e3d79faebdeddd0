package kernel

import "math/bits"

// Montgomery sets t to a b/2^(64 n) modulo mod. All are n words long except t, which has one more:
// the first word of t is the upper word of the result, 0 or 1, and the others follow, lowest first.
// n0 is -1/mod modulo 2^64. One of a and b is any integer and the other is below mod; then the
// result is below 2 mod. t shares no storage with the others.
func Montgomery(t, a, b, mod []uint64, n0 uint64) {
	n := len(mod)
	t, a, b = t[:n+1], a[:n], b[:n]
	clear(t)
	if vectorMontgomery(t, a, b, mod, n0) {
		return
	}
	// Operands are scanned word by word of b (CIOS; Koc, Acar, Kaliski 1996). After every word the
	// sum is below a + mod.
	sum := t[1:]
	var top uint64
	for _, w := range b {
		c := addMul(sum, a, w)
		over, o1 := bits.Add64(top, c, 0)
		q := sum[0] * n0
		hi, lo := bits.Mul64(q, mod[0])
		_, cc := bits.Add64(lo, sum[0], 0)
		c = addMulShift(sum, mod, q, hi+cc)
		var o2 uint64
		sum[n-1], o2 = bits.Add64(over, c, 0)
		top = o1 + o2
	}
	t[0] = top
}

// addMul adds a·w to t and returns the word carried out.
func addMul(t, a []uint64, w uint64) (c uint64) {
	t = t[:len(a)]
	for i, x := range a {
		hi, lo := bits.Mul64(x, w)
		var cc uint64
		lo, cc = bits.Add64(lo, t[i], 0)
		hi, _ = bits.Add64(hi, 0, cc)
		t[i], cc = bits.Add64(lo, c, 0)
		c, _ = bits.Add64(hi, 0, cc)
	}
	return c
}

// addMulShift sets t[i-1] = word i of t + mod·q for i >= 1, where c is the carry of word 0, and
// returns the word carried out.
func addMulShift(t, mod []uint64, q, c uint64) uint64 {
	t = t[:len(mod)]
	for i := 1; i < len(mod); i++ {
		hi, lo := bits.Mul64(mod[i], q)
		var cc uint64
		lo, cc = bits.Add64(lo, t[i], 0)
		hi, _ = bits.Add64(hi, 0, cc)
		t[i-1], cc = bits.Add64(lo, c, 0)
		c, _ = bits.Add64(hi, 0, cc)
	}
	return c
}
