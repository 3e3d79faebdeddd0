package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// shear writes the kernel that turns columns. In 8 columns whose shifts are first + (d/8) t, the
// words of the 8 rows k + (d/8) x move to, or come from, the 8 rows k + first + (d/8) x mod d.
// Within these columns t is a rotation of 8 vectors.
func shear(a *assembler) {
	a.shear("shearDownAVX512", "Shear.Down", true)
	a.shear("shearUpAVX512", "Shear.Up", false)
}

func (a *assembler) shear(name, doc string, down bool) {
	a.function(name, "dst *[]uint64, to int, src *[]uint64, from int, turns *uint64, d int",
		"computes %s for d rows and columns, d a power of two from 8 on.", doc)
	dst, to, src, from := a.arg("dst"), a.arg("to"), a.arg("src"), a.arg("from")
	turns, d := a.arg("turns"), a.arg("d")
	mask, step, first, turn, left, row, at := a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.LEAQ(Mem{Base: d, Disp: -1}, mask)
	a.MOVQ(d, step)
	a.SHRQ(Imm(3), step)
	a.XORQ(first, first)
	a.Label("rows")
	a.MOVQ(turns, turn)
	a.MOVQ(step, left)
	a.Label("columns")

	near := func() { // the rows as they are numbered
		a.MOVQ(first, row)
	}
	far := func() { // the rows k + shift
		a.MOVQ(first, row)
		a.ADDQ(Mem{Base: turn}, row)
	}
	each := func(rows reg.GPVirtual, do func(x int)) {
		for x := range 8 {
			a.LEAQ(Mem{Base: row, Index: row, Scale: 2}, at) // a slice is three words
			a.MOVQ(Mem{Base: rows, Index: at, Scale: 8}, at)
			do(x)
			if x < 7 {
				a.ADDQ(step, row)
				a.ANDQ(mask, row)
			}
		}
	}
	v := make([]reg.VecVirtual, 8)
	load, store := near, far
	if !down {
		load, store = far, near
	}
	load()
	each(src, func(x int) { v[x] = a.load(Mem{Base: at, Index: from, Scale: 8}) })
	for bit := range 3 {
		v = a.rotate(v, bit, turn, down)
	}
	store()
	each(dst, func(x int) { a.move(v[x], Mem{Base: at, Index: to, Scale: 8}) })

	a.ADDQ(Imm(8), from)
	a.ADDQ(Imm(8), to)
	a.ADDQ(Imm(16), turn)
	a.DECQ(left)
	a.JNZ(LabelRef("columns"))
	a.SUBQ(d, from)
	a.SUBQ(d, to)
	a.INCQ(first)
	a.CMPQ(first, step)
	a.JNE(LabelRef("rows"))
	a.done()
}

// rotate returns the vectors, moving the lanes that a bit of the turn selects down, or up, by 2^bit
// vectors.
func (a *assembler) rotate(v []reg.VecVirtual, bit int, turn reg.GPVirtual, down bool) []reg.VecVirtual {
	k, out := a.K(), make([]reg.VecVirtual, len(v))
	a.KMOVB(Mem{Base: turn, Disp: 8 + bit}, k)
	by := len(v) - 1<<bit
	if !down {
		by = 1 << bit
	}
	for x := range out {
		out[x] = a.ZMM()
		a.VPBLENDMQ(v[(x+by)%len(v)], v[x], k, out[x])
	}
	return out
}
