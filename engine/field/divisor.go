package field

import (
	"math/big"
	"math/bits"
)

// divisor divides multi-word integers by a fixed public d of one or two words. Its time depends
// only on lengths: it multiplies by a precomputed reciprocal instead of using a divide instruction
// (Möller and Granlund, Improved division by invariant integers, 2011, algorithms 4 and 5), and
// makes corrections with masks instead of branches.
type divisor struct {
	words  int    // of d
	shift  uint   // d·2^shift has its top bit set
	d1, d0 uint64 // d·2^shift; d0 is unused if words = 1
	v      uint64 // floor((2^(64 words+64)-1) / (d·2^shift)) - 2^64
}

// newDivisor returns the divisor for 0 < d < 2^128.
func newDivisor(d *big.Int) divisor {
	words := (d.BitLen() + 63) / 64
	shift := uint(64*words - d.BitLen())
	norm := new(big.Int).Lsh(d, shift)
	v := new(big.Int).Lsh(big.NewInt(1), uint(64*words+64))
	v.Sub(v, big.NewInt(1))
	v.Div(v, norm)
	v.Sub(v, new(big.Int).Lsh(big.NewInt(1), 64))
	out := divisor{words: words, shift: shift, v: v.Uint64()}
	low := new(big.Int).And(norm, new(big.Int).SetUint64(^uint64(0))).Uint64()
	if words == 1 {
		out.d1 = low
	} else {
		out.d0, out.d1 = low, norm.Rsh(norm, 64).Uint64()
	}
	return out
}

// divide replaces the little-endian integer x by floor(x/d) and returns the remainder, hi·2^64+lo.
func (d *divisor) divide(x []uint64) (hi, lo uint64) {
	n := len(x)
	next := x[n-1] >> 1 >> (63 - d.shift) // bits that the normalising shift moves out of x
	if d.words == 1 {
		r := next
		for i := n - 1; i >= 0; i-- {
			x[i], r = d.step1(r, d.shifted(x, i))
		}
		return 0, r >> d.shift
	}
	r1, r0 := uint64(0), next
	for i := n - 1; i >= 0; i-- {
		x[i], r1, r0 = d.step2(r1, r0, d.shifted(x, i))
	}
	return r1 >> d.shift, r0>>d.shift | r1<<1<<(63-d.shift)
}

// abreast is the number of integers divided concurrently, because every step of a division waits
// for the previous one.
const abreast = 4

// divideAbreast is divide for the first n words of several integers. It returns the remainders,
// lower word first.
func (d *divisor) divideAbreast(x *[abreast][]uint64, n int) (r [abreast][2]uint64) {
	if d.words != 1 || d.shift != 0 {
		for k := range x {
			r[k][1], r[k][0] = d.divide(x[k][:n])
		}
		return r
	}
	x0, x1, x2, x3 := x[0][:n], x[1][:n], x[2][:n], x[3][:n]
	var r0, r1, r2, r3 uint64
	for i := n - 1; i >= 0; i-- {
		x0[i], r0 = d.step1(r0, x0[i])
		x1[i], r1 = d.step1(r1, x1[i])
		x2[i], r2 = d.step1(r2, x2[i])
		x3[i], r3 = d.step1(r3, x3[i])
	}
	r[0][0], r[1][0], r[2][0], r[3][0] = r0, r1, r2, r3
	return r
}

// shifted returns word i of x·2^shift.
func (d *divisor) shifted(x []uint64, i int) uint64 {
	w := x[i] << d.shift
	if i > 0 {
		w |= x[i-1] >> 1 >> (63 - d.shift)
	}
	return w
}

// step1 divides u1·2^64+u0 by d1, for u1 < d1.
func (d *divisor) step1(u1, u0 uint64) (q, r uint64) {
	q, low := bits.Mul64(d.v, u1)
	low, c := bits.Add64(low, u0, 0)
	q, _ = bits.Add64(q, u1, c)
	q++
	r = u0 - q*d.d1
	_, above := bits.Sub64(low, r, 0) // r > low
	q -= above
	r += d.d1 & bitMask(above)
	t, below := bits.Sub64(r, d.d1, 0)
	q += 1 ^ below
	return q, t ^ (t^r)&bitMask(below)
}

// step2 divides u2·2^128+u1·2^64+u0 by d1·2^64+d0, for u2·2^64+u1 below it.
func (d *divisor) step2(u2, u1, u0 uint64) (q, r1, r0 uint64) {
	q, low := bits.Mul64(d.v, u2)
	low, c := bits.Add64(low, u1, 0)
	q, _ = bits.Add64(q, u2, c)
	r1 = u1 - q*d.d1
	t1, t0 := bits.Mul64(d.d0, q)
	r0, c = bits.Sub64(u0, t0, 0)
	r1, _ = bits.Sub64(r1, t1, c)
	r0, c = bits.Sub64(r0, d.d0, 0)
	r1, _ = bits.Sub64(r1, d.d1, c)
	q++
	_, below := bits.Sub64(r1, low, 0)
	back := bitMask(1 ^ below) // r1 >= low
	q += back
	r0, c = bits.Add64(r0, d.d0&back, 0)
	r1, _ = bits.Add64(r1, d.d1&back, c)
	s0, c := bits.Sub64(r0, d.d0, 0)
	s1, c := bits.Sub64(r1, d.d1, c)
	q += 1 ^ c
	keep := bitMask(c)
	return q, s1 ^ (s1^r1)&keep, s0 ^ (s0^r0)&keep
}
