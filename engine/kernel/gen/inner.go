package main

import . "github.com/mmcloughlin/avo/operand"

// inner writes inner products of words below 2^52, with four sums at a time.
func inner(a *assembler) {
	a.avx2 = false
	a.function("innerIFMA", "sums, a, b *uint64, n int, top uint64",
		"sets three vectors of sums over a and b: of the lower 52 bits of products, of the upper, and the bits of "+
			"x and of top - x for x in a, any words; words of b are below 2^52. n is a multiple of 32, not 0.")
	sums, x, y, n, top := a.arg("sums"), a.arg("a"), a.arg("b"), a.arg("n"), a.broadcast("top")
	lo, hi, bits := a.zeros(4), a.zeros(4), a.zero()
	a.Label("vector")
	for j := range lo {
		v, t := a.load(Mem{Base: x, Disp: 64 * j}), a.vec()
		a.VPSUBQ(v, top, t)
		a.VPORQ(v, bits, bits)
		a.VPORQ(t, bits, bits)
		a.VPMADD52LUQ(Mem{Base: y, Disp: 64 * j}, v, lo[j])
		a.VPMADD52HUQ(Mem{Base: y, Disp: 64 * j}, v, hi[j])
	}
	a.ADDQ(U32(256), x)
	a.ADDQ(U32(256), y)
	a.SUBQ(Imm(32), n)
	a.JNZ(LabelRef("vector"))
	for j := 1; j < len(lo); j++ {
		a.VPADDQ(lo[j], lo[0], lo[0])
		a.VPADDQ(hi[j], hi[0], hi[0])
	}
	a.move(lo[0], Mem{Base: sums})
	a.move(hi[0], Mem{Base: sums, Disp: 64})
	a.move(bits, Mem{Base: sums, Disp: 128})
	a.done()
}
