package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wide writes products of integers of many words, eight side by side: every vector holds the same
// limb of 52 bits, or the same word, of eight integers.
func wide(a *assembler) {
	a.wideProducts(true)
	a.wideProducts(false)
	a.wideFractions()
	a.wideDigits()
	a.wideLimbs()
	a.wideWords()
	a.wideColumns()
	a.wideRows()
}

// wideBlock is the number of limbs of each operand that are multiplied at a time. The loops need
// whole blocks.
const wideBlock = 4

// wideProducts scans operands block by block (CIOS; Koc, Acar, Kaliski 1996). For every block of y
// it sets t = (t + x y + m q)/2^(52 wideBlock), where q makes the division exact. The limbs of t
// are sums of words below 2^52. A limb lives for n/4 blocks of y, each of which adds 16 words and a
// carry, so limbs stay below 2^64 without carrying. Without operands, t is the input and q the
// output.
func (a *assembler) wideProducts(operands bool) {
	var t, x, y reg.GPVirtual
	if operands {
		a.function("wideProductsIFMA", "t, x, y, mod *uint64, n0 uint64, n int",
			"sets the n limbs of t, n a multiple of 4 below 512, to x y/2^(52n) modulo mod in each of eight lanes. t is below "+
				"2 mod if x y is below mod 2^(52n), its limbs below 2^62; those of x and y are below 2^52. mod has one lane.")
		t, x, y = a.arg("t"), a.arg("x"), a.arg("y")
	} else {
		a.function("wideQuotientsIFMA", "q, t, mod *uint64, n0 uint64, n int",
			"sets the n limbs of q to -t/mod modulo 2^(52n) in each of eight lanes, for limbs of t, which it destroys, below "+
				"2^62. Those of q are below 2^52. mod has one lane.")
		t, y = a.arg("t"), a.arg("q")
	}
	mod, n0, n := a.arg("mod"), a.broadcast("n0"), a.arg("n")
	p := a.wideSums()
	left, to := a.GP64(), a.GP64()
	if operands {
		a.MOVQ(t, to)
		a.MOVQ(n, left)
		zero := a.zero()
		a.Label("clear")
		a.move(zero, Mem{Base: to})
		a.ADDQ(Imm(64), to)
		a.DECQ(left)
		a.JNZ(LabelRef("clear"))
	}

	a.SHRQ(Imm(2), n)
	rows := a.GP64()
	a.MOVQ(n, rows)
	b, q := make([]reg.VecVirtual, wideBlock), make([]reg.VecVirtual, wideBlock)
	for s := range wideBlock {
		b[s], q[s] = a.vec(), a.vec()
	}
	from, m := a.GP64(), a.GP64()
	a.Label("rows")
	for s := range wideBlock {
		if operands {
			a.move(Mem{Base: y, Disp: 64 * s}, b[s])
		}
	}
	if operands {
		a.MOVQ(x, from)
	}
	a.MOVQ(mod, m)
	a.MOVQ(t, to)

	p.begin(to, false)
	if operands {
		for r := range wideBlock {
			p.row(r, b, a.load(Mem{Base: from, Disp: 64 * r}))
		}
		for k := 1; k < wideBlock; k++ {
			a.VPADDQ(p.high[k], p.low[k], p.low[k])
		}
	}
	p.quotients(q, m, n0)
	for s := range wideBlock {
		if !operands {
			a.move(q[s], Mem{Base: y, Disp: 64 * s})
		}
	}
	a.ADDQ(U32(64*wideBlock), y)
	p.shift()

	a.MOVQ(n, left)
	a.DECQ(left)
	a.JZ(LabelRef("last"))
	a.Label("blocks")
	if operands {
		a.ADDQ(U32(64*wideBlock), from)
	}
	a.ADDQ(U32(64*wideBlock), to)
	a.ADDQ(U32(8*wideBlock), m)
	p.begin(to, true)
	for r := range wideBlock { // successive rows do not add to the same limbs
		if operands {
			p.row(r, b, a.load(Mem{Base: from, Disp: 64 * r}))
			r = (r + wideBlock/2) % wideBlock
		}
		p.row(r, q, a.spread(m, r))
	}
	for k := 1; k < wideBlock; k++ {
		a.VPADDQ(p.high[k], p.low[k], p.low[k])
	}
	p.end(to)
	p.shift()
	a.DECQ(left)
	a.JNZ(LabelRef("blocks"))

	a.Label("last")
	a.ADDQ(U32(64*wideBlock), to)
	p.end(to)
	a.DECQ(rows)
	a.JNZ(LabelRef("rows"))
	a.done()
}

// wideFractions writes the kernel that turns quotients into fractions.
func (a *assembler) wideFractions() {
	a.function("wideFractionsIFMA", "y, unit, over *uint64, n int",
		"adds (f + 1/2) unit/4 to the n limbs of y in each of eight lanes, where f is the upper limb of y over 2^52, "+
			"and sets over to the carry. unit has n+1 limbs, the same in all lanes.")
	y, unit, over, n := a.arg("y"), a.arg("unit"), a.arg("over"), a.arg("n")
	low, f, carry := a.lowest52(), a.vec(), a.zero()
	top := a.GP64()
	a.MOVQ(n, top)
	a.SHLQ(Imm(6), top)
	a.move(Mem{Base: y, Index: top, Scale: 1, Disp: -64}, f)
	a.VPSRLQ(Imm(2), f, f)
	a.VPADDQ(a.lanes(1<<49), f, f) // 2^50 (f + 1/2)
	x := a.vec()
	a.Label("limb")
	a.VPADDQ(Mem{Base: y}, carry, x)
	a.VPMADD52HUQ(a.spread(unit, 0), f, x)
	a.VPMADD52LUQ(a.spread(unit, 1), f, x)
	a.VPSRLQ(Imm(52), x, carry)
	a.VPANDQ(low, x, x)
	a.move(x, Mem{Base: y})
	a.ADDQ(Imm(64), y)
	a.ADDQ(Imm(8), unit)
	a.DECQ(n)
	a.JNZ(LabelRef("limb"))
	a.move(carry, Mem{Base: over})
	a.done()
}

// wideDigits multiplies fractions by the base repeatedly; each integer part is a digit.
func (a *assembler) wideDigits() {
	a.function("wideDigitsIFMA", "digits, y, firsts *uint64, base uint64, n, count int",
		"sets words, starting with the last of count words, in each of eight lanes, to the digits of the fraction y of n limbs, "+
			"the upper one first, and destroys y. For every digit, firsts holds the offset in bytes of the lowest limb to keep.")
	digits, y, firsts := a.arg("digits"), a.arg("y"), a.arg("firsts")
	base, low := a.broadcast("base"), a.lowest52()
	upper := a.vec()
	a.VPSRLQ(Imm(52), base, upper)
	n, count := a.arg("n"), a.arg("count")
	end, at := a.GP64(), a.GP64()
	a.SHLQ(Imm(6), n)
	a.LEAQ(Mem{Base: y, Index: n, Scale: 1}, end)
	a.MOVQ(count, at)
	a.SHLQ(Imm(6), at)
	a.ADDQ(at, digits)
	// sums to add to this limb, the next and the one after it
	carry, x, sum, next, after := a.vec(), a.vec(), a.vec(), a.vec(), a.vec()
	a.Label("digit")
	a.SUBQ(Imm(64), digits)
	a.MOVQ(Mem{Base: firsts}, at)
	a.ADDQ(Imm(8), firsts)
	a.ADDQ(y, at)
	a.clear(carry)
	a.clear(sum)
	a.clear(next)
	a.Label("limb")
	a.move(Mem{Base: at}, x)
	a.clear(after)
	a.VPMADD52LUQ(base, x, sum) // uses only the lowest 52 bits of the base
	a.VPMADD52HUQ(base, x, next)
	a.VPMADD52HUQ(upper, x, after)
	a.VPMADD52LUQ(upper, x, next)
	a.VPADDQ(carry, sum, sum)
	a.VPSRLQ(Imm(52), sum, carry)
	a.VPANDQ(low, sum, sum)
	a.move(sum, Mem{Base: at})
	a.move(next, sum)
	a.move(after, next)
	a.ADDQ(Imm(64), at)
	a.CMPQ(at, end)
	a.JNE(LabelRef("limb"))
	a.VPADDQ(carry, sum, sum)
	a.VPSLLQ(Imm(52), next, next)
	a.VPADDQ(sum, next, next)
	a.move(next, Mem{Base: digits})
	a.DECQ(count)
	a.JNZ(LabelRef("digit"))
	a.done()
}

// wideSums holds the limbs of a block of t and of the next block: low[k] + high[k] is limb k.
type wideSums struct {
	*assembler
	low  [2*wideBlock - 1]reg.VecVirtual
	high [2 * wideBlock]reg.VecVirtual // high[0] is not used
}

func (a *assembler) wideSums() *wideSums {
	p := &wideSums{assembler: a}
	for k := range p.low {
		p.low[k] = a.vec()
	}
	for k := range p.high {
		p.high[k] = a.vec()
	}
	return p
}

// begin loads a block of t; with carried it adds the sums that the previous block left in low.
func (p *wideSums) begin(t reg.GPVirtual, carried bool) {
	for k := range wideBlock {
		at := Mem{Base: t, Disp: 64 * k}
		if carried {
			p.VPADDQ(at, p.low[k], p.low[k])
		} else {
			p.move(at, p.low[k])
		}
	}
	for _, z := range p.low[wideBlock:] {
		p.clear(z)
	}
	for _, z := range p.high[1:] {
		p.clear(z)
	}
}

// row adds the product of limb r, v, and a block.
func (p *wideSums) row(r int, b []reg.VecVirtual, v reg.VecVirtual) {
	for s := range wideBlock {
		p.VPMADD52LUQ(b[s], v, p.low[r+s])
		p.VPMADD52HUQ(b[s], v, p.high[r+s+1])
	}
}

// quotients computes q, for which the first block plus q m is divisible by 2^(52 wideBlock), and
// adds q m. For limbs that are not in the next block, high[k] is already added to low[k].
func (p *wideSums) quotients(q []reg.VecVirtual, m reg.GPVirtual, n0 reg.VecVirtual) {
	mod := make([]reg.VecVirtual, wideBlock)
	for r := range mod {
		mod[r] = p.spread(m, r)
	}
	for k := range wideBlock {
		p.clear(q[k])
		p.VPMADD52LUQ(n0, p.low[k], q[k])
		p.VPMADD52LUQ(mod[0], q[k], p.low[k])
		for r := 1; r <= wideBlock; r++ {
			upper := p.low[:]
			if k+r >= wideBlock {
				upper = p.high[:]
			}
			p.VPMADD52HUQ(mod[r-1], q[k], upper[k+r])
			if r < wideBlock {
				p.VPMADD52LUQ(mod[r], q[k], p.low[k+r])
			}
		}
		p.VPSRLQ(Imm(52), p.low[k], p.low[k]) // the rest of the limb is 0
		p.VPADDQ(p.low[k], p.low[k+1], p.low[k+1])
	}
}

// end stores the first block of limbs to the block before t.
func (p *wideSums) end(t reg.GPVirtual) {
	for k := range wideBlock {
		p.move(p.low[k], Mem{Base: t, Disp: 64 * (k - wideBlock)})
	}
}

// shift makes the next block the first one.
func (p *wideSums) shift() {
	for k := range wideBlock {
		if k+wideBlock < len(p.low) {
			p.VPADDQ(p.low[k+wideBlock], p.high[k+wideBlock], p.low[k])
		} else {
			p.move(p.high[k+wideBlock], p.low[k])
		}
	}
}

// wideStep is {offset in bytes from the start of the buffer, shift}.
const wideStep = 16

// wideLimbs cuts words into limbs.
func (a *assembler) wideLimbs() {
	a.function("wideLimbsAVX512", "limbs, words, steps *uint64, n int",
		"sets n limbs of 52 bits in each of eight lanes, from the words and bits at the given steps.")
	limbs, words, steps, n := a.arg("limbs"), a.arg("words"), a.arg("steps"), a.arg("n")
	low, word := a.lowest52(), a.lanes(64)
	at := a.GP64()
	a.Label("limb")
	a.MOVQ(Mem{Base: steps}, at)
	right, left, x, y := a.spread(steps, 1), a.vec(), a.vec(), a.vec()
	a.VPSUBQ(right, word, left)
	a.move(Mem{Base: words, Index: at, Scale: 1}, x)
	a.move(Mem{Base: words, Index: at, Scale: 1, Disp: 64}, y)
	a.VPSRLVQ(right, x, x)
	a.VPSLLVQ(left, y, y)
	a.VPORQ(x, y, y)
	a.VPANDQ(low, y, y)
	a.move(y, Mem{Base: limbs})
	a.ADDQ(Imm(64), limbs)
	a.ADDQ(Imm(wideStep), steps)
	a.DECQ(n)
	a.JNZ(LabelRef("limb"))
	a.done()
}

// wideWords carries and reduces sums and converts them to words.
func (a *assembler) wideWords() {
	a.function("wideWordsAVX512", "words, limbs, mod, steps *uint64, n, l int",
		"carries the n sums of limbs and subtracts mod unless the result is negative, in each of eight lanes, and sets l "+
			"words from the limbs and bits at the given steps, which reach up to two limbs beyond the n. mod has one lane.")
	words, limbs, mod, steps := a.arg("words"), a.arg("limbs"), a.arg("mod"), a.arg("steps")
	n, l := a.arg("n"), a.arg("l")
	low, carry, sign := a.lowest52(), a.zero(), a.zero()
	at, m, left := a.GP64(), a.GP64(), a.GP64()
	x, d := a.vec(), a.vec()
	begin := func(label string) {
		a.MOVQ(limbs, at)
		a.MOVQ(mod, m)
		a.MOVQ(n, left)
		a.Label(label)
	}
	end := func(label string) {
		a.ADDQ(Imm(64), at)
		a.ADDQ(Imm(8), m)
		a.DECQ(left)
		a.JNZ(LabelRef(label))
	}
	begin("carry")
	a.VPADDQ(Mem{Base: at}, carry, x)
	a.VPSRLQ(Imm(52), x, carry)
	a.VPANDQ(low, x, x)
	a.move(x, Mem{Base: at})
	a.VPSUBQ(a.spread(m, 0), x, d)
	a.VPADDQ(d, sign, sign)
	a.VPSRAQ(Imm(52), sign, sign)
	end("carry")

	borrow := a.zero()
	begin("reduce")
	a.VPANDNQ(a.spread(m, 0), sign, d)
	a.VPADDQ(Mem{Base: at}, borrow, x)
	a.VPSUBQ(d, x, x)
	a.VPSRAQ(Imm(52), x, borrow)
	a.VPANDQ(low, x, x)
	a.move(x, Mem{Base: at})
	end("reduce")

	limb := a.lanes(52)
	a.Label("word")
	a.MOVQ(Mem{Base: steps}, at)
	right, shift, y := a.spread(steps, 1), a.vec(), a.vec()
	a.move(Mem{Base: limbs, Index: at, Scale: 1}, x)
	a.VPSRLVQ(right, x, x)
	a.VPSUBQ(right, limb, shift)
	for k := 1; k < 3; k++ {
		a.move(Mem{Base: limbs, Index: at, Scale: 1, Disp: 64 * k}, y)
		a.VPSLLVQ(shift, y, y)
		a.VPORQ(x, y, x)
		if k == 1 {
			a.VPADDQ(limb, shift, shift)
		}
	}
	a.move(x, Mem{Base: words})
	a.ADDQ(Imm(64), words)
	a.ADDQ(Imm(wideStep), steps)
	a.DECQ(l)
	a.JNZ(LabelRef("word"))
	a.done()
}

// wideColumns turns rows of words into vectors.
func (a *assembler) wideColumns() {
	a.function("wideColumnsAVX512", "words, rows *uint64, stride, l int",
		"sets l words in each of eight lanes, and up to seven zeros more, from eight rows of l words that are stride "+
			"bytes apart.")
	a.turn("words", "rows", false)
}

// wideRows writes the inverse of wideColumns.
func (a *assembler) wideRows() {
	a.function("wideRowsAVX512", "rows, words *uint64, stride, l int",
		"stores eight rows of l words that are stride bytes apart from the lanes of l vectors, rounded up to a multiple of eight.")
	a.turn("words", "rows", true)
}

// turn transposes squares of 8 words from rows to vectors, or back.
func (a *assembler) turn(vectors, rows string, back bool) {
	words, row, stride, l := a.arg(vectors), a.arg(rows), a.arg("stride"), a.arg("l")
	stride3, row4, bits, ones := a.GP64(), a.GP64(), a.GP64(), a.GP64()
	a.LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	a.LEAQ(Mem{Base: row, Index: stride, Scale: 4}, row4)
	a.MOVQ(I32(-1), ones)
	at := func(i int) Mem {
		base := []reg.GPVirtual{row, row4}[i/4]
		return []Mem{{Base: base}, {Base: base, Index: stride, Scale: 1}, {Base: base, Index: stride, Scale: 2},
			{Base: base, Index: stride3, Scale: 1}}[i%4]
	}
	k := a.K()
	a.Label("square")
	a.BZHIQ(l, ones, bits) // all ones if at least 8 words remain, as only 8 bits are used
	a.KMOVB(bits.As32(), k)
	v := make([]reg.VecVirtual, 8)
	for i := range v {
		v[i] = a.vec()
		if back {
			a.move(Mem{Base: words, Disp: 64 * i}, v[i])
		} else {
			a.VMOVDQU64_Z(at(i), k, v[i])
		}
	}
	for i, x := range a.transposed(v) {
		if back {
			a.VMOVDQU64(x, k, at(i))
		} else {
			a.move(x, Mem{Base: words, Disp: 64 * i})
		}
	}
	a.ADDQ(U32(512), words)
	a.ADDQ(Imm(64), row)
	a.ADDQ(Imm(64), row4)
	a.SUBQ(Imm(8), l)
	a.JG(LabelRef("square"))
	a.done()
}

// transposed returns the transpose of a square of 8 words.
func (a *assembler) transposed(v []reg.VecVirtual) []reg.VecVirtual {
	pairs := make([]reg.VecVirtual, 8)
	for i := range pairs {
		pairs[i] = a.vec()
		if i%2 == 0 {
			a.VPUNPCKLQDQ(v[i+1], v[i], pairs[i])
		} else {
			a.VPUNPCKHQDQ(v[i], v[i-1], pairs[i])
		}
	}
	out := make([]reg.VecVirtual, 8)
	pick := func(odd uint64, x, y reg.VecVirtual) reg.VecVirtual {
		z := a.vec()
		a.VSHUFI64X2(Imm(0x88+0x55*odd), y, x, z)
		return z
	}
	for i := range 2 { // of the words of the pairs
		for odd := range uint64(2) {
			upper, lower := pick(odd, pairs[i], pairs[i+2]), pick(odd, pairs[i+4], pairs[i+6])
			out[2*int(odd)+i] = pick(0, upper, lower)
			out[2*int(odd)+i+4] = pick(1, upper, lower)
		}
	}
	return out
}

// spread loads word k into all lanes.
func (a *assembler) spread(base reg.GPVirtual, k int) reg.VecVirtual {
	z := a.vec()
	a.VPBROADCASTQ(Mem{Base: base, Disp: 8 * k}, z)
	return z
}
