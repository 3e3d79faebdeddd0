package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector writes the slot-by-slot operations on vectors of any length.
func vector(a *assembler) {
	for _, set := range []instructions{avx2, avx512, ifma} {
		a.avx2 = set == avx2
		if set != ifma {
			a.sums(set)
		}
		a.products(set)
		a.sumsOfProducts(set)
	}
}

// sums writes additions and subtractions.
func (a *assembler) sums(set instructions) {
	a.slots("add", set, []string{"a", "b"}, "", "dst = a + b mod q", func() operation {
		q := a.broadcast("q")
		return func(x []reg.VecVirtual) reg.VecVirtual {
			a.VPADDQ(x[1], x[0], x[0])
			a.once(x[0], q)
			return x[0]
		}
	})
	a.slots("sub", set, []string{"a", "b"}, "", "dst = a - b mod q", func() operation {
		q := a.broadcast("q")
		return func(x []reg.VecVirtual) reg.VecVirtual { return a.subtract(x[0], x[1], q) }
	})
	a.slots("neg", set, []string{"a"}, "", "dst = -a mod q", func() operation {
		q, zero := a.broadcast("q"), a.zero()
		return func(x []reg.VecVirtual) reg.VecVirtual { return a.subtract(zero, x[0], q) }
	})
	a.slots("signed", set, []string{"a"}, "", "dst = a mod q for signed a, |a| < q", func() operation {
		q := a.broadcast("q")
		return func(x []reg.VecVirtual) reg.VecVirtual {
			sum := a.vec()
			a.VPADDQ(q, x[0], sum)
			a.smaller(x[0], sum, x[0]) // a negative integer is large as a word, and plus q it is not
			return x[0]
		}
	})
	a.slots("digit", set, []string{"a"}, "centre, offset, shift, mask, middle ", "dst = a digit of a, with fields of Digit", func() operation {
		q, centre, offset := a.broadcast("q"), a.broadcast("centre"), a.broadcast("offset")
		shift, mask, middle := a.broadcast("shift"), a.broadcast("mask"), a.broadcast("middle")
		return func(x []reg.VecVirtual) reg.VecVirtual {
			r, sum := x[0], a.vec()
			a.VPADDQ(centre, r, r)
			a.once(r, q)
			a.VPADDQ(offset, r, r)
			a.VPSRLVQ(shift, r, r)
			if a.avx2 {
				a.VPAND(mask, r, r)
			} else {
				a.VPANDQ(mask, r, r)
			}
			a.VPSUBQ(middle, r, r)
			a.VPADDQ(q, r, sum)
			a.smaller(r, sum, r) // as in signed
			return r
		}
	})
}

func (a *assembler) products(set instructions) {
	operand := "any words"
	if set == ifma {
		operand = "words below 2^52"
	}
	a.slots("scale", set, []string{"a"}, "c, scaled ", "dst = c a mod q for a of "+operand+" and scaled = floor(2^64 c/q)",
		func() operation {
			m := a.arithmetic(set, a.broadcast("q"))
			f := m.prepare(a, factor{c: a.broadcast("c"), scaled: a.broadcast("scaled")})
			return func(x []reg.VecVirtual) reg.VecVirtual {
				r := m.scale(a, x[0], f)
				m.canonical(a, r)
				return r
			}
		})
	for _, add := range []bool{false, true} {
		name, doc, operands := "mul", "dst = a b mod q", []string{"a", "b"}
		if add {
			name, doc, operands = "mulAdd", "dst += a b mod q", append(operands, "dst")
		}
		a.slots(name, set, operands, "short, shift ", doc+", with fields of Modulus", func() operation {
			if set == ifma {
				return a.product52(add)
			}
			return a.product64(set, add)
		})
	}
}

// sumsOfProducts writes a sum of two products modulo q, for IFMA, and a sum of multiples of words.
func (a *assembler) sumsOfProducts(set instructions) {
	if set == ifma {
		a.slots("mulSum", set, []string{"a", "b", "c", "d"}, "short, shift ", "dst = a b + c d mod q, with fields of Modulus",
			a.productSum52)
		return
	}
	a.slots("addMultiples", set, []string{"a", "b", "c", "d", "dst"}, "f0, f1, f2, f3 ",
		"dst += f0 a + f1 b + f2 c + f3 d mod 2^64", func() operation {
			f := []reg.VecVirtual{a.broadcast("f0"), a.broadcast("f1"), a.broadcast("f2"), a.broadcast("f3")}
			return func(x []reg.VecVirtual) reg.VecVirtual {
				for i, y := range f {
					p := x[i]
					if a.avx2 {
						p = a.lowerProduct(p, a.upper(p), y, a.upper(y))
					} else {
						a.VPMULLQ(y, p, p)
					}
					a.VPADDQ(p, x[4], x[4])
				}
				return x[4]
			}
		})
}

// operation computes the slots of a vector. It may destroy its operands.
type operation func([]reg.VecVirtual) reg.VecVirtual

// slots writes a function that applies an operation to n slots of operands, of which the last may
// be dst. more lists its word parameters except q.
func (a *assembler) slots(name string, set instructions, operands []string, more, doc string, prepare func() operation) {
	parameters := "dst"
	for _, o := range operands {
		if o != "dst" {
			parameters += ", " + o
		}
	}
	if more != "" {
		more = fmt.Sprintf("%suint64, ", more)
	}
	count := "n slots"
	if a.avx2 {
		count = "n slots, a multiple of 4, not 0"
	}
	a.function(name+string(set), parameters+" *uint64, n int, "+more+"q uint64", "sets %s, for %s.", doc, count)
	dst, n, i := a.arg("dst"), a.arg("n"), a.GP64()
	var from []reg.GPVirtual
	for _, o := range operands {
		if o == "dst" {
			from = append(from, dst)
		} else {
			from = append(from, a.arg(o))
		}
	}
	do := prepare()
	words := uint64(a.words())
	a.XORQ(i, i)
	if !a.avx2 {
		a.SUBQ(Imm(words), n)
		a.JLT(LabelRef("tail"))
	}
	a.Label("vector")
	x := make([]reg.VecVirtual, len(from))
	for j, f := range from {
		x[j] = a.load(Mem{Base: f, Index: i, Scale: 8})
	}
	a.move(do(x), Mem{Base: dst, Index: i, Scale: 8})
	a.ADDQ(Imm(words), i)
	a.SUBQ(Imm(words), n)
	if a.avx2 {
		a.JNZ(LabelRef("vector"))
		a.done()
		return
	}
	a.JGE(LabelRef("vector"))

	a.Label("tail")
	a.ADDQ(Imm(8), n)
	a.JZ(LabelRef("done"))
	ones, k := a.GP64(), a.K()
	a.MOVQ(U32(0xff), ones)
	a.SHLXQ(n, ones, ones) // the 8 bits from bit n on
	a.NOTQ(ones)
	a.KMOVB(ones.As32(), k)
	for j, f := range from {
		x[j] = a.ZMM()
		a.VMOVDQU64_Z(Mem{Base: f, Index: i, Scale: 8}, k, x[j])
	}
	a.VMOVDQU64(do(x), k, Mem{Base: dst, Index: i, Scale: 8})
	a.Label("done")
	a.done()
}

// subtract returns x - y mod q.
func (a *assembler) subtract(x, y, q reg.VecVirtual) reg.VecVirtual {
	d, t := a.vec(), a.vec()
	a.VPSUBQ(y, x, d)
	a.VPADDQ(q, d, t) // the smaller one if d is negative
	a.smaller(d, t, d)
	return d
}

// product52 serves moduli of n <= 50 bits, with short = floor(2^(n+62)/q) and shift = n-2. The
// quotient is estimated from floor(x/2^(n-2)) < 2^52 and floor(2^(n+50)/q) < 2^51. Each loses a
// fraction, so the remainder is below 2.5q.
func (a *assembler) product52(add bool) operation {
	m := a.arithmetic(ifma, a.broadcast("q"))
	short, right, left := a.broadcast("short"), a.broadcast("shift"), a.lanes(52)
	a.VPSRLQ(Imm(12), short, short)
	a.VPSUBQ(right, left, left)
	return func(x []reg.VecVirtual) reg.VecVirtual {
		hi, lo, quotient, top := a.zero(), a.zero(), a.zero(), a.ZMM()
		if add {
			lo = x[2]
		}
		a.VPMADD52LUQ(x[0], x[1], lo) // below 2^53
		a.VPMADD52HUQ(x[0], x[1], hi)
		a.VPSRLVQ(right, lo, top)
		a.VPSLLVQ(left, hi, hi)
		a.VPADDQ(hi, top, top)
		a.VPMADD52HUQ(short, top, quotient)
		a.VPMADD52LUQ(m.minusQ, quotient, lo)
		a.VPANDQ(m.low, lo, lo)
		a.once(lo, m.bound)
		a.once(lo, m.q)
		return lo
	}
}

// productSum52 is product52 for x = a b + c d < 2^(2n+1): the quotient is estimated from
// floor(x/2^(n-1)) < 2^52 and floor(2^(n+51)/q) < 2^52. Each loses a fraction, so the estimate is
// less than 3 too small.
func (a *assembler) productSum52() operation {
	m := a.arithmetic(ifma, a.broadcast("q"))
	short, right, left := a.broadcast("short"), a.broadcast("shift"), a.lanes(51)
	one := a.lanes(1)
	a.VPSRLQ(Imm(11), short, short)
	a.VPSUBQ(right, left, left) // 52 - (n-1)
	a.VPADDQ(one, right, right)
	return func(x []reg.VecVirtual) reg.VecVirtual {
		hi, lo, quotient, top := a.zero(), a.zero(), a.zero(), a.ZMM()
		a.VPMADD52LUQ(x[0], x[1], lo)
		a.VPMADD52HUQ(x[0], x[1], hi)
		a.VPMADD52LUQ(x[2], x[3], lo) // below 2^53
		a.VPMADD52HUQ(x[2], x[3], hi)
		a.VPSRLVQ(right, lo, top)
		a.VPSLLVQ(left, hi, hi)
		a.VPADDQ(hi, top, top)
		a.VPMADD52HUQ(short, top, quotient)
		a.VPMADD52LUQ(m.minusQ, quotient, lo)
		a.VPANDQ(m.low, lo, lo)
		a.once(lo, m.bound)
		a.once(lo, m.q)
		return lo
	}
}

// product64 computes the product of Modulus. As upperProduct may be too small by 2 more, the
// remainder is below 4q.
func (a *assembler) product64(set instructions, add bool) operation {
	m := a.arithmetic(set, a.broadcast("q"))
	short, right, left, low32 := a.broadcast("short"), a.broadcast("shift"), a.lanes(64), a.lanes(1<<32-1)
	upper := a.upper(short)
	a.VPSUBQ(right, left, left)
	return func(x []reg.VecVirtual) reg.VecVirtual {
		hi, lo := a.wideProduct(x[0], x[1], low32)
		r := a.vec()
		a.VPSRLVQ(right, lo, r)
		a.VPSLLVQ(left, hi, hi) // 0 if shifted by 64, but then hi is 0
		a.VPADDQ(hi, r, r)
		r = m.timesQ(a, a.upperProduct(r, a.upper(r), short, upper))
		a.VPSUBQ(r, lo, lo)
		if add {
			a.VPADDQ(x[2], lo, lo)
			a.once(lo, m.bound)
		}
		m.canonical(a, lo)
		return lo
	}
}

// wideProduct returns x y = 2^64 hi + lo. low32 is 2^32-1.
func (a *assembler) wideProduct(x, y, low32 reg.VecVirtual) (hi, lo reg.VecVirtual) {
	x1, y1, lo, p01, p10 := a.upper(x), a.upper(y), a.vec(), a.vec(), a.vec()
	hi = a.vec()
	a.VPMULUDQ(x, y, lo)
	a.VPMULUDQ(x, y1, p01)
	a.VPMULUDQ(x1, y, p10)
	a.VPMULUDQ(x1, y1, hi)
	a.VPADDQ(a.upper(lo), p10, p10) // no overflow: (2^32-1)^2 + 2^32-1
	t := a.vec()
	if a.avx2 {
		a.VPAND(low32, p10, t)
		a.VPAND(low32, lo, lo)
	} else {
		a.VPANDQ(low32, p10, t)
		a.VPMULLQ(x, y, lo)
	}
	a.VPADDQ(t, p01, p01)
	a.VPADDQ(a.upper(p10), hi, hi)
	a.VPADDQ(a.upper(p01), hi, hi)
	if a.avx2 {
		a.VPSLLQ(Imm(32), p01, p01)
		a.VPADDQ(p01, lo, lo)
	}
	return hi, lo
}
