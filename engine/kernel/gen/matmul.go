package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// matmul writes the inner products of MatMul: rows of the left factor with a panel of columns of
// the right one, for moduli of up to 50 bits with IFMA and of up to 61 bits without.
func matmul(a *assembler) {
	for _, rows := range []int{4, 1} {
		for vectors := 1; vectors <= 3; vectors++ {
			a.matmul52(rows, vectors)
		}
	}
	for _, rows := range []int{2, 1} {
		a.matmul64(avx512, rows)
	}
	a.avx2 = true
	a.matmul64(avx2, 1)
}

// matmul52 multiplies rows of a by columns of a panel, 8 per vector. Sums of lower and upper halves
// of the products stay in registers. With k <= 4096 the lower sums are below 2^64 and, as the
// modulus has at most 50 bits, the upper ones below 2^60.
func (a *assembler) matmul52(rows, vectors int) {
	a.function(fmt.Sprintf("matmul%dx%dIFMA", rows, 8*vectors),
		"dst *uint64, stride int, a *uint64, next, step int, panel *uint64, k int, c *[10]uint64, mask uint64",
		"multiplies %d rows of a, which are next words apart and their terms step words, by %d columns: panel is "+
			"k x %d. The rows of dst are stride words apart, and mask says which of the last 8 columns are written. 1 <= k <= 4096.", rows, 8*vectors, 8*vectors)
	left, panel, k := a.rows("a", "next", rows), a.arg("panel"), a.arg("k")
	step := a.arg("step")
	a.SHLQ(Imm(3), step)
	lo, hi := a.zeros(rows*vectors), a.zeros(rows*vectors)
	b := make([]reg.VecVirtual, vectors)
	for v := range b {
		b[v] = a.ZMM()
	}
	x := a.ZMM()
	a.Label("term")
	for v := range b {
		a.VMOVDQU64(Mem{Base: panel, Disp: 64 * v}, b[v])
	}
	for r := range rows {
		a.VPBROADCASTQ(left[r], x)
		for v := range b {
			a.VPMADD52LUQ(x, b[v], lo[r*vectors+v])
			a.VPMADD52HUQ(x, b[v], hi[r*vectors+v])
		}
	}
	a.ADDQ(step, left[0].Base)
	a.ADDQ(Imm(uint64(64*vectors)), panel)
	a.DECQ(k)
	a.JNZ(LabelRef("term"))

	c, low := a.arg("c"), a.lowest52()
	dst, mask := a.rows("dst", "stride", rows), a.mask("mask")
	for r := range rows {
		for v := range vectors {
			sum := a.reduce52(c, low, lo[r*vectors+v], hi[r*vectors+v])
			at := dst[r]
			at.Disp += 64 * v
			if v == vectors-1 {
				a.VMOVDQU64(sum, mask, at)
			} else {
				a.VMOVDQU64(sum, at)
			}
		}
	}
	a.done()
}

// rows returns the addresses of up to 4 rows of words at a pointer. A parameter holds their
// distance in words. All share one base.
func (a *assembler) rows(pointer, apart string, rows int) []Mem {
	base := a.arg(pointer)
	at := []Mem{{Base: base}}
	if rows == 1 {
		return at
	}
	step := a.arg(apart)
	a.SHLQ(Imm(3), step)
	at = append(at, Mem{Base: base, Index: step, Scale: 1}, Mem{Base: base, Index: step, Scale: 2})
	if rows > 3 {
		three := a.GP64()
		a.LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
		at = append(at, Mem{Base: base, Index: three, Scale: 1})
	}
	return at[:rows]
}

// reduce52 returns (lo + 2^52 hi) mod q for any lo and for hi < 2^61. It destroys both. c points to
// q, 2q, 4q, -q, and 1, 2^52 and 2^104 mod q, each with its scaled quotient: few registers are
// free.
func (a *assembler) reduce52(c reg.GPVirtual, low, lo, hi reg.VecVirtual) reg.VecVirtual {
	top := a.ZMM()
	a.VPSRLQ(Imm(52), lo, top)
	a.VPADDQ(top, hi, hi)
	a.VPSRLQ(Imm(52), hi, top)
	// Each product is below 2q, and only the lowest 52 bits of its operand count.
	var sum reg.VecVirtual
	for i, x := range []reg.VecVirtual{lo, hi, top} {
		quotient, r := a.zero(), a.zero()
		a.VPMADD52HUQ_BCST(Mem{Base: c, Disp: 40 + 16*i}, x, quotient)
		a.VPMADD52LUQ_BCST(Mem{Base: c, Disp: 32 + 16*i}, x, r)
		a.VPMADD52LUQ_BCST(Mem{Base: c, Disp: 24}, quotient, r)
		a.VPANDQ(low, r, r)
		if i == 0 {
			sum = r
		} else {
			a.VPADDQ(r, sum, sum)
		}
	}
	for _, multiple := range []int{16, 8, 0} {
		a.VPSUBQ_BCST(Mem{Base: c, Disp: multiple}, sum, top)
		a.VPMINUQ(top, sum, sum)
	}
	return sum
}

// matmul64 multiplies rows of a by the columns of a vector. Entries of a and of the panel are
// split, lower half in the lower 32 bits. Sums of the products of halves stay in registers. After
// lazy terms, before they can overflow, their upper 32 bits are added to one sum, and they
// themselves, modulo 2^64, to another.
func (a *assembler) matmul64(set instructions, rows int) {
	columns := a.words()
	a.function(fmt.Sprintf("matmul%dx%d%s", rows, columns, set),
		"dst *uint64, stride int, a *uint64, next, step int, panel *uint64, k int, c *[14]uint64, mask uint64",
		"multiplies %d rows of a, which are next words apart and their terms step words, by %d columns: panel is "+
			"k x %d. The rows of dst are stride words apart, and mask says which of the columns are written. 1 <= k < 2^30.", rows, columns, columns)
	left, panel, k := a.rows("a", "next", rows), a.arg("panel"), a.arg("k")
	step := a.arg("step")
	a.SHLQ(Imm(3), step)
	c := a.arg("c")
	sum := a.zeros(3 * rows) // lower, cross and upper products per row
	wide, upper := a.zeros(3*rows), a.zeros(3*rows)
	b0, b1, x0, x1 := a.vec(), a.vec(), a.vec(), a.vec()
	lazy := a.GP64()
	a.Label("block")
	a.MOVQ(Mem{Base: c, Disp: 8}, lazy)
	a.CMPQ(k, lazy)
	a.CMOVQLT(k, lazy)
	a.SUBQ(lazy, k)
	a.Label("term")
	a.move(Mem{Base: panel}, b0)
	a.VPSRLQ(Imm(32), b0, b1)
	for r := range rows {
		a.VPBROADCASTD(left[r], x0)
		at := left[r]
		at.Disp += 4
		a.VPBROADCASTD(at, x1)
		multiply := func(x, b reg.VecVirtual) reg.VecVirtual {
			p := a.vec()
			a.VPMULUDQ(x, b, p)
			return p
		}
		lower, cross := multiply(x0, b0), multiply(x0, b1)
		a.VPADDQ(lower, sum[3*r], sum[3*r])
		other, upper := multiply(x1, b0), multiply(x1, b1)
		a.VPADDQ(other, cross, cross) // one addition to each sum, as each addition waits for the one before
		a.VPADDQ(upper, sum[3*r+2], sum[3*r+2])
		a.VPADDQ(cross, sum[3*r+1], sum[3*r+1])
	}
	a.ADDQ(step, left[0].Base)
	a.ADDQ(Imm(uint64(8*columns)), panel)
	a.DECQ(lazy)
	a.JNZ(LabelRef("term"))
	for i, s := range sum {
		a.VPADDQ(s, wide[i], wide[i])
		a.VPSRLQ(Imm(32), s, s)
		a.VPADDQ(s, upper[i], upper[i])
		a.clear(s)
	}
	a.TESTQ(k, k)
	a.JNZ(LabelRef("block"))

	m := a.arithmetic(set, a.at(c))
	dst := a.rows("dst", "stride", rows)
	for r := range rows {
		var total reg.VecVirtual
		for i := 3 * r; i < 3*r+3; i++ {
			t := a.vec() // sum of the lower 32 bits
			a.VPSLLQ(Imm(32), upper[i], t)
			a.VPSUBQ(t, wide[i], wide[i])
			for half, x := range []reg.VecVirtual{wide[i], upper[i]} {
				f := a.factor(m, Mem{Base: c, Disp: 16 + 32*(i-3*r) + 16*half}, Mem{Base: c, Disp: 24 + 32*(i-3*r) + 16*half})
				p := m.scale(a, x, f)
				if total == nil {
					total = p
				} else {
					a.VPADDQ(p, total, total)
					a.once(total, m.bound)
				}
			}
		}
		m.canonical(a, total)
		a.storeMasked(total, "mask", dst[r])
	}
	a.done()
}

// at returns the word at a pointer in all lanes.
func (a *assembler) at(base reg.GPVirtual) reg.VecVirtual {
	z := a.vec()
	a.VPBROADCASTQ(Mem{Base: base}, z)
	return z
}

// storeMasked stores the lanes whose bits are set in a parameter.
func (a *assembler) storeMasked(x reg.VecVirtual, mask string, to Mem) {
	if !a.avx2 {
		a.VMOVDQU64(x, a.mask(mask), to)
		return
	}
	bits := a.StaticGlobal("laneBits")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 4 {
		a.AddDatum(8*i, U64(1<<i))
	}
	lanes := a.load(bits)
	m := a.broadcast(mask)
	a.VPAND(lanes, m, m)
	a.VPCMPEQQ(lanes, m, m)
	a.VPMASKMOVQ(x, m, to)
}
