package params

import (
	"math/big"
	"math/bits"
)

// A Proof holds the parameters of one kind of PoPK batch (MatriGear, Fig. 3). Witness and mask of
// the message are drawn in units of P = X^D-b, mu = P*x, so their widths need no factor
// (b+1)/(b-1).
type Proof struct {
	Diag  bool // the message is one constant in every slot; challenges are powers of X^D
	U     int  // ciphertexts per party and batch
	V     int  // repetitions
	Terms int  // coefficients of mu_z: N, or M if Diag, those of powers of X^D

	WidthX float64 // s1 = sqrt(2)*beta: message witnesses x
	WidthY float64 // sqrt(U+1)*s2, s2 = sqrt(2V)*beta: message masks, in units of P too
	WidthR float64 // g1 = 2*s1: encryption randomness r0, r1, r2
	WidthS float64 // sqrt(U+1)*g2, g2 = 2*s2: masks of encryption randomness

	B1  *big.Int // every coefficient of one party's response mu_z must be less than B1 in absolute value
	Bt1 *big.Int // every coefficient of one party's response t, three polynomials, must be less than Bt1
}

// betaSquared is ln(2N(1+2^lambda))/pi: beta is the smoothing parameter of Z^N for an error of
// 2^-lambda.
func betaSquared(s *Set) fixed {
	ln := fixed{ln2Ceil}.timesInt(s.LogN + 1 + s.LambdaSim)
	ln.v.Add(ln.v, new(big.Int).Lsh(one, uint(fracBits-s.LambdaSim))) // ln(1+x) <= x
	return ln.overPi()
}

// repetitions is ceil((lambda+2)/log2(c)) for c challenges, c a power of two.
func repetitions(s *Set, challenges int) int {
	logC := bits.Len(uint(challenges)) - 1
	return (s.LambdaSnd + 2 + logC - 1) / logC
}

// newProof sizes a PoPK batch of u ciphertexts. A response is within a negligible distance of a
// Gaussian of width sqrt(u*s1^2+(u+1)*s2^2), and six widths (fifteen standard deviations) bound
// every coefficient of an honest one.
func newProof(s *Set, f FieldSpec, u int, diag bool) Proof {
	terms := s.N()
	if diag {
		terms = f.M
	}
	v := repetitions(s, 2*terms) // monomials X^k, 0 <= k < 2N, or X^(kD)
	beta2 := betaSquared(s)
	s1, s2 := beta2.timesInt(2), beta2.timesInt(2*v) // squared
	mask := s2.timesInt(u + 1)
	response := s1.timesInt(u).plus(mask).sqrt().timesInt(6)
	bPlus1 := fixedInt(new(big.Int).Add(f.B, one))
	return Proof{
		Diag: diag, U: u, V: v, Terms: terms,
		WidthX: s1.sqrt().width(), WidthY: mask.sqrt().width(),
		WidthR: s1.timesInt(4).sqrt().width(), WidthS: mask.timesInt(4).sqrt().width(),
		B1: response.times(bPlus1).ceil(), Bt1: response.timesInt(2).ceil(),
	}
}

// inverseGap bounds |2/(w^i-w^j)| over distinct powers of a root of unity w of even order c >= 4:
// the smallest |w^i-w^j| is 2*sin(pi/c), and sin x >= x-x^3/6.
func inverseGap(c int) fixed {
	x := fixed{new(big.Int).Add(piFloor, one)}.over(big.NewInt(int64(c))) // at least pi/c, at most pi/4 + tiny
	cube := x.times(x, x).over(big.NewInt(6))
	sin := new(big.Int).Sub(x.v, cube.v)
	sin.Sub(sin, big.NewInt(4)) // makes up for rounding x up: sin grows no faster than x
	return fixed{divUp(new(big.Int).Lsh(one, 2*fracBits), sin)}
}

// extracted bounds the doubled sum of all parties' witnesses of an accepted batch, in the canonical
// norm: |2mu| and |2r|. Full challenges give (4/pi)N^2 times the sums of the bounds. In the
// diagonal case extraction stays in the subring of X^D, where mu has M coefficients and differences
// of challenges have slack M; r has N.
func (p Proof) extracted(s *Set, f FieldSpec, parties int) (mu2, r2 fixed) {
	gap := inverseGap(2 * p.Terms)
	bz, bt := fixedInt(p.B1).timesInt(parties), fixedInt(p.Bt1).timesInt(parties)
	return gap.times(bz.timesInt(2 * p.Terms)), gap.times(bt.timesInt(2 * s.N()))
}
