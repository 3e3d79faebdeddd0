package field

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/kernel"
)

// maxColumns is the largest number of columns whose digits are computed at a time.
const maxColumns = 8

// digitPlan describes how coefficients are cut into base-b digits: first by b^group, the largest
// power of two of digits that fits a word (or b itself), then each group by b.
type digitPlan struct {
	group    int
	byGroup  divisor // b^group
	byB      divisor
	lengths  []int  // words of floor((p-1)/b^(group·s)), at least 1
	b1, b0   uint64 // b
	t1, t0   uint64 // b/2
	bWords   int
	bBits    int               // the length of b
	radix    *kernel.WideRadix // b^group, or nil
	outWords int
}

func newDigitPlan(f *Field) digitPlan {
	group, power := 1, new(big.Int).Set(f.b)
	for group < f.m && 2*power.BitLen() <= 64 {
		power.Mul(power, power)
		group *= 2
	}
	pl := digitPlan{group: group, byGroup: newDivisor(power), byB: newDivisor(f.b)}
	rest := new(big.Int).Sub(f.p, big.NewInt(1))
	for range f.m / group {
		pl.lengths = append(pl.lengths, max(1, (rest.BitLen()+63)/64))
		rest.Div(rest, power)
	}
	if f.wide != nil && pl.byGroup.words == 1 {
		pl.radix = f.wide.Radix(power.Uint64(), f.m/group)
	}
	pl.bWords, pl.bBits = pl.byB.words, f.b.BitLen()
	pl.b1, pl.b0 = twoWords(f.b)
	half := new(big.Int).Rsh(f.b, 1)
	pl.t1, pl.t0 = twoWords(half)
	pl.outWords = (half.BitLen() + 1 + 63) / 64 // b/2 and a sign
	return pl
}

// twoWords returns the two words of x < 2^128.
func twoWords(x *big.Int) (hi, lo uint64) {
	hi = new(big.Int).Rsh(x, 64).Uint64()
	return hi, new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0))).Uint64()
}

// DigitWords returns the number of words per coefficient that Digits needs.
func (p *Packing) DigitWords() int { return p.digits.outWords }

// Digits sets dst to the canonical lift [mu]_R of a plaintext of D coefficients c_j: coefficient
// iD+j is digit i of c_j in base b, with digits balanced into [-b/2, b/2] (MatriGear, section 2.3,
// with balanced digits). A digit above b/2 becomes negative and carries 1 upwards; digit M-1
// carries -1 into digit 0, as b^M = -1. dst has N coefficients of at least DigitWords words.
func (p *Packing) Digits(dst intpoly.Poly, coeffs Vec) {
	f := p.f
	f.same(coeffs, p.twiddles)
	p.wants(dst, p.digits.outWords)
	m := f.products(p.d)
	defer m.wipe()
	if r := p.digits.radix; r != nil && m.wide != nil {
		p.wideDigits(dst, coeffs, m)
		return
	}
	low := make([]uint64, abreast*(len(p.digits.lengths)+1))
	high := make([]uint64, len(low))
	f.inChunks(p.d, func(i, j int, t Vec) {
		m.scale(t, coeffs.Slice(i, j), f.plainOne)
		for k := 0; k < t.Len(); k += abreast {
			integers := t.Slice(k, min(k+abreast, t.Len()))
			p.divideGroups(low, high, integers)
			p.balance(dst, i+k, integers.Len(), low, high, abreast)
		}
	})
	clear(low)
	clear(high)
}

// wideDigits is Digits for fields where a kernel processes several columns at a time.
func (p *Packing) wideDigits(dst intpoly.Poly, coeffs Vec, m products) {
	r := p.digits.radix
	groups := make([]uint64, r.Words())
	width := r.Columns()
	for j := 0; j < p.d; j += width {
		columns := min(width, p.d-j)
		m.wide.Digits(r, groups, coeffs.Slice(j, j+columns).W)
		p.balance(dst, j, columns, groups, nil, width)
	}
	clear(groups)
}

// divideGroups sets words s·abreast+c of low and high to group s of digits of integer c, and the
// last abreast words of low to 1 for the integer b^M, whose digits are all zero, and else 0. It
// destroys the integers, of which there are at most abreast.
func (p *Packing) divideGroups(low, high []uint64, integers Vec) {
	pl := &p.digits
	var unused [abreast][maxLimbs]uint64
	var rest [abreast][]uint64
	for c := range rest {
		rest[c] = unused[c][:]
		if c < integers.Len() {
			rest[c] = integers.At(c)
		}
	}
	for s, n := range pl.lengths {
		for c, g := range pl.byGroup.divideAbreast(&rest, n) {
			low[s*abreast+c], high[s*abreast+c] = g[0], g[1]
		}
	}
	for c := range rest {
		low[len(pl.lengths)*abreast+c] = rest[c][0]
	}
}

// balance sets columns of dst, from j on, to balanced digits. Words s·width+c of low and high hold
// group s of column c, and the last width words of low hold the multiple of b^M. high is nil if
// groups have one word.
func (p *Packing) balance(dst intpoly.Poly, j, columns int, low, high []uint64, width int) {
	pl := &p.digits
	var carries [maxColumns]uint64
	carry := carries[:columns]
	for s := range pl.lengths {
		for k := range pl.group {
			at := (s*pl.group+k)*p.d + j
			for c := range carry {
				g := low[s*width+c : s*width+c+1]
				hi, lo := uint64(0), g[0]
				if high != nil {
					hi = high[s*width+c]
				}
				if pl.group > 1 {
					hi, lo = pl.byB.divide(g)
				}
				carry[c] = pl.put(dst.Coeff(at+c), hi, lo, carry[c])
			}
		}
	}
	over := low[len(pl.lengths)*width:]
	for c := range carry {
		addSmall(dst.Coeff(j+c), -(carry[c] + over[c]))
	}
}

// put sets dst to digit+carry, minus b if it is above b/2, and returns the carry. digit < b.
func (pl *digitPlan) put(dst []uint64, hi, lo, carry uint64) uint64 {
	lo, c := bits.Add64(lo, carry, 0)
	hi += c // digit+1 <= b < 2^128
	_, c = bits.Sub64(pl.t0, lo, 0)
	_, above := bits.Sub64(pl.t1, hi, c)
	mask := bitMask(above)
	lo, c = bits.Sub64(lo, pl.b0&mask, 0)
	hi, c = bits.Sub64(hi, pl.b1&mask, c)
	dst[0] = lo
	sign := bitMask(c)
	if len(dst) > 1 {
		dst[1] = hi
		for k := 2; k < len(dst); k++ {
			dst[k] = sign
		}
	}
	return above
}

// addSmall adds the signed word v to the two's-complement x.
func addSmall(x []uint64, v uint64) {
	sign := bitMask(v >> 63)
	var c uint64
	x[0], c = bits.Add64(x[0], v, 0)
	for k := 1; k < len(x); k++ {
		x[k], c = bits.Add64(x[k], sign, c)
	}
}

// wants panics unless v has N coefficients of at least words words.
func (p *Packing) wants(v intpoly.Poly, words int) {
	if v.W < words || len(v.C) != p.n*v.W {
		panic(fmt.Sprintf("field: polynomial of %d words, %d each, where N=%d needs at least %d each",
			len(v.C), v.W, p.n, words))
	}
}

// Reduce sets coeffs to mu mod P: c_j is the sum over i of mu_{iD+j}·b^i, mod p. Coefficients of mu
// are signed and may have any size and width.
func (p *Packing) Reduce(coeffs Vec, mu intpoly.Poly) {
	f := p.f
	f.same(coeffs, p.twiddles)
	p.wants(mu, 1)
	// |sum| < 2^(64W-1)·b^M, so L+W words hold it with its sign. They are processed in chunks of L
	// words.
	chunks := (f.limbs + mu.W + f.limbs - 1) / f.limbs
	sum := make([]uint64, chunks*f.limbs)
	parts := make([]Vec, chunks)
	for k := range parts {
		parts[k] = f.NewVec(min(p.d, chunk))
	}
	below := f.NewElement() // -R
	f.Mul(below, f.minusOne, f.rr)
	m := f.products(p.d)
	f.inChunks(p.d, func(first, end int, t Vec) {
		c := coeffs.Slice(first, end)
		for j := range c.Len() {
			p.evaluate(sum, mu, first+j)
			for k := range parts {
				copy(parts[k].At(j), sum[k*f.limbs:])
			}
			// sum = chunk_0 + chunk_1·R + ... - (1 if negative)·R^chunks
			x, sign := c.At(j), bitMask(sum[len(sum)-1]>>63)
			for k := range x {
				x[k] = below[k] & sign
			}
		}
		for k := chunks - 1; k >= 0; k-- {
			if k < chunks-1 {
				m.scale(c, c, f.rr)
			}
			m.scale(t, parts[k].Slice(0, t.Len()), f.rr)
			f.AddVec(c, c, t)
		}
	})
	m.wipe()
	clear(sum)
	for _, v := range parts {
		v.Wipe()
	}
}

// fewWords is the number of words up to which a sum has a fixed size instead of growing with its
// terms.
const fewWords = 6

// evaluate sets sum to the sum over i of mu_{iD+j}·b^i, in two's complement.
func (p *Packing) evaluate(sum []uint64, mu intpoly.Poly, j int) {
	f, words := p.f, 0
	if len(sum) <= fewWords {
		words = len(sum)
		clear(sum)
	}
	for k := range f.m {
		// the sum of k+1 terms is below 2^(64W-1)·b^(k+1)
		longer := min(len(sum), mu.W+((k+1)*p.digits.bBits+63)/64)
		ext := uint64(0)
		if words > 0 {
			ext = bitMask(sum[words-1] >> 63)
		}
		for ; words < longer; words++ {
			sum[words] = ext
		}
		p.digits.horner(sum[:words], mu.Coeff((f.m-1-k)*p.d+j))
	}
	ext := bitMask(sum[words-1] >> 63)
	for ; words < len(sum); words++ {
		sum[words] = ext
	}
}

// horner sets sum = sum·b + m, both in two's complement. m has at most as many words as sum.
func (pl *digitPlan) horner(sum, m []uint64) {
	ext := bitMask(m[len(m)-1] >> 63)
	if pl.bWords == 1 {
		var c uint64
		for k, w := range m {
			c, sum[k] = mulAddWord(sum[k], pl.b0, c, w)
		}
		sum, b0 := sum[len(m):], pl.b0
		for k, x := range sum {
			c, sum[k] = mulAddWord(x, b0, c, ext)
		}
		return
	}
	var prev, c1, c0 uint64 // the word below, and the carry
	for k, x := range sum {
		w := ext
		if k < len(m) {
			w = m[k]
		}
		h, l := mulAddWord(x, pl.b0, c0, w)
		h2, l2 := mulAddWord(prev, pl.b1, l, 0)
		sum[k] = l2
		var o, o2 uint64
		h, o = bits.Add64(h, h2, 0)
		c0, o2 = bits.Add64(h, c1, 0)
		c1 = o + o2
		prev = x
	}
}
