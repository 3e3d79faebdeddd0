package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gaussian writes Gaussian.Judge for eight candidates at a time, step by step as in Go.
func gaussian(a *assembler) {
	a.function("judgeIFMA",
		"z *int64, verdict *uint8, h, v, r, hi, lo *uint64, n int, table *uint64, entries int, c *[6]uint64, factors *[17]uint64",
		"computes Gaussian.Judge for n candidates, a multiple of 8, not 0. c holds the ratio, the shift, 52 less that, the logarithm, and "+
			"the bits of u.")
	at := map[string]reg.GPVirtual{}
	for _, name := range []string{"z", "verdict", "h", "v", "r", "hi", "lo", "n"} {
		at[name] = a.arg(name)
	}
	table, entries, c, factors := a.arg("table"), a.arg("entries"), a.arg("c"), a.arg("factors")
	one, low, log2e, ln2 := a.lanes(1), a.lowest52(), a.lanes(0x5c551d9), a.lanes(0x162e42fefa39ef3)
	window, minusWindow := a.lanes(32), a.lanes(^uint64(31))
	entry, left := a.GP64(), a.GP64()

	a.Label("group")
	y := a.zero()
	h := a.load(Mem{Base: at["h"]})
	a.MOVQ(table, entry)
	a.MOVQ(entries, left)
	ties := a.K()
	a.KXORB(ties, ties, ties)
	a.Label("entry")
	above, same := a.K(), a.K()
	a.VPCMPUQ_BCST(Imm(6), Mem{Base: entry}, h, above)
	a.VPADDQ(one, y, above, y)
	a.VPCMPUQ_BCST(Imm(0), Mem{Base: entry}, h, same)
	a.KORB(same, ties, ties)
	a.ADDQ(Imm(8), entry)
	a.DECQ(left)
	a.JNZ(LabelRef("entry"))

	v := a.load(Mem{Base: at["v"]})
	b, u, ky, z0, twice := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.VPANDQ(one, v, b)
	a.VPSRLQ(Imm(1), v, u)
	a.VPANDQ_BCST(Mem{Base: c, Disp: 40}, u, u)
	shift := a.ZMM()
	a.VPBROADCASTQ(Mem{Base: c, Disp: 32}, shift)
	a.VPSLLVQ(shift, y, ky)
	a.VPORQ(ky, u, z0)
	a.VPADDQ(z0, z0, twice)

	// t = one + tf/2^52
	hi, lo := a.load(Mem{Base: at["hi"]}), a.load(Mem{Base: at["lo"]})
	sign, tf, whole, t := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.VPSUBQ(b, a.zero(), sign)
	lowZero, bothZero, odd := a.K(), a.K(), a.K()
	a.VPTESTNMQ(lo, lo, lowZero)
	a.VPTESTNMQ(hi, hi, lowZero, bothZero)
	a.VPTESTMQ(b, b, odd)
	a.VPXORQ(sign, hi, tf)
	a.KANDB(odd, lowZero, lowZero)
	a.KANDB(odd, bothZero, bothZero)
	a.VPADDQ(one, tf, lowZero, tf)
	a.VPSRLQ(Imm(12), tf, tf)

	// x/(pi/w^2) = whole + frac/2^52
	frac := a.zero()
	a.VPMADD52LUQ(twice, tf, frac)
	a.VPMADD52HUQ(tf, tf, frac)
	a.VPADDQ(ky, ky, t)
	a.VPADDQ(u, t, t)
	a.VPMULUDQ(u, t, whole)
	a.VPMADD52HUQ(twice, tf, whole)
	a.VPSRLQ(Imm(52), frac, t)
	a.VPADDQ(t, whole, whole)
	a.VPANDQ(low, frac, frac)
	a.VPADDQ(one, twice, t)
	a.VPADDQ(t, whole, bothZero, whole)

	// times pi/w^2, in units of 2^-52
	upper, lower := a.zero(), a.zero()
	a.VPMADD52LUQ_BCST(Mem{Base: c}, whole, lower)
	a.VPMADD52HUQ_BCST(Mem{Base: c, Disp: 8}, whole, lower)
	a.VPMADD52HUQ_BCST(Mem{Base: c}, frac, lower)
	a.VPMADD52HUQ_BCST(Mem{Base: c}, whole, upper)
	x, n, rest := a.ZMM(), a.ZMM(), a.ZMM()
	a.VPBROADCASTQ(Mem{Base: c, Disp: 16}, shift)
	a.VPSRLVQ(shift, lower, lower)
	a.VPBROADCASTQ(Mem{Base: c, Disp: 24}, shift)
	a.VPSLLVQ(shift, upper, upper)
	a.VPADDQ(upper, lower, x)

	a.VPSRLQ(Imm(20), x, n)
	a.VPMULLQ(log2e, n, n)
	a.VPSRLQ(Imm(58), n, n)
	a.VPMULLQ(ln2, n, rest)
	a.VPSRLQ(Imm(5), rest, rest)
	a.VPSUBQ(rest, x, rest)
	p := a.ZMM()
	a.VPBROADCASTQ(Mem{Base: factors, Disp: 8 * 16}, p)
	for i := 15; i >= 0; i-- {
		product := a.zero()
		a.VPMADD52HUQ(rest, p, product)
		a.VPBROADCASTQ(Mem{Base: factors, Disp: 8 * i}, p)
		a.VPSUBQ(product, p, p)
	}
	a.VPSRLVQ(n, p, p)

	// z
	z := a.ZMM()
	a.VPSUBQ(one, b, sign)
	a.VPXORQ(sign, z0, z)
	a.VPSUBQ(sign, z, z)
	a.VPADDQ(b, z, z)
	a.move(z, Mem{Base: at["z"]})

	// The verdict.
	d, verdict := a.load(Mem{Base: at["r"]}), a.zero()
	a.VPSRLQ(Imm(13), d, d)
	a.VPSUBQ(p, d, d)
	accepted, near := a.K(), a.K()
	a.VPCMPQ(Imm(1), minusWindow, d, accepted) // below
	a.VPCMPQ(Imm(2), window, d, near)          // at most
	a.KANDNB(near, accepted, near)
	a.KORB(near, ties, near)
	a.VPADDQ(one, verdict, accepted, verdict)
	two := a.ZMM()
	a.VPADDQ(one, one, two)
	a.VMOVDQA64(two, near, verdict)
	a.storeBytes(verdict, at["verdict"])

	for _, name := range []string{"z", "h", "v", "r", "hi", "lo"} {
		a.ADDQ(Imm(64), at[name])
	}
	a.ADDQ(Imm(8), at["verdict"])
	a.SUBQ(Imm(8), at["n"])
	a.JNZ(LabelRef("group"))
	a.done()
}
