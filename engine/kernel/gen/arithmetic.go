package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// factor is a residue prepared as a multiplier, by Shoup's method.
type factor struct{ c, scaled, upper reg.VecVirtual }

// arithmetic multiplies residues by prepared ones, in 8 lanes.
//
//   - With IFMA, q < 2^50, operands are below 2^52, the quotient is estimated from floor(2^52 c/q) at most 1 too small,
//     and products are below 2q, the bound.
//   - Without, q < 2^61, operands are any words, the quotient is estimated from floor(2^64 c/q) without the product of
//     the lower halves and without carries, at most 3 too small, and products are below 4q, the bound.
type arithmetic struct {
	ifma         bool
	q, q2, bound reg.VecVirtual
	minusQ, low  reg.VecVirtual // -q and 2^52-1, with IFMA
}

func (a *assembler) arithmetic(ifma bool, q reg.VecVirtual) *arithmetic {
	if ifma {
		return a.arithmetic52(q)
	}
	return a.arithmetic64(q)
}

func (a *assembler) arithmetic52(q reg.VecVirtual) *arithmetic {
	m := &arithmetic{ifma: true, q: q, q2: a.ZMM(), minusQ: a.ZMM(), low: a.lowest52()}
	a.VPADDQ(q, q, m.q2)
	a.VPSUBQ(q, a.zero(), m.minusQ)
	m.bound = m.q2
	return m
}

func (a *assembler) arithmetic64(q reg.VecVirtual) *arithmetic {
	m := &arithmetic{q: q, q2: a.ZMM(), bound: a.ZMM()}
	a.VPADDQ(q, q, m.q2)
	a.VPADDQ(m.q2, m.q2, m.bound)
	return m
}

// factor loads a multiplier c and floor(2^64 c/q) into all lanes.
func (a *assembler) factor(m *arithmetic, c, scaled Mem) factor {
	f := factor{c: a.ZMM(), scaled: a.ZMM()}
	a.VPBROADCASTQ(c, f.c)
	a.VPBROADCASTQ(scaled, f.scaled)
	return m.prepare(a, f)
}

// prepare fits the quotient of a factor, floor(2^64 c/q), to the arithmetic.
func (m *arithmetic) prepare(a *assembler, f factor) factor {
	if m.ifma {
		a.VPSRLQ(Imm(12), f.scaled, f.scaled)
		return f
	}
	f.upper = a.ZMM()
	a.VPSRLQ(Imm(32), f.scaled, f.upper)
	return f
}

// scale returns x times f, below the bound.
func (m *arithmetic) scale(a *assembler, x reg.VecVirtual, f factor) reg.VecVirtual {
	if m.ifma {
		quotient, r := a.zero(), a.zero()
		a.VPMADD52HUQ(f.scaled, x, quotient)
		a.VPMADD52LUQ(f.c, x, r)
		a.VPMADD52LUQ(m.minusQ, quotient, r)
		a.VPANDQ(m.low, r, r)
		return r
	}
	quotient, r := a.upperProduct(x, f.scaled, f.upper), a.ZMM()
	a.VPMULLQ(f.c, x, r)
	a.VPMULLQ(m.q, quotient, quotient)
	a.VPSUBQ(quotient, r, r)
	return r
}

// upperProduct returns floor(x y/2^64) less at most 2, and less than 3 below x y/2^64. upper is floor(y/2^32).
func (a *assembler) upperProduct(x, y, upper reg.VecVirtual) reg.VecVirtual {
	h, r, t := a.ZMM(), a.ZMM(), a.ZMM()
	a.VPSRLQ(Imm(32), x, h)
	a.VPMULUDQ(upper, h, r)
	a.VPMULUDQ(y, h, h)
	a.VPMULUDQ(upper, x, t)
	a.VPSRLQ(Imm(32), h, h)
	a.VPSRLQ(Imm(32), t, t)
	a.VPADDQ(h, r, r)
	a.VPADDQ(t, r, r)
	return r
}

// canonical reduces x, below the bound, to [0, q).
func (m *arithmetic) canonical(a *assembler, x reg.VecVirtual) {
	if !m.ifma {
		a.once(x, m.q2)
	}
	a.once(x, m.q)
}
