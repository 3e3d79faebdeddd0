package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The passes of 16 words with vectors of 4.

// quarters loads the four factors at 4k, or 8k, plus disp bytes. With a pattern of lanes for
// VPERMQ, it permutes them.
func (m *arithmetic) quarters(a *assembler, at *cursor, scale uint8, disp int, pattern uint8) factor {
	f := factor{c: a.vec(), scaled: a.vec()}
	c, scaled := Mem{Base: at.c, Index: at.k, Scale: scale, Disp: disp}, Mem{Base: at.scaled, Index: at.k, Scale: scale, Disp: disp}
	if pattern == 0 {
		a.move(c, f.c)
		a.move(scaled, f.scaled)
	} else {
		a.VPERMQ(Imm(uint64(pattern)), c, f.c)
		a.VPERMQ(Imm(uint64(pattern)), scaled, f.scaled)
	}
	return m.prepare(a, f)
}

// swap sets x to the lower halves of x and y, and y to the upper ones.
func (a *assembler) swap(x, y reg.VecVirtual) {
	t := a.vec()
	a.VPERM2I128(Imm(0x20), y, x, t)
	a.VPERM2I128(Imm(0x31), y, x, y)
	a.move(t, x)
}

const (
	firstPairs  = 0b01_01_00_00 // lanes 0 0 1 1
	secondPairs = 0b11_11_10_10 // lanes 2 2 3 3
)

func (a *assembler) forward4x4(m *arithmetic, at *cursor) {
	a.Label("block")
	x := a.quads(at)
	f := m.root(a, at, 1, 0)
	m.forward(a, x[0], x[2], f)
	m.forward(a, x[1], x[3], f)
	m.forward(a, x[0], x[1], m.root(a, at, 2, 0))
	m.forward(a, x[2], x[3], m.root(a, at, 2, 8))
	for i, pattern := range []uint8{firstPairs, secondPairs} {
		x, y := x[2*i], x[2*i+1]
		a.swap(x, y) // words 0 1 4 5, 2 3 6 7
		m.forward(a, x, y, m.quarters(a, at, 4, 0, pattern))
		a.neighbours(x, y) // even words, odd words
		m.forward(a, x, y, m.quarters(a, at, 8, 32*i, 0))
		for _, z := range []reg.VecVirtual{x, y} {
			a.once(z, m.bound)
			m.canonical(a, z)
		}
		a.neighbours(x, y)
		a.swap(x, y)
	}
	a.nextQuads(at, x)
}

func (a *assembler) inverse4x4(m *arithmetic, at *cursor) {
	a.Label("block")
	x := a.quads(at)
	for i, pattern := range []uint8{firstPairs, secondPairs} {
		x, y := x[2*i], x[2*i+1]
		a.swap(x, y)
		a.neighbours(x, y) // even words, odd words
		m.inverse(a, x, y, m.quarters(a, at, 8, 32*i, 0))
		a.neighbours(x, y) // words 0 1 4 5, 2 3 6 7
		m.inverse(a, x, y, m.quarters(a, at, 4, 0, pattern))
		a.swap(x, y)
	}
	m.inverse(a, x[0], x[1], m.root(a, at, 2, 0))
	m.inverse(a, x[2], x[3], m.root(a, at, 2, 8))
	f := m.root(a, at, 1, 0)
	m.inverse(a, x[0], x[2], f)
	m.inverse(a, x[1], x[3], f)
	a.nextQuads(at, x)
}

// quads loads a block.
func (a *assembler) quads(at *cursor) (x [4]reg.VecVirtual) {
	for i := range x {
		x[i] = a.load(Mem{Base: at.src, Disp: 32 * i})
	}
	return x
}

// nextQuads stores a block and goes on to the next.
func (a *assembler) nextQuads(at *cursor, x [4]reg.VecVirtual) {
	for i := range x {
		a.move(x[i], Mem{Base: at.dst, Disp: 32 * i})
	}
	a.nextBlock(at)
}
