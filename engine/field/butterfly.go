package field

import "math/bits"

// split sets (lo, hi) to (lo + z·hi, lo - z·hi), element by element. There are special loops for
// the usual numbers of limbs. t is scratch.
func (f *Field) split(lo, hi Vec, z, t Element) {
	x, y := lo.W, hi.W[:len(lo.W)]
	switch f.limbs {
	case 1:
		c, p := z[0], f.mod[0]
		for i, a := range x {
			b := f.mul1(y[i], c)
			x[i], y[i] = f.add1(a, b), sub1(a, b, p)
		}
	case 2:
		var b [2]uint64
		c, p, n0 := (*[2]uint64)(z), (*[2]uint64)(f.mod), f.n0
		for ; len(x) >= 2; x, y = x[2:], y[2:] {
			u, v := (*[2]uint64)(x), (*[2]uint64)(y)
			mul2(&b, v, c, p, n0)
			sub2(v, u, &b, p)
			add2(u, u, &b, p)
		}
		clear(b[:])
	case 4:
		var b [4]uint64
		c, p, n0 := (*[4]uint64)(z), (*[4]uint64)(f.mod), f.n0
		for ; len(x) >= 4; x, y = x[4:], y[4:] {
			u, v := (*[4]uint64)(x), (*[4]uint64)(y)
			mul4(&b, v, c, p, n0)
			sub4(v, u, &b, p)
			add4(u, u, &b, p)
		}
		clear(b[:])
	default:
		for j := range lo.Len() {
			u, v := lo.At(j), hi.At(j)
			f.Mul(t, v, z)
			f.Sub(v, u, t)
			f.Add(u, u, t)
		}
	}
}

// merge sets (lo, hi) to (lo + hi, z·(lo - hi)), element by element. t is scratch.
func (f *Field) merge(lo, hi Vec, z, t Element) {
	x, y := lo.W, hi.W[:len(lo.W)]
	switch f.limbs {
	case 1:
		c, p := z[0], f.mod[0]
		for i, a := range x {
			b := y[i]
			x[i], y[i] = f.add1(a, b), f.mul1(sub1(a, b, p), c)
		}
	case 2:
		var d [2]uint64
		c, p, n0 := (*[2]uint64)(z), (*[2]uint64)(f.mod), f.n0
		for ; len(x) >= 2; x, y = x[2:], y[2:] {
			u, v := (*[2]uint64)(x), (*[2]uint64)(y)
			sub2(&d, u, v, p)
			add2(u, u, v, p)
			mul2(v, &d, c, p, n0)
		}
		clear(d[:])
	case 4:
		var d [4]uint64
		c, p, n0 := (*[4]uint64)(z), (*[4]uint64)(f.mod), f.n0
		for ; len(x) >= 4; x, y = x[4:], y[4:] {
			u, v := (*[4]uint64)(x), (*[4]uint64)(y)
			sub4(&d, u, v, p)
			add4(u, u, v, p)
			mul4(v, &d, c, p, n0)
		}
		clear(d[:])
	default:
		for j := range lo.Len() {
			u, v := lo.At(j), hi.At(j)
			f.Sub(t, u, v)
			f.Add(u, u, v)
			f.Mul(v, t, z)
		}
	}
}

// add1 returns a+b for one limb.
func (f *Field) add1(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	return f.reduceOnce1(s, carry)
}

// sub1 returns a-b for one limb.
func sub1(a, b, p uint64) uint64 {
	d, borrow := bits.Sub64(a, b, 0)
	return d + p&bitMask(borrow)
}

func sub2(dst, a, b, mod *[2]uint64) {
	d0, c := bits.Sub64(a[0], b[0], 0)
	d1, c := bits.Sub64(a[1], b[1], c)
	mask := bitMask(c)
	d0, c = bits.Add64(d0, mod[0]&mask, 0)
	dst[1], _ = bits.Add64(d1, mod[1]&mask, c)
	dst[0] = d0
}

func sub4(dst, a, b, mod *[4]uint64) {
	d0, c := bits.Sub64(a[0], b[0], 0)
	d1, c := bits.Sub64(a[1], b[1], c)
	d2, c := bits.Sub64(a[2], b[2], c)
	d3, c := bits.Sub64(a[3], b[3], c)
	mask := bitMask(c)
	dst[0], c = bits.Add64(d0, mod[0]&mask, 0)
	dst[1], c = bits.Add64(d1, mod[1]&mask, c)
	dst[2], c = bits.Add64(d2, mod[2]&mask, c)
	dst[3], _ = bits.Add64(d3, mod[3]&mask, c)
}
