package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// extend writes sums over rows of residues, for 8 slots at a time.
func extend(a *assembler) {
	a.roundFractions()
	a.sum52()
	a.sum64()
}

// rowSums is a loop over groups of 8 slots, and within it over the rows and what belongs to each.
type rowSums struct {
	y, row, stride, terms, left, data, at reg.GPVirtual
	size                                  int // of data, per row, in bytes
}

func (a *assembler) rowSums(data string, size int) *rowSums {
	r := &rowSums{y: a.arg("y"), row: a.GP64(), stride: a.arg("stride"), terms: a.arg("terms"), left: a.GP64(),
		data: a.arg(data), at: a.GP64(), size: size}
	a.SHLQ(Imm(3), r.stride)
	return r
}

// rows runs do for every row of a group, with its 8 words.
func (r *rowSums) rows(a *assembler, do func(y reg.VecVirtual)) {
	a.MOVQ(r.y, r.row)
	a.MOVQ(r.data, r.at)
	a.MOVQ(r.terms, r.left)
	a.Label("row")
	do(a.load(Mem{Base: r.row}))
	a.ADDQ(r.stride, r.row)
	a.ADDQ(Imm(uint64(r.size)), r.at)
	a.DECQ(r.left)
	a.JNZ(LabelRef("row"))
	a.ADDQ(Imm(64), r.y)
}

// roundFractions is RoundFractions: the sums modulo 2^64, and the number of times that they overflow.
func (a *assembler) roundFractions() {
	a.function("roundFractionsAVX512", "v *uint8, y *uint64, stride, n int, fractions *uint64, terms int",
		"is RoundFractions for n slots, a multiple of 8, not 0, and as many terms.")
	v, n, r := a.arg("v"), a.arg("n"), a.rowSums("fractions", 16)
	half, one, low32, length := a.lanes(1<<63), a.lanes(1), a.lanes(1<<32-1), a.lanes(64)
	sum, carries := a.ZMM(), a.ZMM()
	a.Label("group")
	a.VMOVDQA64(half, sum)
	a.clear(carries)
	r.rows(a, func(y reg.VecVirtual) {
		scaled, right, left := a.ZMM(), a.ZMM(), a.ZMM()
		a.VPBROADCASTQ(Mem{Base: r.at}, scaled)
		a.VPBROADCASTQ(Mem{Base: r.at, Disp: 8}, right)
		a.VPSUBQ(right, length, left)
		hi, lo := a.wideProduct(y, scaled, low32)
		a.VPSLLVQ(left, hi, hi)
		a.VPSRLVQ(right, lo, lo)
		a.VPORQ(hi, lo, lo)
		a.VPADDQ(lo, sum, sum)
		k := a.K()
		a.VPCMPUQ(Imm(1), lo, sum, k) // sum < lo
		a.VPADDQ(one, carries, k, carries)
	})
	a.VPMOVQB(carries, Mem{Base: v})
	a.ADDQ(Imm(8), v)
	a.SUBQ(Imm(8), n)
	a.JNZ(LabelRef("group"))
	a.done()
}

// sum52 adds up lower and upper halves of products below 2^100, 61 at most.
func (a *assembler) sum52() {
	a.function("sumIFMA", "dst, y *uint64, v *uint8, stride, n int, weights *uint64, terms int, c *[10]uint64",
		"is Sum.Apply for n slots, a multiple of 8, not 0, as many terms, and rows and moduli of at most 50 bits.")
	dst, v, n, r := a.arg("dst"), a.arg("v"), a.arg("n"), a.rowSums("weights", 16)
	c, low := a.arg("c"), a.lowest52()
	a.Label("group")
	lo, hi := a.zero(), a.zero()
	r.rows(a, func(y reg.VecVirtual) {
		a.VPMADD52LUQ_BCST(Mem{Base: r.at}, y, lo)
		a.VPMADD52HUQ_BCST(Mem{Base: r.at}, y, hi)
	})
	x := a.ZMM()
	a.VPMOVZXBQ(Mem{Base: v}, x)
	a.VPMADD52LUQ_BCST(Mem{Base: r.at}, x, lo)
	a.VPMADD52HUQ_BCST(Mem{Base: r.at}, x, hi)
	a.VMOVDQU64(a.reduce52(c, low, lo, hi), Mem{Base: dst})
	a.nextGroup(dst, v, n)
}

// sum64 adds up products by Shoup's method, below 4q.
func (a *assembler) sum64() {
	a.function("sumAVX512", "dst, y *uint64, v *uint8, stride, n int, weights *uint64, terms int, q uint64",
		"is Sum.Apply for n slots, a multiple of 8, not 0, and as many terms.")
	dst, v, n, r := a.arg("dst"), a.arg("v"), a.arg("n"), a.rowSums("weights", 16)
	m := a.arithmetic(avx512, a.broadcast("q"))
	sum, x := a.ZMM(), a.ZMM()
	add := func(y reg.VecVirtual) {
		p := m.scale(a, y, a.factor(m, Mem{Base: r.at}, Mem{Base: r.at, Disp: 8}))
		a.VPADDQ(p, sum, sum)
		a.once(sum, m.bound)
	}
	a.Label("group")
	a.clear(sum)
	r.rows(a, add)
	a.VPMOVZXBQ(Mem{Base: v}, x)
	add(x)
	m.canonical(a, sum)
	a.VMOVDQU64(sum, Mem{Base: dst})
	a.nextGroup(dst, v, n)
}

func (a *assembler) nextGroup(dst, v, n reg.GPVirtual) {
	a.ADDQ(Imm(64), dst)
	a.ADDQ(Imm(8), v)
	a.SUBQ(Imm(8), n)
	a.JNZ(LabelRef("group"))
	a.done()
}
