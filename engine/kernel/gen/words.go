package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// words writes the Montgomery product for integers of several words.
func words(a *assembler) {
	a.function("montgomeryADX", "t, a, b, mod *uint64, n0 uint64, n int",
		"computes Montgomery for n words, a multiple of 8, not 0. All n+1 words of t must be 0.")
	t, x, b, mod := a.arg("t"), a.arg("a"), a.arg("b"), a.arg("mod")
	n, top, left := a.arg("n"), a.GP64(), a.GP64()
	a.XORQ(top, top)
	a.MOVQ(n, left)
	a.Label("word")
	a.MOVQ(Mem{Base: b}, reg.RDX)
	carry := a.addMul(t, x, n, 8, "a")
	over := a.GP64()
	a.MOVQ(carry, over)
	a.ADDQ(top, over)
	a.MOVQ(U32(0), top)
	a.ADCQ(Imm(0), top)

	a.MOVQ(Mem{Base: t, Disp: 8}, reg.RDX)
	n0, err := a.Param("n0").Resolve()
	if err != nil {
		panic(err)
	}
	a.IMULQ(n0.Addr, reg.RDX)
	carry = a.addMul(t, mod, n, 0, "mod")
	a.ADDQ(carry, over)
	a.ADCQ(Imm(0), top)
	a.MOVQ(over, Mem{Base: t, Index: n, Scale: 8})
	a.ADDQ(Imm(8), b)
	a.DECQ(left)
	a.JNZ(LabelRef("word"))
	a.MOVQ(top, Mem{Base: t})
	a.RET()
}

// addMul adds RDX times the n words of x to the words of t from the second on, stores the sum at
// the given offset in bytes after t, and returns the carry word. The carries of the two additions
// to the lower half of a product use separate flags.
func (a *assembler) addMul(t, x, n reg.GPVirtual, to int, name string) (carry reg.GPVirtual) {
	i, zero, lower := a.GP64(), a.GP64(), a.GP64()
	upper := [2]reg.GPVirtual{a.GP64(), a.GP64()}
	a.XORQ(i, i)
	a.XORQ(upper[0], upper[0])
	a.Label(name)
	a.XORQ(zero, zero) // also clears the flags
	for j := range 8 {
		a.MULXQ(Mem{Base: x, Index: i, Scale: 8, Disp: 8 * j}, lower, upper[(j+1)%2])
		a.ADCXQ(upper[j%2], lower)
		a.ADOXQ(Mem{Base: t, Index: i, Scale: 8, Disp: 8*j + 8}, lower)
		a.MOVQ(lower, Mem{Base: t, Index: i, Scale: 8, Disp: 8*j + to})
	}
	a.ADCXQ(zero, upper[0])
	a.ADOXQ(zero, upper[0])
	a.ADDQ(Imm(8), i)
	a.CMPQ(i, n)
	a.JNE(LabelRef(name))
	return upper[0]
}
