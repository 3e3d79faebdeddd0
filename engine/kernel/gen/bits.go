package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packing writes the kernels that pack and unpack values of a few bits, 8 at a time. They use a
// permutation and a shift for each source word of a word.
func packing(a *assembler) {
	a.function("packAVX512", "dst *byte, v *uint64, groups, w int, word, shift *uint64",
		"packs groups of 8 values of w bits, 32 <= w <= 64. It writes 64 bytes for each, w bytes apart. groups > 0.")
	dst, v, groups, w := a.arg("dst"), a.arg("v"), a.arg("groups"), a.arg("w")
	word, shift := a.table("word", 3), a.table("shift", 3)
	a.Label("group")
	x, out := a.load(Mem{Base: v}), a.ZMM()
	a.VPERMQ(x, word[0], out)
	a.VPSRLVQ(shift[0], out, out)
	for k := 1; k < 3; k++ {
		part := a.ZMM()
		a.VPERMQ(x, word[k], part)
		a.VPSLLVQ(shift[k], part, part)
		a.VPORQ(part, out, out)
	}
	a.move(out, Mem{Base: dst})
	a.ADDQ(Imm(64), v)
	a.ADDQ(w, dst)
	a.DECQ(groups)
	a.JNZ(LabelRef("group"))
	a.done()

	a.function("unpackAVX512", "v *uint64, src *byte, groups, w int, mask uint64, word, shift *uint64",
		"unpacks groups of 8 values of w bits, 1 <= w <= 64. It reads 64 bytes for each, w bytes apart. groups > 0.")
	v, src := a.arg("v"), a.arg("src")
	groups, w = a.arg("groups"), a.arg("w")
	mask := a.broadcast("mask")
	word, shift = a.table("word", 2), a.table("shift", 2)
	a.Label("group")
	x = a.load(Mem{Base: src})
	low, high := a.ZMM(), a.ZMM()
	a.VPERMQ(x, word[0], low)
	a.VPSRLVQ(shift[0], low, low)
	a.VPERMQ(x, word[1], high)
	a.VPSLLVQ(shift[1], high, high)
	a.VPORQ(high, low, low)
	a.VPANDQ(mask, low, low)
	a.move(low, Mem{Base: v})
	a.ADDQ(Imm(64), v)
	a.ADDQ(w, src)
	a.DECQ(groups)
	a.JNZ(LabelRef("group"))
	a.done()
}

// table loads the given number of vectors from the address in a parameter.
func (a *assembler) table(name string, count int) []reg.VecVirtual {
	at := a.arg(name)
	list := make([]reg.VecVirtual, count)
	for i := range list {
		list[i] = a.load(Mem{Base: at, Disp: 64 * i})
	}
	return list
}
