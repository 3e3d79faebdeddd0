package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// extend writes sums over rows of residues, for the slots of a vector at a time.
func extend(a *assembler) {
	a.sum52()
	for _, set := range []instructions{avx2, avx512} {
		a.avx2 = set == avx2
		a.roundFractions(set)
		a.sum64(set)
	}
}

// rowSums is a loop over groups of slots, and within it over the rows and what belongs to each.
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

// rows runs do for every row of a group, with its words.
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
	a.ADDQ(Imm(uint64(8*a.words())), r.y)
}

// roundFractions is RoundFractions: the sums modulo 2^64, and the number of times that they overflow. A sum is kept with
// its upper bit flipped, so that words are compared as signed ones; 1/2 is then 0.
func (a *assembler) roundFractions(set instructions) {
	a.function("roundFractions"+string(set), "v *uint8, y *uint64, stride, n int, fractions *uint64, terms int",
		"is RoundFractions for n slots, a multiple of %d, not 0, and as many terms.", a.words())
	v, n, r := a.arg("v"), a.arg("n"), a.rowSums("fractions", 16)
	half, low32, length := a.lanes(1<<63), a.lanes(1<<32-1), a.lanes(64)
	var one reg.VecVirtual
	if !a.avx2 {
		one = a.lanes(1)
	}
	sum, carries := a.vec(), a.vec()
	a.Label("group")
	a.clear(sum)
	a.clear(carries)
	r.rows(a, func(y reg.VecVirtual) {
		scaled, right, left := a.vec(), a.vec(), a.vec()
		a.VPBROADCASTQ(Mem{Base: r.at}, scaled)
		hi, lo := a.wideProduct(y, scaled, low32)
		a.VPBROADCASTQ(Mem{Base: r.at, Disp: 8}, right)
		a.VPSUBQ(right, length, left)
		a.VPSLLVQ(left, hi, hi)
		a.VPSRLVQ(right, lo, lo)
		a.VPADDQ(hi, lo, lo)
		a.VPADDQ(lo, sum, sum)
		a.VPADDQ(half, lo, lo) // flips its upper bit
		a.countGreater(lo, sum, one, carries)
	})
	a.storeBytes(carries, v)
	a.ADDQ(Imm(uint64(a.words())), v)
	a.SUBQ(Imm(uint64(a.words())), n)
	a.JNZ(LabelRef("group"))
	a.done()
}

// countGreater adds 1, not used with AVX2, to the lanes of count in which x > y as signed words. It may destroy x.
func (a *assembler) countGreater(x, y, one, count reg.VecVirtual) {
	if a.avx2 {
		a.VPCMPGTQ(y, x, x)
		a.VPSUBQ(x, count, count)
		return
	}
	k := a.K()
	a.VPCMPGTQ(y, x, k)
	a.VPADDQ(one, count, k, count)
}

// storeBytes stores words below 2^8 as bytes. It destroys x.
func (a *assembler) storeBytes(x reg.VecVirtual, to reg.GPVirtual) {
	if !a.avx2 {
		a.VPMOVQB(x, Mem{Base: to})
		return
	}
	upper, lower := a.XMM(), a.XMM()
	a.VEXTRACTI128(Imm(1), x, upper)
	a.VPSLLQ(Imm(16), upper, upper)
	a.VPADDQ(upper, x.AsX(), lower) // byte 0: lane 0, byte 2: lane 2, byte 8: lane 1, byte 10: lane 3
	a.VPSRLDQ(Imm(7), lower, upper)
	a.VPADDQ(upper, lower, lower)
	a.VMOVD(lower, Mem{Base: to})
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
func (a *assembler) sum64(set instructions) {
	a.function("sum"+string(set), "dst, y *uint64, v *uint8, stride, n int, weights *uint64, terms int, q uint64",
		"is Sum.Apply for n slots, a multiple of %d, not 0, and as many terms.", a.words())
	dst, v, n, r := a.arg("dst"), a.arg("v"), a.arg("n"), a.rowSums("weights", 16)
	m := a.arithmetic(set, a.broadcast("q"))
	sum, x := a.vec(), a.vec()
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
	a.move(sum, Mem{Base: dst})
	a.nextGroup(dst, v, n)
}

func (a *assembler) nextGroup(dst, v, n reg.GPVirtual) {
	a.ADDQ(Imm(uint64(8*a.words())), dst)
	a.ADDQ(Imm(uint64(a.words())), v)
	a.SUBQ(Imm(uint64(a.words())), n)
	a.JNZ(LabelRef("group"))
	a.done()
}
