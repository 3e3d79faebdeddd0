package field

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Add sets dst = a+b. dst may alias its operands.
func (f *Field) Add(dst, a, b Element) {
	switch f.limbs {
	case 1:
		dst[0] = f.add1(a[0], b[0])
	case 2:
		add2((*[2]uint64)(dst), (*[2]uint64)(a), (*[2]uint64)(b), (*[2]uint64)(f.mod))
	case 4:
		add4((*[4]uint64)(dst), (*[4]uint64)(a), (*[4]uint64)(b), (*[4]uint64)(f.mod))
	default:
		carry := addWords(dst[:f.limbs], a, b, bitMask(1))
		f.subtractOnce(dst, dst, carry)
	}
}

// Sub sets dst = a-b. dst may alias its operands.
func (f *Field) Sub(dst, a, b Element) {
	switch f.limbs {
	case 1:
		dst[0] = sub1(a[0], b[0], f.mod[0])
	case 2:
		sub2((*[2]uint64)(dst), (*[2]uint64)(a), (*[2]uint64)(b), (*[2]uint64)(f.mod))
	case 4:
		sub4((*[4]uint64)(dst), (*[4]uint64)(a), (*[4]uint64)(b), (*[4]uint64)(f.mod))
	default:
		borrow := subWords(dst[:f.limbs], a, b)
		addWords(dst[:f.limbs], dst, f.mod, bitMask(borrow))
	}
}

// Neg sets dst = -a. dst may alias a.
func (f *Field) Neg(dst, a Element) {
	var zero [maxLimbs]uint64
	f.Sub(dst, zero[:f.limbs], a)
}

// Mul sets dst = a·b on Montgomery forms: dst = a·b/R mod p with R = 2^(64 L). One operand may be
// any L-limb integer if the other is below p. dst is below p and may alias its operands.
func (f *Field) Mul(dst, a, b Element) {
	switch f.limbs {
	case 1:
		dst[0] = f.mul1(a[0], b[0])
	case 2:
		mul2((*[2]uint64)(dst), (*[2]uint64)(a), (*[2]uint64)(b), (*[2]uint64)(f.mod), f.n0)
	case 4:
		mul4((*[4]uint64)(dst), (*[4]uint64)(a), (*[4]uint64)(b), (*[4]uint64)(f.mod), f.n0)
	default:
		f.mulGeneric(dst, a, b)
	}
}

// mulGeneric is Mul for any number of limbs.
func (f *Field) mulGeneric(dst, a, b Element) {
	var buf [maxLimbs + 1]uint64
	t := buf[:f.limbs+1]
	kernel.Montgomery(t, a, b, f.mod, f.n0)
	f.subtractOnce(dst, t[1:], t[0])
}

// subtractOnce sets dst = x mod p for x = top·R + t < 2p, top in {0,1}. dst may alias t.
func (f *Field) subtractOnce(dst, t []uint64, top uint64) {
	borrow := subWords(dst[:f.limbs], t, f.mod)
	addWords(dst[:f.limbs], dst, f.mod, bitMask(borrow&^top))
}

// addWords sets dst = a + (b & mask) and returns the carry. a and b are at least as long as dst.
func addWords(dst, a, b []uint64, mask uint64) (c uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for ; len(dst) >= 4; dst, a, b = dst[4:], a[4:], b[4:] { // the carry is not in its flag between two iterations
		d, x, y := (*[4]uint64)(dst), (*[4]uint64)(a), (*[4]uint64)(b)
		d[0], c = bits.Add64(x[0], y[0]&mask, c)
		d[1], c = bits.Add64(x[1], y[1]&mask, c)
		d[2], c = bits.Add64(x[2], y[2]&mask, c)
		d[3], c = bits.Add64(x[3], y[3]&mask, c)
	}
	for i := range dst {
		dst[i], c = bits.Add64(a[i], b[i]&mask, c)
	}
	return c
}

// subWords sets dst = a - b and returns the borrow. a and b are at least as long as dst.
func subWords(dst, a, b []uint64) (c uint64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for ; len(dst) >= 4; dst, a, b = dst[4:], a[4:], b[4:] {
		d, x, y := (*[4]uint64)(dst), (*[4]uint64)(a), (*[4]uint64)(b)
		d[0], c = bits.Sub64(x[0], y[0], c)
		d[1], c = bits.Sub64(x[1], y[1], c)
		d[2], c = bits.Sub64(x[2], y[2], c)
		d[3], c = bits.Sub64(x[3], y[3], c)
	}
	for i := range dst {
		dst[i], c = bits.Sub64(a[i], b[i], c)
	}
	return c
}

// reduceOnce1 is subtractOnce for one limb.
func (f *Field) reduceOnce1(t, top uint64) uint64 {
	r, borrow := bits.Sub64(t, f.mod[0], 0)
	keep := bitMask(borrow &^ top)
	return r ^ (r^t)&keep
}

// mul1 is Mul for one limb.
func (f *Field) mul1(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	h, l := bits.Mul64(lo*f.n0, f.mod[0])
	_, c := bits.Add64(l, lo, 0)
	r, top := bits.Add64(hi, h, c)
	return f.reduceOnce1(r, top)
}

// mulAddWord returns x·y + a + b as two words; it cannot overflow.
func mulAddWord(x, y, a, b uint64) (hi, lo uint64) {
	hi, lo = bits.Mul64(x, y)
	lo, c := bits.Add64(lo, a, 0)
	hi, _ = bits.Add64(hi, 0, c) // not hi += c, which would move the carry out of its flag
	lo, c = bits.Add64(lo, b, 0)
	hi, _ = bits.Add64(hi, 0, c)
	return hi, lo
}

func add2(dst, a, b, mod *[2]uint64) {
	s0, c := bits.Add64(a[0], b[0], 0)
	s1, c := bits.Add64(a[1], b[1], c)
	finish2(dst, s0, s1, c, mod)
}

// finish2 is subtractOnce for two limbs.
func finish2(dst *[2]uint64, t0, t1, top uint64, mod *[2]uint64) {
	r0, borrow := bits.Sub64(t0, mod[0], 0)
	r1, borrow := bits.Sub64(t1, mod[1], borrow)
	keep := bitMask(borrow &^ top)
	dst[0] = r0 ^ (r0^t0)&keep
	dst[1] = r1 ^ (r1^t1)&keep
}

// mul2 is Mul for two limbs.
func mul2(dst, a, b, mod *[2]uint64, n0 uint64) {
	c, t0 := bits.Mul64(a[0], b[0])
	t2, t1 := mulAddWord(a[1], b[0], c, 0)
	q := t0 * n0
	c, _ = mulAddWord(q, mod[0], t0, 0)
	c, t0 = mulAddWord(q, mod[1], t1, c)
	t1, top := bits.Add64(t2, c, 0)

	c, t0 = mulAddWord(a[0], b[1], t0, 0)
	c, t1 = mulAddWord(a[1], b[1], t1, c)
	t2, o := bits.Add64(top, c, 0)
	q = t0 * n0
	c, _ = mulAddWord(q, mod[0], t0, 0)
	c, t0 = mulAddWord(q, mod[1], t1, c)
	t1, top = bits.Add64(t2, c, 0)
	finish2(dst, t0, t1, top+o, mod)
}

func add4(dst, a, b, mod *[4]uint64) {
	s0, c := bits.Add64(a[0], b[0], 0)
	s1, c := bits.Add64(a[1], b[1], c)
	s2, c := bits.Add64(a[2], b[2], c)
	s3, c := bits.Add64(a[3], b[3], c)
	finish4(dst, s0, s1, s2, s3, c, mod)
}

// finish4 is subtractOnce for four limbs.
func finish4(dst *[4]uint64, t0, t1, t2, t3, top uint64, mod *[4]uint64) {
	r0, borrow := bits.Sub64(t0, mod[0], 0)
	r1, borrow := bits.Sub64(t1, mod[1], borrow)
	r2, borrow := bits.Sub64(t2, mod[2], borrow)
	r3, borrow := bits.Sub64(t3, mod[3], borrow)
	keep := bitMask(borrow &^ top)
	dst[0] = r0 ^ (r0^t0)&keep
	dst[1] = r1 ^ (r1^t1)&keep
	dst[2] = r2 ^ (r2^t2)&keep
	dst[3] = r3 ^ (r3^t3)&keep
}

// mul4 is Mul for four limbs.
func mul4(dst, a, b, mod *[4]uint64, n0 uint64) {
	var t0, t1, t2, t3, top uint64
	for _, w := range b {
		var c, o1, o2, over uint64
		c, t0 = mulAddWord(a[0], w, t0, 0)
		c, t1 = mulAddWord(a[1], w, t1, c)
		c, t2 = mulAddWord(a[2], w, t2, c)
		c, t3 = mulAddWord(a[3], w, t3, c)
		over, o1 = bits.Add64(top, c, 0)
		q := t0 * n0
		c, _ = mulAddWord(q, mod[0], t0, 0)
		c, t0 = mulAddWord(q, mod[1], t1, c)
		c, t1 = mulAddWord(q, mod[2], t2, c)
		c, t2 = mulAddWord(q, mod[3], t3, c)
		t3, o2 = bits.Add64(over, c, 0)
		top = o1 + o2
	}
	finish4(dst, t0, t1, t2, t3, top, mod)
}
