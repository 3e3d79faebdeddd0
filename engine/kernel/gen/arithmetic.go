package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// instructions is the instruction set for which a kernel is written.
type instructions string

const (
	avx2   instructions = "AVX2"
	avx512 instructions = "AVX512"
	ifma   instructions = "IFMA"
)

// factor is a residue prepared as a multiplier by Shoup's method: c, its scaled quotient, and the
// upper halves of the words of both. AVX2 has few registers, so there a factor may consist of words
// in memory that are loaded where they are used.
type factor struct {
	c, scaled           reg.VecVirtual
	cUpper, scaledUpper reg.VecVirtual
	at                  []Mem
}

// arithmetic multiplies residues by prepared ones, lane by lane.
//
//   - With IFMA, q < 2^50, operands are below 2^52, the quotient is estimated from floor(2^52 c/q) at most 1 too small,
//     and products are below 2q, the bound.
//   - Without, q < 2^61, operands are any words, the quotient is estimated from floor(2^64 c/q) without the product of
//     the lower halves and without carries, at most 3 too small, and products are below 4q, the bound.
//   - With AVX2 it is the same; only the instructions differ.
type arithmetic struct {
	set         instructions
	q, bound    reg.VecVirtual
	qUpper      reg.VecVirtual // floor(q/2^32), with AVX2
	minusQ, low reg.VecVirtual // -q and 2^52-1, with IFMA
}

func (a *assembler) arithmetic(set instructions, q reg.VecVirtual) *arithmetic {
	m := &arithmetic{set: set, q: q, bound: a.vec()}
	a.VPADDQ(q, q, m.bound)
	switch set {
	case ifma:
		m.minusQ, m.low = a.vec(), a.lowest52()
		a.VPSUBQ(q, a.zero(), m.minusQ)
		return m
	case avx2:
		m.qUpper = a.vec()
		a.VPSRLQ(Imm(32), q, m.qUpper)
	}
	a.VPADDQ(m.bound, m.bound, m.bound)
	return m
}

// factor returns a multiplier c and floor(2^64 c/q), in all lanes.
func (a *assembler) factor(m *arithmetic, c, scaled Mem) factor {
	if m.set == avx2 {
		return factor{at: []Mem{c, scaled}}
	}
	f := factor{c: a.vec(), scaled: a.vec()}
	a.VPBROADCASTQ(c, f.c)
	a.VPBROADCASTQ(scaled, f.scaled)
	return m.prepare(a, f)
}

// prepare fits the quotient of a factor, floor(2^64 c/q), to the arithmetic.
func (m *arithmetic) prepare(a *assembler, f factor) factor {
	if m.set == ifma {
		a.VPSRLQ(Imm(12), f.scaled, f.scaled)
		return f
	}
	f.scaledUpper = a.upper(f.scaled)
	if m.set == avx2 {
		f.cUpper = a.upper(f.c)
	}
	return f
}

// upper returns floor(x/2^32).
func (a *assembler) upper(x reg.VecVirtual) reg.VecVirtual {
	u := a.vec()
	a.VPSRLQ(Imm(32), x, u)
	return u
}

// scale returns x times f, below the bound.
func (m *arithmetic) scale(a *assembler, x reg.VecVirtual, f factor) reg.VecVirtual {
	switch m.set {
	case ifma:
		quotient, r := a.zero(), a.zero()
		a.VPMADD52HUQ(f.scaled, x, quotient)
		a.VPMADD52LUQ(f.c, x, r)
		a.VPMADD52LUQ(m.minusQ, quotient, r)
		a.VPANDQ(m.low, r, r)
		return r
	case avx2:
		x1 := a.upper(x)
		f.load(a, 1)
		quotient := a.upperProduct(x, x1, f.scaled, f.scaledUpper)
		f.load(a, 0)
		r := m.timesQ(a, quotient)
		p := a.lowerProduct(x, x1, f.c, f.cUpper)
		a.VPSUBQ(r, p, p)
		return p
	}
	quotient, r := a.upperProduct(x, a.upper(x), f.scaled, f.scaledUpper), a.vec()
	a.VPMULLQ(f.c, x, r)
	a.VPSUBQ(m.timesQ(a, quotient), r, r)
	return r
}

// load loads c, or its quotient for index 1, if they are in memory.
func (f *factor) load(a *assembler, which int) {
	if f.at == nil {
		return
	}
	z, upper, at := a.vec(), a.vec(), f.at[which]
	a.VPBROADCASTQ(at, z)
	at.Disp += 4
	a.VPBROADCASTD(at, upper) // only the lower halves of its words are used
	if which == 0 {
		f.c, f.cUpper = z, upper
	} else {
		f.scaled, f.scaledUpper = z, upper
	}
}

// timesQ returns x q mod 2^64. It may destroy x.
func (m *arithmetic) timesQ(a *assembler, x reg.VecVirtual) reg.VecVirtual {
	if m.set == avx2 {
		return a.lowerProduct(x, a.upper(x), m.q, m.qUpper)
	}
	a.VPMULLQ(m.q, x, x)
	return x
}

// lowerProduct returns x y mod 2^64, from both and floor(x/2^32) and floor(y/2^32).
func (a *assembler) lowerProduct(x, x1, y, y1 reg.VecVirtual) reg.VecVirtual {
	r, s, t := a.vec(), a.vec(), a.vec()
	a.VPMULUDQ(y, x1, s)
	a.VPMULUDQ(y1, x, t)
	a.VPADDQ(t, s, s)
	a.VPSLLQ(Imm(32), s, s)
	a.VPMULUDQ(y, x, r)
	a.VPADDQ(s, r, r)
	return r
}

// upperProduct returns floor(x y/2^64) less at most 2, and less than 3 below x y/2^64, from both
// and floor(x/2^32) and floor(y/2^32).
func (a *assembler) upperProduct(x, x1, y, y1 reg.VecVirtual) reg.VecVirtual {
	r, s, t := a.vec(), a.vec(), a.vec()
	a.VPMULUDQ(y1, x1, r)
	a.VPMULUDQ(y, x1, s)
	a.VPMULUDQ(y1, x, t)
	a.VPSRLQ(Imm(32), s, s)
	a.VPSRLQ(Imm(32), t, t)
	a.VPADDQ(s, r, r)
	a.VPADDQ(t, r, r)
	return r
}

// canonical reduces x, below the bound, to [0, q).
func (m *arithmetic) canonical(a *assembler, x reg.VecVirtual) {
	if m.set != ifma {
		q2 := a.vec()
		a.VPADDQ(m.q, m.q, q2)
		a.once(x, q2)
	}
	a.once(x, m.q)
}
