package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ntt writes the passes of transforms. A pass covers one or two levels, or four levels on 16
// consecutive words. With bound = 2q (IFMA) or 4q, values are below twice the bound between the
// levels of a forward transform, and below the bound between those of an inverse one.
func ntt(a *assembler) {
	index := a.indices()
	for _, set := range []instructions{avx2, avx512, ifma} {
		a.avx2 = set == avx2
		a.passes(set, index)
	}
}

const (
	passParameters = "dst, src *uint64, c, scaled *uint64, k, blocks"
	passDoc        = "of blocks blocks of src, with roots from k of the tables c and scaled, into dst. "
)

func (a *assembler) passes(set instructions, index map[string]Mem) {
	suffix := string(set)
	begin := func(name, more, doc string) (*arithmetic, *cursor) {
		a.function(name+suffix, passParameters+more+" int, q uint64", "takes %s", doc)
		return a.arithmetic(set, a.broadcast("q")), a.cursor()
	}

	m, at := begin("forward2", ", half", "a level "+passDoc+"The blocks are 2 half words, half a multiple of 16.")
	a.levels(at, "half", 2, func() func([]reg.VecVirtual) {
		f := m.root(a, at, 1, 0)
		return func(x []reg.VecVirtual) { m.forward(a, x[0], x[1], f) }
	})
	m, at = begin("forward4", ", quarter", "two levels "+passDoc+"The blocks are 4 quarter words, quarter a multiple of 16.")
	a.levels(at, "quarter", 4, func() func([]reg.VecVirtual) {
		f, g, h := m.root(a, at, 1, 0), m.root(a, at, 2, 0), m.root(a, at, 2, 8)
		return func(x []reg.VecVirtual) {
			m.forward(a, x[0], x[2], f)
			m.forward(a, x[1], x[3], f)
			m.forward(a, x[0], x[1], g)
			m.forward(a, x[2], x[3], h)
		}
	})
	m, at = begin("inverse4", ", quarter", "two levels "+passDoc+"The blocks are 4 quarter words, quarter a multiple of 16.")
	a.levels(at, "quarter", 4, func() func([]reg.VecVirtual) {
		f, g, h := m.root(a, at, 1, 0), m.root(a, at, 2, 0), m.root(a, at, 2, 8)
		return func(x []reg.VecVirtual) {
			m.inverse(a, x[0], x[1], g)
			m.inverse(a, x[2], x[3], h)
			m.inverse(a, x[0], x[2], f)
			m.inverse(a, x[1], x[3], f)
		}
	})

	last := func(name, size, doc string) (*arithmetic, *cursor, [2]factor) {
		a.function(name+suffix, "dst *uint64, c, scaled *uint64, "+size+" int, last *[4]uint64, q uint64", "%s", doc)
		m, at, p := a.arithmetic(set, a.broadcast("q")), a.cursorInPlace(), a.arg("last")
		return m, at, [2]factor{
			a.factor(m, Mem{Base: p}, Mem{Base: p, Disp: 8}),
			a.factor(m, Mem{Base: p, Disp: 16}, Mem{Base: p, Disp: 24}),
		}
	}
	m, at, f := last("inverse2Last", "half", "computes the last level of 2 half words, with the division by N.")
	a.levels(at, "half", 2, func() func([]reg.VecVirtual) {
		return func(x []reg.VecVirtual) { m.last(a, x[0], x[1], f) }
	})
	m, at, f = last("inverse4Last", "quarter", "computes the last two levels of 4 quarter words, with the division by N.")
	a.levels(at, "quarter", 4, func() func([]reg.VecVirtual) {
		g, h := m.root(a, at, 2, 0), m.root(a, at, 2, 8)
		return func(x []reg.VecVirtual) {
			m.inverse(a, x[0], x[1], g)
			m.inverse(a, x[2], x[3], h)
			m.last(a, x[0], x[2], f)
			m.last(a, x[1], x[3], f)
		}
	})

	m, at = begin("forward16", "", "the last four levels "+passDoc+"The blocks are 16 words. The result is canonical.")
	if a.avx2 {
		a.forward4x4(m, at)
	} else {
		a.forward16(m, at, index)
	}
	m, at = begin("inverse16", "", "the first four levels "+passDoc+"The blocks are 16 words.")
	if a.avx2 {
		a.inverse4x4(m, at)
	} else {
		a.inverse16(m, at, index)
	}
}

// cursor walks through blocks and their roots.
type cursor struct {
	dst, src, c, scaled, k, blocks reg.GPVirtual // k in bytes
}

func (a *assembler) cursor() *cursor {
	at := &cursor{a.arg("dst"), a.arg("src"), a.arg("c"), a.arg("scaled"), a.arg("k"), a.arg("blocks")}
	a.SHLQ(Imm(3), at.k)
	return at
}

// cursorInPlace returns a cursor for one block, with root 1.
func (a *assembler) cursorInPlace() *cursor {
	at := &cursor{dst: a.arg("dst"), c: a.arg("c"), scaled: a.arg("scaled"), k: a.GP64(), blocks: a.GP64()}
	at.src = at.dst
	a.MOVQ(U32(8), at.k)
	a.MOVQ(U32(1), at.blocks)
	return at
}

// root loads the factor at scale·k, or disp bytes after it, into all lanes.
func (m *arithmetic) root(a *assembler, at *cursor, scale uint8, disp int) factor {
	return a.factor(m, Mem{Base: at.c, Index: at.k, Scale: scale, Disp: disp}, Mem{Base: at.scaled, Index: at.k, Scale: scale, Disp: disp})
}

// roots loads the 8 factors from scale·k on. With an index, it loads only the lanes that the index
// selects.
func (m *arithmetic) roots(a *assembler, at *cursor, scale uint8, index reg.VecVirtual) factor {
	f := factor{c: a.vec(), scaled: a.vec()}
	c, scaled := Mem{Base: at.c, Index: at.k, Scale: scale}, Mem{Base: at.scaled, Index: at.k, Scale: scale}
	if index == nil {
		a.VMOVDQU64(c, f.c)
		a.VMOVDQU64(scaled, f.scaled)
	} else {
		a.VPERMQ(c, index, f.c)
		a.VPERMQ(scaled, index, f.scaled)
	}
	return m.prepare(a, f)
}

// levels loops over blocks that consist of the given number of parts; the parameter holds the words
// per part. prepare loads the roots of a block and returns the operation on the vectors at the same
// place in each part.
func (a *assembler) levels(at *cursor, parameter string, parts int, prepare func() func([]reg.VecVirtual)) {
	words, step, back, left := a.arg(parameter), a.GP64(), a.GP64(), a.GP64()
	a.MOVQ(words, step)
	a.SHLQ(Imm(3), step)
	a.LEAQ(Mem{Base: step, Index: step, Scale: 2}, back) // three steps
	address := func(base reg.GPVirtual, i int) Mem {
		return []Mem{{Base: base}, {Base: base, Index: step, Scale: 1}, {Base: base, Index: step, Scale: 2},
			{Base: base, Index: back, Scale: 1}}[i]
	}
	a.Label("block")
	do := prepare()
	a.MOVQ(words, left)
	a.Label("vector")
	x := make([]reg.VecVirtual, parts)
	for i := range x {
		x[i] = a.load(address(at.src, i))
	}
	do(x)
	for i := range x {
		a.move(x[i], address(at.dst, i))
	}
	pointers := []reg.GPVirtual{at.dst, at.src}
	if at.src == at.dst {
		pointers = pointers[:1]
	}
	for _, p := range pointers {
		a.ADDQ(Imm(uint64(8*a.words())), p)
	}
	a.SUBQ(Imm(uint64(a.words())), left)
	a.JNZ(LabelRef("vector"))
	for _, p := range pointers {
		if parts == 2 {
			a.ADDQ(step, p)
		} else {
			a.ADDQ(back, p)
		}
	}
	a.ADDQ(Imm(8), at.k)
	a.DECQ(at.blocks)
	a.JNZ(LabelRef("block"))
	a.done()
}

// forward sets (x, y) to (x + f y, x - f y), all below twice the bound.
func (m *arithmetic) forward(a *assembler, x, y reg.VecVirtual, f factor) {
	a.once(x, m.bound)
	p := m.scale(a, y, f)
	a.VPSUBQ(p, x, y)
	a.VPADDQ(m.bound, y, y)
	a.VPADDQ(p, x, x)
}

// inverse sets (x, y) to (x + y, f (x - y)), all below the bound.
func (m *arithmetic) inverse(a *assembler, x, y reg.VecVirtual, f factor) {
	d := m.difference(a, x, y)
	a.VPADDQ(y, x, x)
	a.once(x, m.bound)
	a.move(m.scale(a, d, f), y)
}

// difference returns x - y + bound.
func (m *arithmetic) difference(a *assembler, x, y reg.VecVirtual) reg.VecVirtual {
	d := a.vec()
	a.VPSUBQ(y, x, d)
	a.VPADDQ(m.bound, d, d)
	return d
}

// last sets (x, y) to (f0 (x + y), f1 (x - y)), canonical, for both below the bound.
func (m *arithmetic) last(a *assembler, x, y reg.VecVirtual, f [2]factor) {
	d := m.difference(a, x, y)
	a.VPADDQ(y, x, x)
	a.move(m.scale(a, x, f[0]), x)
	a.move(m.scale(a, d, f[1]), y)
	m.canonical(a, x)
	m.canonical(a, y)
}

// indices holds the permutations of forward16 and inverse16; 8 to 15 are lanes of the second
// vector.
func (a *assembler) indices() map[string]Mem {
	out := map[string]Mem{}
	for _, x := range []struct {
		name  string
		lanes [8]uint64
	}{
		{"fours", [8]uint64{0, 0, 0, 0, 1, 1, 1, 1}},
		{"twos", [8]uint64{0, 0, 1, 1, 2, 2, 3, 3}},
		{"lowerPairs", [8]uint64{0, 1, 8, 9, 4, 5, 12, 13}},
		{"upperPairs", [8]uint64{2, 3, 10, 11, 6, 7, 14, 15}},
		{"lowerHalves", [8]uint64{0, 8, 1, 9, 2, 10, 3, 11}},
		{"upperHalves", [8]uint64{4, 12, 5, 13, 6, 14, 7, 15}},
		{"evens", [8]uint64{0, 2, 4, 6, 8, 10, 12, 14}},
		{"odds", [8]uint64{1, 3, 5, 7, 9, 11, 13, 15}},
	} {
		out[x.name] = a.StaticGlobal(x.name)
		a.DataAttributes(attr.RODATA | attr.NOPTR)
		for i, l := range x.lanes {
			a.AddDatum(8*i, U64(l))
		}
	}
	return out
}

func (a *assembler) load(at Mem) reg.VecVirtual {
	z := a.vec()
	a.move(at, z)
	return z
}

// permute sets (x, y) to the lanes of both vectors that two indices select.
func (a *assembler) permute(x, y, first, second reg.VecVirtual) {
	t := a.ZMM()
	a.move(x, t)
	a.VPERMT2Q(y, first, x)
	a.VPERMT2Q(y, second, t)
	a.move(t, y)
}

// halves sets x to the lower halves and y to the upper halves of both.
func (a *assembler) halves(x, y reg.VecVirtual) {
	t := a.ZMM()
	a.VSHUFI64X2(Imm(0x44), y, x, t)
	a.VSHUFI64X2(Imm(0xee), y, x, y)
	a.move(t, x)
}

// neighbours sets x to the even and y to the odd lanes of both, in pairs.
func (a *assembler) neighbours(x, y reg.VecVirtual) {
	t := a.vec()
	a.VPUNPCKLQDQ(y, x, t)
	a.VPUNPCKHQDQ(y, x, y)
	a.move(t, x)
}

func (a *assembler) forward16(m *arithmetic, at *cursor, index map[string]Mem) {
	fours, twos := a.load(index["fours"]), a.load(index["twos"])
	lowerPairs, upperPairs := a.load(index["lowerPairs"]), a.load(index["upperPairs"])
	lowerHalves, upperHalves := a.load(index["lowerHalves"]), a.load(index["upperHalves"])
	a.Label("block")
	x, y := a.load(Mem{Base: at.src}), a.load(Mem{Base: at.src, Disp: 64})
	m.forward(a, x, y, m.root(a, at, 1, 0))
	a.halves(x, y) // words 0-3 8-11, 4-7 12-15
	m.forward(a, x, y, m.roots(a, at, 2, fours))
	a.permute(x, y, lowerPairs, upperPairs) // words 0 1 4 5 8 9 12 13, and the others
	m.forward(a, x, y, m.roots(a, at, 4, twos))
	a.neighbours(x, y) // even words, odd words
	m.forward(a, x, y, m.roots(a, at, 8, nil))
	a.once(x, m.bound)
	a.once(y, m.bound)
	m.canonical(a, x)
	m.canonical(a, y)
	a.permute(x, y, lowerHalves, upperHalves)
	a.next16(at, x, y)
}

func (a *assembler) inverse16(m *arithmetic, at *cursor, index map[string]Mem) {
	fours, twos := a.load(index["fours"]), a.load(index["twos"])
	lowerPairs, upperPairs := a.load(index["lowerPairs"]), a.load(index["upperPairs"])
	evens, odds := a.load(index["evens"]), a.load(index["odds"])
	a.Label("block")
	x, y := a.load(Mem{Base: at.src}), a.load(Mem{Base: at.src, Disp: 64})
	a.permute(x, y, evens, odds)
	m.inverse(a, x, y, m.roots(a, at, 8, nil))
	a.neighbours(x, y)
	m.inverse(a, x, y, m.roots(a, at, 4, twos))
	a.permute(x, y, lowerPairs, upperPairs)
	m.inverse(a, x, y, m.roots(a, at, 2, fours))
	a.halves(x, y)
	m.inverse(a, x, y, m.root(a, at, 1, 0))
	a.next16(at, x, y)
}

// next16 stores a block and goes on to the next.
func (a *assembler) next16(at *cursor, x, y reg.VecVirtual) {
	a.VMOVDQU64(x, Mem{Base: at.dst})
	a.VMOVDQU64(y, Mem{Base: at.dst, Disp: 64})
	a.nextBlock(at)
}

// nextBlock goes on to the next 16 words.
func (a *assembler) nextBlock(at *cursor) {
	a.ADDQ(Imm(128), at.src)
	a.ADDQ(Imm(128), at.dst)
	a.ADDQ(Imm(8), at.k)
	a.DECQ(at.blocks)
	a.JNZ(LabelRef("block"))
	a.done()
}
