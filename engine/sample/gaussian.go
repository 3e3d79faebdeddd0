package sample

import (
	"fmt"
	"math/big"
	"math/bits"
)

// The discrete Gaussian D of width w and centre c in [0, 1) has D(z) proportional to exp(-pi (z-c)^2/w^2)
// over the integers z. It is sampled in three exact steps, of which only the last rejects:
//
//  1. y >= 0 from the half Gaussian of width w/k, by a table of its distribution function, scanned whole;
//     k = max(1, floor(w/4)) keeps the table short.
//  2. u uniform in [0, k), and z0 = k y + u; a bit b, and z = -z0 with t = c (b = 0) or z = 1+z0 with
//     t = 1-c (b = 1).
//  3. Accept z with probability exp(-x), x = (pi/w^2) (u (u + 2 k y) + t (t + 2 z0)). The weight of z is
//     then exp(-pi y^2 k^2/w^2) exp(-x) = exp(-pi (z-c)^2/w^2), and every z has exactly one (y, u, b).
//
// This is the shape of Falcon's SamplerZ (a half Gaussian, a sign, an exponential), with integers for its
// floating point and any width for its fixed one. A candidate with u < k, which is more than half of the draws
// (all for k = 1), is accepted with probability w/(w+k) >= 3/4.
//
// Accuracy. The table has 192 bits and ends where less than 2^-192 is left: at most 60 entries, an error
// below 2^-185 for each candidate. Step 3 decides whether a uniform number is below exp(-x), lazily: it
// computes P = 2^63 exp(-x) in words, within 128 (below), and decides by the first 63 bits of the number
// unless they are within 128 of P. Then, with probability 2^-55, it draws 192 more bits and compares all 255
// with 2^255 exp(-x), computed to more than 256 bits. The accepted distribution differs from D by less than
// 2^-180. A centre is 128 bits: moving one by 2^-128 moves D by less than 2^-129 in statistical distance, whose
// growth is half the mean deviation of 2 pi (z-c)/w^2, at most sqrt(pi/2)/w.
//
// Error of P, in units of 2^-63, for w >= 3. The table ends at k y < 6.65 w, so z0 < 6.9 w and x < 32.
//
//	t cut to 64 bits       moves x by (pi/w^2)(2 + 2 z0) 2^-64 < 16·2^-64      8
//	products for x cut     t^2, the product by pi/w^2, its shift               2
//	pi/w^2 cut to 64 bits  moves x by x 2^-63, exp(-x) by x exp(-x) 2^-63      1
//	n ln 2 cut             moves exp(-x) by n 2^-64 2^-n                       1
//	exp(-r), r < 0.7       term i: constant and product cut, times 0.7^i       7
//	the rest of its series 0.7^19/19! < 2^-66                                  1
//	times 2^-n, and the cap of 2^63 - 1                                        2
//
// The sum is 22.

// Frac is the fraction (Hi 2^64 + Lo)/2^128 in [0, 1).
type Frac struct{ Hi, Lo uint64 }

// Widths that a Gaussian may have.
const (
	minWidth = 3
	maxWidth = 1 << 16
)

// Gaussian samples the discrete Gaussian of one width. It is immutable, public, and may be shared.
type Gaussian struct {
	width float64
	k     uint64      // 1 <= k <= 2^14
	kMask uint64      // the least 2^i - 1 that is k-1 or more
	table [][3]uint64 // floor(2^192 P(y <= j)) for j = 0, 1, ...; least significant word first
	a     uint64      // pi/w^2 = a 2^-(64+shift), a >= 2^63
	shift uint
	ratio *big.Float // pi/w^2
}

// NewGaussian prepares a width, 3 <= w <= 65536, taken as the exact value of the double.
func NewGaussian(width float64) (*Gaussian, error) {
	if !(width >= minWidth && width <= maxWidth) {
		return nil, fmt.Errorf("sample: Gaussian of width %v, want %d to %d", width, minWidth, maxWidth)
	}
	g := &Gaussian{width: width, k: max(1, uint64(width/4))}
	g.kMask = 1<<bits.Len64(g.k-1) - 1
	w := newFloat().SetFloat64(width)
	g.ratio = newFloat().Quo(pi, newFloat().Mul(w, w))

	g.table = halfTable(newFloat().Mul(g.ratio, newFloat().SetUint64(g.k*g.k)))
	mantissa := newFloat()
	exponent := g.ratio.MantExp(mantissa) // ratio = mantissa 2^exponent, 1/2 <= mantissa < 1
	g.shift = uint(-exponent)
	a, _ := newFloat().SetMantExp(mantissa, 64).Int(nil)
	g.a = a.Uint64()
	return g, nil
}

// halfTable is the table of the distribution on y >= 0 with weights exp(-scale y^2).
func halfTable(scale *big.Float) (table [][3]uint64) {
	var sums []*big.Float
	total := newFloat()
	cut := newFloat().SetMantExp(newFloat().SetInt64(1), -200)
	for y := int64(0); ; y++ {
		weight := expNeg(newFloat().Mul(scale, newFloat().SetInt64(y*y)))
		if weight.Cmp(cut) < 0 {
			break
		}
		total = newFloat().Add(total, weight)
		sums = append(sums, total)
	}
	for _, sum := range sums[:len(sums)-1] { // what is above the last is the last value
		p, _ := newFloat().SetMantExp(newFloat().Quo(sum, total), 192).Int(nil)
		table = append(table, [3]uint64(words(p, 3)))
	}
	return table
}

// Width is the width w.
func (g *Gaussian) Width() float64 { return g.width }

// Sample fills dst from the Gaussian with centre 0.
func (g *Gaussian) Sample(dst []int64, s *Stream) {
	for i := range dst {
		dst[i] = g.one(Frac{}, s)
	}
}

// SampleAt fills dst[i] from the Gaussian with centre centres[i], of which there are as many.
func (g *Gaussian) SampleAt(dst []int64, centres []Frac, s *Stream) {
	if len(dst) != len(centres) {
		panic(fmt.Sprintf("sample: %d centres for %d values", len(centres), len(dst)))
	}
	for i := range dst {
		dst[i] = g.one(centres[i], s)
	}
}

// candidate is what step 3 decides on.
type candidate struct {
	y, u, b uint64
	c       Frac
}

// value is z.
func (g *Gaussian) value(v candidate) int64 {
	z0 := int64(g.k*v.y + v.u)
	sign := int64(v.b) - 1 // -1 for b = 0
	return (z0 ^ sign) - sign + int64(v.b)
}

func (g *Gaussian) one(c Frac, s *Stream) int64 {
	for {
		v := candidate{y: g.half(s), c: c}
		word := s.Uint64()
		v.b, v.u = word&1, word>>1&g.kMask
		if v.u >= g.k || !g.accept(v, s) {
			continue
		}
		return g.value(v)
	}
}

// half samples y by scanning the table.
func (g *Gaussian) half(s *Stream) uint64 {
	r0, r1, r2 := s.Uint64(), s.Uint64(), s.Uint64()
	var y uint64
	for i := range g.table {
		e := &g.table[i]
		_, c := bits.Sub64(r0, e[0], 0)
		_, c = bits.Sub64(r1, e[1], c)
		_, c = bits.Sub64(r2, e[2], c)
		y += 1 - c // r >= entry
	}
	return y
}

// window bounds the error of the first comparison, in units of 2^-63.
const window = 128

// accept decides with probability exp(-x).
func (g *Gaussian) accept(v candidate, s *Stream) bool {
	r := s.Uint64() >> 1
	p := g.probability(v)
	d := int64(r) - int64(p) // p <= 2^63 - 1
	if d < -window {
		return true
	}
	if d > window {
		return false
	}
	return g.refine(v, r, s)
}

// probability is 2^63 exp(-x) within window.
func (g *Gaussian) probability(v candidate) uint64 {
	// t = tOne + tf/2^64
	isZero := 1 - ((v.c.Hi|v.c.Lo)|-(v.c.Hi|v.c.Lo))>>63
	lowZero := 1 - (v.c.Lo|-v.c.Lo)>>63
	mask := -v.b
	tf := (v.c.Hi &^ mask) | ((^v.c.Hi + lowZero) & mask)
	tOne := isZero & v.b

	z0 := g.k*v.y + v.u
	hi, lo := bits.Mul64(2*z0, tf) // 2 z0 t, units of 2^-64
	square, _ := bits.Mul64(tf, tf)
	lo, c := bits.Add64(lo, square, 0)
	hi += c + tOne*(1+2*z0) + v.u*(v.u+2*g.k*v.y)

	// x = (hi, lo) a 2^-(64+shift), in units of 2^-64 with the integer part above
	x2, x1 := bits.Mul64(hi, g.a)
	h, _ := bits.Mul64(lo, g.a)
	x1, c = bits.Add64(x1, h, 0)
	x2 += c
	frac := x1>>g.shift | x2<<(64-g.shift)
	whole := x2 >> g.shift
	return expNegWord(whole, frac)
}

const (
	ln2Word    = 0xb17217f7d1cf79ab // floor(2^64 ln 2)
	log2eFloor = 0xb8aa3b295c17f0bb // floor(2^63/ln 2), so that 1/ln 2 = 1.44...
)

// inverseFactorial[i] is floor(2^63/i!).
var inverseFactorial = func() (f [19]uint64) {
	v := uint64(1) << 63
	exact := new(big.Int).SetUint64(v)
	for i := range f {
		if i > 0 {
			exact.Quo(exact, big.NewInt(int64(i)))
		}
		f[i] = exact.Uint64()
	}
	return f
}()

// expNegWord is 2^63 exp(-(whole + frac/2^64)) within 14, at most 2^63 - 1, for whole < 64.
func expNegWord(whole, frac uint64) uint64 {
	// n <= x/ln 2 with x/ln 2 - n < 1 + 2^-50
	x := whole<<56 | frac>>8
	hi, _ := bits.Mul64(x, log2eFloor)
	n := hi >> 55
	r := frac - n*ln2Word // x - n ln 2 is in [0, 0.7), so its integer part cancels
	acc := inverseFactorial[len(inverseFactorial)-1]
	for i := len(inverseFactorial) - 2; i >= 0; i-- {
		m, _ := bits.Mul64(r, acc)
		acc = inverseFactorial[i] - m
	}
	p := acc >> n    // 0 for n > 63
	return p - p>>63 // 2^63 becomes 2^63 - 1
}

// refine decides where the first 63 bits, r, do not, with 192 more bits. It is reached with probability
// 2^-55: that it uses big integers, whose time depends on the candidate, shows nothing that matters.
func (g *Gaussian) refine(v candidate, r uint64, s *Stream) bool {
	uniform := new(big.Int).SetUint64(r)
	for range 3 {
		uniform.Lsh(uniform, 64).Or(uniform, new(big.Int).SetUint64(s.Uint64()))
	}
	return uniform.Cmp(g.threshold(v)) < 0
}

// threshold is floor(2^255 exp(-x)), or one less.
func (g *Gaussian) threshold(v candidate) *big.Int {
	t := newFloat().SetInt(fracInt(v.c))
	t.SetMantExp(t, -128)
	if v.b == 1 {
		t.Sub(newFloat().SetInt64(1), t)
	}
	z0 := newFloat().SetUint64(g.k*v.y + v.u)
	x := newFloat().Mul(t, newFloat().Add(t, newFloat().Add(z0, z0)))
	x.Add(x, newFloat().SetUint64(v.u*(v.u+2*g.k*v.y)))
	p := expNeg(x.Mul(x, g.ratio))

	limit, _ := newFloat().SetMantExp(p, 255).Int(nil)
	return limit
}

// fracInt is 2^128 c.
func fracInt(c Frac) *big.Int {
	v := new(big.Int).SetUint64(c.Hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(c.Lo))
}

// precision of big floats in bits.
const precision = 320

func newFloat() *big.Float { return new(big.Float).SetPrec(precision) }

var pi = func() *big.Float {
	// 3 + fraction, 320 bits
	v, ok := new(big.Int).SetString("3243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89452821e638d01377be5466cf34e90c6cc0ac", 16)
	if !ok {
		panic("sample: bad constant")
	}
	f := newFloat().SetInt(v)
	return f.SetMantExp(f, -(v.BitLen() - 2))
}()

// expNeg is exp(-x) for 0 <= x < 2^20, with a relative error below 2^-290.
func expNeg(x *big.Float) *big.Float {
	const halvings = 24
	r := newFloat().Set(x)
	if r.Sign() != 0 {
		r.SetMantExp(r, -halvings)
	}
	sum, term := newFloat().SetInt64(1), newFloat().SetInt64(1)
	for i := int64(1); term.Sign() != 0 && term.MantExp(nil) > -precision; i++ {
		term.Mul(term, r)
		term.Quo(term, newFloat().SetInt64(-i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}
