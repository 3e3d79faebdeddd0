package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// extend writes sums over rows of residues, for the slots of a vector at a time.
func extend(a *assembler) {
	for _, vectors := range []int{1, 4} {
		a.sum52(vectors)
	}
	for _, set := range []instructions{avx2, avx512} {
		a.avx2 = set == avx2
		a.roundFractions(set)
		a.sum64(set)
	}
}

// rowSums is a loop over groups of slots, and within it over the rows and the two words that belong
// to each.
type rowSums struct {
	y, row, stride, terms, left, data, at reg.GPVirtual
}

func (a *assembler) rowSums(data string) *rowSums {
	r := &rowSums{y: a.arg("y"), row: a.GP64(), stride: a.arg("stride"), terms: a.arg("terms"), left: a.GP64(),
		data: a.arg(data), at: a.GP64()}
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
	a.ADDQ(Imm(16), r.at)
	a.DECQ(r.left)
	a.JNZ(LabelRef("row"))
	a.ADDQ(Imm(uint64(8*a.words())), r.y)
}

// roundFractions implements RoundFractions: the sums modulo 2^64, and the number of their
// overflows. A sum is kept with its upper bit flipped, so that words can be compared as signed
// ones; 1/2 is then 0.
func (a *assembler) roundFractions(set instructions) {
	a.function("roundFractions"+string(set), "v *uint8, y *uint64, stride, n int, fractions *uint64, terms int",
		"computes RoundFractions for n slots, a multiple of %d, not 0, and the given number of terms.", a.words())
	v, n, r := a.arg("v"), a.arg("n"), a.rowSums("fractions")
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

// countGreater adds 1 (unused with AVX2) to the lanes of count in which x > y as signed words. It
// may destroy x.
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

// sum52 adds up the lower and upper halves of at most 61 products below 2^100, for the given number
// of vectors of slots at a time. With m = lo/q mod 2^52, lo + 2^52 hi - m q is a multiple of 2^52;
// the weights compensate for this factor.
func (a *assembler) sum52(vectors int) {
	a.function(fmt.Sprintf("sum%dIFMA", 8*vectors),
		"dst, y *uint64, v *uint8, stride, n int, weights *uint64, terms int, inverse, multiple uint64, halvings int, q uint64",
		"computes Sum.Apply for n slots, a multiple of %d, not 0, the given number of terms, and rows and moduli of at most 50 bits. "+
			"weights are 2^52 c_i, inverse is 1/q mod 2^52, and multiple is q 2^halvings, at least half of the upper bound of sums.", 8*vectors)
	dst, y, v, n := a.arg("dst"), a.arg("y"), a.arg("v"), a.arg("n")
	stride, weights, terms := a.arg("stride"), a.arg("weights"), a.arg("terms")
	inverse, multiple, q, halvings := a.broadcast("inverse"), a.broadcast("multiple"), a.broadcast("q"), a.arg("halvings")
	a.SHLQ(Imm(3), stride)
	row, at, left := a.GP64(), a.GP64(), a.GP64()
	a.Label("group")
	lo, hi := a.zeros(vectors), a.zeros(vectors)
	w := a.ZMM()
	add := func(x reg.VecVirtual, i int) {
		a.VPMADD52LUQ(w, x, lo[i])
		a.VPMADD52HUQ(w, x, hi[i])
	}
	a.MOVQ(y, row)
	a.MOVQ(weights, at)
	a.MOVQ(terms, left)
	a.Label("row")
	a.VPBROADCASTQ(Mem{Base: at}, w)
	for i := range vectors {
		add(a.load(Mem{Base: row, Disp: 64 * i}), i)
	}
	a.ADDQ(stride, row)
	a.ADDQ(Imm(8), at)
	a.DECQ(left)
	a.JNZ(LabelRef("row"))
	a.VPBROADCASTQ(Mem{Base: at}, w)
	for i := range vectors {
		x := a.ZMM()
		a.VPMOVZXBQ(Mem{Base: v, Disp: 8 * i}, x)
		add(x, i)
	}
	for i := range vectors {
		m, carry, minus := a.zero(), a.ZMM(), a.zero()
		a.VPMADD52LUQ(inverse, lo[i], m)
		a.VPSRLQ(Imm(52), lo[i], carry)
		a.VPMADD52HUQ(q, m, minus)
		a.VPADDQ(carry, hi[i], hi[i])
		a.VPADDQ(q, hi[i], hi[i])
		a.VPSUBQ(minus, hi[i], hi[i])
	}
	c := a.ZMM()
	a.VMOVDQA64(multiple, c)
	a.MOVQ(halvings, left)
	a.Label("halve")
	for i := range vectors {
		a.once(hi[i], c)
	}
	a.VPSRLQ(Imm(1), c, c)
	a.DECQ(left)
	a.JNS(LabelRef("halve"))
	for i := range vectors {
		a.move(hi[i], Mem{Base: dst, Disp: 64 * i})
	}
	a.ADDQ(U32(64*vectors), y)
	a.ADDQ(U32(64*vectors), dst)
	a.ADDQ(Imm(uint64(8*vectors)), v)
	a.SUBQ(Imm(uint64(8*vectors)), n)
	a.JNZ(LabelRef("group"))
	a.done()
}

// sum64 adds up products by Shoup's method, below 4q.
func (a *assembler) sum64(set instructions) {
	a.function("sum"+string(set), "dst, y *uint64, v *uint8, stride, n int, weights *uint64, terms int, q uint64",
		"computes Sum.Apply for n slots, a multiple of %d, not 0, and the given number of terms.", a.words())
	dst, v, n, r := a.arg("dst"), a.arg("v"), a.arg("n"), a.rowSums("weights")
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
