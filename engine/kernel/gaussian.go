package kernel

import "math/bits"

// : Gaussian holds the constants for making and judging candidates for a discrete Gaussian of width
// w. Package sample explains the method and why its words suffice. For a candidate with the words
// h, v and r and the centre c,
//
//	y  = number of entries of Table below h
//	b  = v mod 2,  u = floor(v/2) mod 2^Log
//	z0 = 2^Log y + u
//	z  = -z0 and t = c, or 1 + z0 and t = 1-c for b = 1
//	x  = (pi/w^2)(u (u + 2^(Log+1) y) + t (t + 2 z0))
//
// and it is accepted if r/2^64 < exp(-x), that is, with probability exp(-x).
type Gaussian struct {
	Log   uint64    // at most 14
	Shift uint64    // pi/w^2 = (Ratio[0]/2^52 + Ratio[1]/2^104)/2^Shift, rounded down; from 1 to 31
	Ratio [2]uint64 // below 2^52, the first from 2^51 on
	Table []uint64  // ascending, not empty, of at most 60 entries
}

// Verdicts about a candidate.
const (
	Rejected uint8 = iota
	Accepted
	// Open means that 51 bits of r do not decide, or that h equals an entry of Table.
	Open
)

// openWindow bounds the error of the comparison with exp(-x), in units of 2^-51.
const openWindow = 32

const lowest52 = 1<<52 - 1

// upper52 and lower52 are the halves of a product of numbers below 2^52.
func upper52(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<12 | lo>>52
}

func lower52(a, b uint64) uint64 { return a * b & lowest52 }

const (
	ln2By57    = 0x162e42fefa39ef3 // floor(2^57 ln 2)
	log2eBy26  = 0x5c551d9         // floor(2^26/ln 2)
	expTerms   = 17
	expUnits   = 51
	sampleBits = 13 // low bits of r that are not compared
)

// expFactors[i] is floor(2^51/i!).
var expFactors = func() (f [expTerms]uint64) {
	factorial := uint64(1)
	for i := range f {
		if i > 0 {
			factorial *= uint64(i)
		}
		f[i] = 1 << expUnits / factorial
	}
	return f
}()

// Judge sets z and verdict for candidates with the words h, v and r and the centres (hi 2^64 +
// lo)/2^128. All slices have the same length. z is valid only where the verdict is Accepted. The
// running time depends only on the lengths.
func (g *Gaussian) Judge(z []int64, verdict []uint8, h, v, r, hi, lo []uint64) {
	n := len(z)
	verdict, h, v, r, hi, lo = verdict[:n], h[:n], v[:n], r[:n], hi[:n], lo[:n]
	for i := g.vectorJudge(z, verdict, h, v, r, hi, lo); i < n; i++ {
		z[i], verdict[i] = g.judge(h[i], v[i], r[i], hi[i], lo[i])
	}
}

func (g *Gaussian) judge(h, v, r, hi, lo uint64) (z int64, verdict uint8) {
	var y, tie uint64
	for _, e := range g.Table {
		_, below := bits.Sub64(e, h, 0)
		y += below
		d := e ^ h
		tie |= 1 &^ ((d | -d) >> 63)
	}
	p, z := g.Probability(y, v, hi, lo)
	accepted, open := compare(p, r)
	open |= tie
	return z, uint8(accepted&^open | open<<1)
}

// Compare returns the verdict on a candidate whose probability is p.
func Compare(p, r uint64) uint8 {
	accepted, open := compare(p, r)
	return uint8(accepted | open<<1)
}

func compare(p, r uint64) (accepted, open uint64) {
	d := int64(r>>sampleBits) - int64(p)
	accepted = uint64(d+openWindow) >> 63
	return accepted, uint64(d-openWindow-1) >> 63 &^ accepted
}

// Probability returns exp(-x) in units of 2^-51, with an error of at most 19, and z, for the
// candidate with the word v and y.
func (g *Gaussian) Probability(y, v, hi, lo uint64) (p uint64, z int64) {
	b, u := v&1, v>>1&(1<<g.Log-1)
	ky := y << g.Log
	z0 := ky | u

	// t = one + tf/2^52
	none := 1 &^ ((lo | -lo) >> 63) // lo = 0
	tf := ((hi ^ -b) + none&b) >> 12
	one := b & none &^ ((hi | -hi) >> 63)

	// x/(pi/w^2) = whole + frac/2^52
	frac := lower52(2*z0, tf) + upper52(tf, tf)
	whole := upper52(2*z0, tf) + frac>>52 + one*(1+2*z0) + u*(u+2*ky)
	frac &= lowest52

	// times pi/w^2, in units of 2^-52
	low := lower52(whole, g.Ratio[0]) + upper52(whole, g.Ratio[1]) + upper52(frac, g.Ratio[0])
	x := upper52(whole, g.Ratio[0])<<(52-g.Shift) + low>>g.Shift

	sign := int64(b) - 1
	return expNeg52(x), (int64(z0) ^ sign) - sign + int64(b)
}

// expNeg52 returns exp(-x/2^52) in units of 2^-51, for x < 2^57.
func expNeg52(x uint64) uint64 {
	n := x >> 20 * log2eBy26 >> 58 // n <= x/ln 2 < n + 1 + 2^-20
	rest := x - n*ln2By57>>5
	acc := expFactors[expTerms-1]
	for i := expTerms - 2; i >= 0; i-- {
		acc = expFactors[i] - upper52(rest, acc)
	}
	return acc >> n
}
