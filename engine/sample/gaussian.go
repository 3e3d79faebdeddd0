package sample

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// The discrete Gaussian D of width w and centre c in [0, 1) has D(z) proportional to exp(-pi
// (z-c)^2/w^2) over the integers z. It is sampled in three exact steps, of which only the last
// rejects:
//
//  1. y >= 0 from the half Gaussian of width w/k, by a table of its distribution function, scanned whole;
//     k is the largest power of two up to w/4, and 1 for w < 4, which keeps the table short.
//  2. u uniform in [0, k), and z0 = k y + u; a bit b, and z = -z0 with t = c (b = 0) or z = 1+z0 with
//     t = 1-c (b = 1).
//  3. Accept z with probability exp(-x), x = (pi/w^2) (u (u + 2 k y) + t (t + 2 z0)). The weight of z is
//     then exp(-pi y^2 k^2/w^2) exp(-x) = exp(-pi (z-c)^2/w^2), and every z has exactly one (y, u, b).
//
// This has the structure of Falcon's SamplerZ (a half Gaussian, a sign, an exponential), with
// integers instead of floating point and any width instead of a fixed one. A candidate is accepted
// with probability w/(w+k), at least 3/4.
//
// Package kernel judges many candidates at a time, in rounds: each missing value gets a candidate,
// and rejected candidates are replaced in the next round. A candidate is three words: h, whose
// position in the table is y; v, which holds b and u; and r, which is compared with exp(-x).
//
// Accuracy. The table has 192 bits and ends where less than 2^-192 is left: at most 60 entries, an
// error below 2^-185 for each candidate. The kernel has the upper 64 bits of its entries and leaves
// the candidate open if h equals the upper 64 bits of an entry; then 128 more bits are drawn. Step
// 3 decides lazily whether a uniform number is below exp(-x): the kernel computes P = 2^51 exp(-x)
// in words, within 19 (see below), and decides by the first 51 bits of the number unless they are
// within 32 of P. Otherwise, with probability 2^-45, 192 bits are drawn after the first 63, and all
// 255 are compared with 2^255 exp(-x), computed to more than 256 bits. The accepted distribution
// differs from D by less than 2^-180. A centre has 128 bits: moving one by 2^-128 moves D by less
// than 2^-129 in statistical distance, whose growth is half the mean deviation of 2 pi (z-c)/w^2,
// at most sqrt(pi/2)/w.
//
// Error of P, in units of 2^-51, for w >= 3. The table ends at k y < 6.65 w, so z0 < 6.9 w and x <
// 32.
//
//	t cut to 52 bits         moves x by (pi/w^2)(2 + 2 z0) 2^-52 < 16·2^-52     8
//	t^2 cut                                                                     0.2
//	products for x cut       three, shifted by 1 or more, and the shift         1.5
//	n ln 2 cut               ln 2 has 57 bits, and n < 2^6                      1.3
//	exp(-r), r < 0.7         term i: constant and product cut, times 0.7^i      6.7
//	the rest of its series   0.7^17/17! < 2^-57                                 0.1
//	times 2^-n                                                                  1
//
// The sum is below 19.

// Frac is the fraction (Hi 2^64 + Lo)/2^128 in [0, 1).
type Frac struct{ Hi, Lo uint64 }

// Widths that a Gaussian may have.
const (
	minWidth = 3
	maxWidth = 1 << 16
)

// Gaussian samples the discrete Gaussian of one width. It is immutable, public, and may be shared.
type Gaussian struct {
	width  float64
	table  [][3]uint64     // floor(2^192 P(y <= j)) for j = 0, 1, ...; least significant word first
	ratio  *big.Float      // pi/w^2
	kernel kernel.Gaussian // 2^Log is k
}

// NewGaussian prepares the width w, 3 <= w <= 65536, as the exact value of the double.
func NewGaussian(width float64) (*Gaussian, error) {
	if !(width >= minWidth && width <= maxWidth) {
		return nil, fmt.Errorf("sample: Gaussian width %v is not supported (%d to %d)", width, minWidth, maxWidth)
	}
	g := &Gaussian{width: width}
	for width/4 >= float64(uint64(2)<<g.kernel.Log) {
		g.kernel.Log++
	}
	w := newFloat().SetFloat64(width)
	g.ratio = newFloat().Quo(pi, newFloat().Mul(w, w))

	g.table = halfTable(newFloat().Mul(g.ratio, newFloat().SetUint64(1<<(2*g.kernel.Log))))
	for _, e := range g.table {
		g.kernel.Table = append(g.kernel.Table, e[2])
	}
	mantissa := newFloat()
	exponent := g.ratio.MantExp(mantissa) // ratio = mantissa 2^exponent, 1/2 <= mantissa < 1
	g.kernel.Shift = uint64(-exponent)
	a, _ := newFloat().SetMantExp(mantissa, 104).Int(nil)
	low := words(a, 2)
	g.kernel.Ratio = [2]uint64{low[1]<<12 | low[0]>>52, low[0] & (1<<52 - 1)}
	return g, nil
}

// halfTable returns the table of the distribution on y >= 0 with weights exp(-scale y^2).
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
	for _, sum := range sums[:len(sums)-1] { // the value after the last sum needs no entry
		p, _ := newFloat().SetMantExp(newFloat().Quo(sum, total), 192).Int(nil)
		table = append(table, [3]uint64(words(p, 3)))
	}
	return table
}

// Width returns the width w.
func (g *Gaussian) Width() float64 { return g.width }

// Sample fills dst from the Gaussian with centre 0.
func (g *Gaussian) Sample(dst []int64, s *Stream) { g.sample(dst, nil, s) }

// SampleAt fills dst[i] from the Gaussian with centre centres[i]. Both slices have the same length.
func (g *Gaussian) SampleAt(dst []int64, centres []Frac, s *Stream) {
	if len(dst) != len(centres) {
		panic(fmt.Sprintf("sample: %d centres for %d values", len(centres), len(dst)))
	}
	g.sample(dst, centres, s)
}

// batch is the number of values drawn at a time.
const batch = 512

// round holds the candidates of a round.
type round struct {
	words   [3 * batch]uint64
	hi, lo  [batch]uint64 // the centres
	z       [batch]int64
	verdict [batch]uint8
	at      [batch]uint16 // positions of the values
}

// sample is SampleAt, with centres 0 if centres is nil.
func (g *Gaussian) sample(dst []int64, centres []Frac, s *Stream) {
	var r round
	for start := 0; start < len(dst); start += batch {
		end := min(start+batch, len(dst))
		part := centres
		if part != nil {
			part = part[start:end]
		}
		g.fill(dst[start:end], part, s, &r)
	}
	r.wipe()
}

// wipe erases the drawn values. It is a separate function so that no compiler removes it as
// useless.
//
//go:noinline
func (r *round) wipe() { *r = round{} }

// fill draws up to batch values. Its control flow depends on the verdicts, not on values.
func (g *Gaussian) fill(dst []int64, centres []Frac, s *Stream, r *round) {
	left := len(dst)
	for i := range left {
		r.at[i] = uint16(i)
	}
	for n := left; n > 0; n = left {
		w := r.words[:3*n]
		s.words(w)
		if centres != nil {
			for i, at := range r.at[:n] {
				r.hi[i], r.lo[i] = centres[at].Hi, centres[at].Lo
			}
		}
		z, verdict := r.z[:n], r.verdict[:n]
		g.kernel.Judge(z, verdict, w[:n], w[n:2*n], w[2*n:], r.hi[:n], r.lo[:n])
		left = 0
		for i, v := range verdict {
			if v == kernel.Open {
				z[i], v = g.resolve([3]uint64{w[i], w[n+i], w[2*n+i]}, Frac{r.hi[i], r.lo[i]}, s)
			}
			at := r.at[i]
			dst[at] = z[i] // rejected values are drawn again
			r.at[left] = at
			left += int(kernel.Accepted - v)
		}
	}
}

// candidate holds the inputs of step 3.
type candidate struct {
	y, u, b uint64
	c       Frac
}

// word packs b and u into the candidate's word.
func (v candidate) word() uint64 { return v.u<<1 | v.b }

// value returns z.
func (g *Gaussian) value(v candidate) int64 {
	_, z := g.kernel.Probability(v.y, v.word(), v.c.Hi, v.c.Lo)
	return z
}

// resolve judges a candidate with the words h, v and r that the kernel leaves open. This happens
// with probability 2^-45, so its branches and its big integers, whose time depends on the
// candidate, reveal nothing that matters.
func (g *Gaussian) resolve(w [3]uint64, c Frac, s *Stream) (z int64, verdict uint8) {
	v := candidate{y: g.half(w[0], s), u: w[1] >> 1 & (1<<g.kernel.Log - 1), b: w[1] & 1, c: c}
	p, z := g.kernel.Probability(v.y, v.word(), c.Hi, c.Lo)
	verdict = kernel.Compare(p, w[2])
	if verdict == kernel.Open {
		verdict = g.refine(v, w[2]>>1, s)
	}
	return z, verdict
}

// half returns the position in the table of a number whose upper word is h. It draws two more words
// if h does not decide.
func (g *Gaussian) half(h uint64, s *Stream) (y uint64) {
	var lower, middle uint64
	for _, e := range g.table {
		if e[2] == h {
			lower, middle = s.Uint64(), s.Uint64()
			break
		}
	}
	for _, e := range g.table {
		_, c := bits.Sub64(lower, e[0], 0)
		_, c = bits.Sub64(middle, e[1], c)
		_, c = bits.Sub64(h, e[2], c)
		y += 1 - c // add 1 if the number is not below the entry
	}
	return y
}

// refine decides by the first 63 bits, r, and 192 more bits.
func (g *Gaussian) refine(v candidate, r uint64, s *Stream) uint8 {
	uniform := new(big.Int).SetUint64(r)
	for range 3 {
		uniform.Lsh(uniform, 64).Or(uniform, new(big.Int).SetUint64(s.Uint64()))
	}
	if uniform.Cmp(g.threshold(v)) < 0 {
		return kernel.Accepted
	}
	return kernel.Rejected
}

// threshold is floor(2^255 exp(-x)), or one less.
func (g *Gaussian) threshold(v candidate) *big.Int {
	t := newFloat().SetInt(fracInt(v.c))
	t.SetMantExp(t, -128)
	if v.b == 1 {
		t.Sub(newFloat().SetInt64(1), t)
	}
	ky := v.y << g.kernel.Log
	z0 := newFloat().SetUint64(ky + v.u)
	x := newFloat().Mul(t, newFloat().Add(t, newFloat().Add(z0, z0)))
	x.Add(x, newFloat().SetUint64(v.u*(v.u+2*ky)))
	p := expNeg(x.Mul(x, g.ratio))

	limit, _ := newFloat().SetMantExp(p, 255).Int(nil)
	return limit
}

// fracInt returns 2^128 c.
func fracInt(c Frac) *big.Int {
	v := new(big.Int).SetUint64(c.Hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(c.Lo))
}

// Precision of big floats, in bits.
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
