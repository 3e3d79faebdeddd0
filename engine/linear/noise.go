package linear

import (
	"fmt"
	"math"
	"math/big"
)

// The noise of a ciphertext is e in its phase m/T + e, with m centred. Errors are random; all other
// values are assumed to be the worst case. A sum of errors of width w with a vector u of weights
// exceeds r |u| with probability at most 2 exp(-pi r^2/w^2), because a discrete Gaussian is at most
// as wide as a continuous one. tail is the r for which this is 2^-128: each bound here is wrong for
// one coefficient with at most that probability.

func (s *Set) tail() float64 { return s.ErrorWidth * math.Sqrt(129*math.Ln2/math.Pi) }

// FreshNoise returns a bound on the noise of fresh ciphertexts.
func (s *Set) FreshNoise() float64 { return s.tail() }

// proved returns the bounds that a proof guarantees, each in the canonical norm and so for the
// vector and each coefficient: for twice the secret, twice the error of the key, and twice the
// phase of an input, including its message. Two responses differ by at most twice their bound, plus
// N/2 where they were rounded, and 2/(X^w - X^w') is at most 1/sin(pi/2N).
func (s *Set) proved() (secret, input float64) {
	n := float64(s.N())
	most := 2 / math.Sin(math.Pi/(2*n))
	//lodge:check linear/proof-noise [swap=most * float64(s.Proof.Bound)=>most] [swap=most *
	//  (float64(s.Proof.Bound) + n/2)=>most] the flooding does not cover the slack of the proof
	return up(most * float64(s.Proof.Bound)), up(most * (float64(s.Proof.Bound) + n/2))
}

// ZeroNoise returns a bound on the noise of encryptions of 0 under the public key, e u + e_1 s;
// where inputs are proved, of twice that.
func (s *Set) ZeroNoise() float64 {
	if s.HasProof() {
		secret, _ := s.proved()
		return up((math.Sqrt(float64(s.N())) + s.tail()) * secret)
	}
	return s.tail() * math.Sqrt(2*float64(s.N()))
}

// ProductNoise returns a bound on the noise of a sum of terms fresh ciphertexts times polynomials
// modulo T, where messages have support nonzero coefficients, with an encryption of 0 added. The
// part of products of centred messages beyond T counts as noise too. Where inputs are proved, the
// bound holds for owners that do not follow the protocol, with everything doubled.
func (s *Set) ProductNoise(terms, support int) float64 {
	t, n := float64(s.T), float64(s.N())
	if s.HasProof() {
		_, input := s.proved()
		//lodge:check linear/proof-product [swap=float64(terms) * math.Sqrt(n)=>float64(terms)] the
		//  flooding of products does not cover the slack of the proof
		return up(float64(terms)*math.Sqrt(n)*t/2*input + 1 + s.ZeroNoise())
	}
	//lodge:check linear/noise-of-products [swap=s.tail()=>s.ErrorWidth / 8] the noise exceeds its
	//  bound
	errors := s.tail() * math.Sqrt(float64(terms)*n) * t / 2
	return up(errors + float64(terms)*float64(support)*t/4 + 1 + s.ZeroNoise())
}

// ScalarNoise is ProductNoise for numbers instead of polynomials.
func (s *Set) ScalarNoise(terms int) float64 {
	t := float64(s.T)
	if s.HasProof() {
		_, input := s.proved()
		return up(float64(terms)*t/2*input + 1 + s.ZeroNoise())
	}
	errors := s.tail() * math.Sqrt(float64(terms)) * t / 2
	return up(errors + float64(terms)*t/4 + 1 + s.ZeroNoise())
}

// SquareNoise returns a bound on the noise of a sum of products of a fresh ciphertext and a sum of
// moved ciphertexts whose messages have no coefficient in common, after relinearisation, with an
// encryption of 0 added: of m m'/T + m e' + m' e + T e e' and the digits of the gadget, which are
// at most half their primes.
func (s *Set) SquareNoise(terms, moved int) float64 {
	t, n, k := float64(s.T), float64(s.N()), float64(terms)
	long, wider := s.tail()*math.Sqrt(k*n), math.Sqrt(float64(moved))
	widest := 0.0
	for _, q := range s.Q {
		widest = max(widest, float64(q))
	}
	digits := s.tail() * math.Sqrt(float64(len(s.Q))*n) * widest / 2
	return up(k*n*t/4 + 1 + t/2*long*(1+wider) + t*s.tail()*wider*long + digits + s.ZeroNoise())
}

// up compensates for the rounding of floats.
func up(x float64) float64 { return math.Ceil(x * (1 + 0x1p-30)) }

// roundingTail is the factor r for which a sum of rounding errors exceeds r standard deviations
// with a probability of at most 2^-128; rounding derives it.
const roundingTail = 13.5

// secretVariance returns the variance of a coefficient of the secret key: 2/3 of a ternary one,
// w^2/2pi of a Gaussian one.
func (s *Set) secretVariance() float64 {
	if s.HasProof() {
		return s.Proof.SecretWidth * s.Proof.SecretWidth / (2 * math.Pi)
	}
	return 2.0 / 3
}

// rounding bounds the error that a switch to q_0 adds to a coefficient of the phase, for an owner
// with an honest key. The bound fails with a probability of at most 2^-128 for each coefficient,
// over the key and the answer; a failure makes that coefficient decode to a wrong value.
//
// The switch rounds c_0 and c_1, with errors r_0 and r_1 in [-1/2, 1/2], and the phase changes by
// r_0 + r_1 s. finish has added a fresh encryption of 0 to the answer, so c_1 is pseudorandom also
// to the owner of s, and the test |r_1 s| > x is efficient. Up to the advantage against ring-LWE
// the coefficients of r_1 are therefore independent of s and of each other, and uniform on the
// multiples of q_0/Q in [-1/2, 1/2]. A coefficient of r_1 s is a sum X of N products r s with
// independent factors, and Chernoff's bound is
//
//		P(|X| > x) <= 2 E[exp(t r s)]^N exp(-t x).
//
//	  - Ternary s: E[exp(t r s)] is at most 1/3 + 2/3 sinh(t/2)/(t/2). Its series has the terms 2/3 t^2k/(4^k (2k+1)!), and
//	    that of exp(t^2/36) has t^2k/(36^k k!), which is at least as large for every k >= 1. With V = N/18 the variance of X
//	    and t = x/V this gives P <= 2 exp(-x^2/2V).
//	  - Gaussian s of variance v: E[exp(t r s)] is at most E[exp(a r^2)] with a = t^2 v/2, and by Hoeffding's lemma for r^2 in
//	    [0, 1/4], whose mean is at most 1/12, at most exp(a/12 + a^2/128). With V = N v/12 and x = 13.5 sqrt(V) the last term
//	    adds 9342/N to the exponent, which is 1.6 bits for N = 2^13.
//
// For x = 13.5 sqrt(V) that is 2^-130.4 and 2^-128.8. r_0 depends on the phase and counts with its
// largest value, 1/2. Sets for tests, with N = 64, have no such guarantee. The worst case of r_1 s,
// N/2, is 14 times as large for ternary keys of N = 2^13: a flood that kept that distance left an
// eighth of every cell of the phase empty, and a client whose input has a phase between two
// messages read the entries of a matrix from the place of the gap
// (TestFractionalInputsTellEntries).
func (s *Set) rounding() int64 {
	//lodge:check linear/rounding-gap [swap=roundingTail *
	//  math.Sqrt(float64(s.N())*s.secretVariance()/12)=>float64(s.N()) / 2]
	//  [run=TestFractionalInputsTellEntries|TestRounding] part of a cell of the phase gets no
	//  flooding
	//lodge:check linear/rounding-tail [swap=roundingTail=>8.0] [run=TestRounding] answers with the
	//  largest rounding errors decode wrongly
	return int64(math.Ceil(0.5+roundingTail*math.Sqrt(float64(s.N())*s.secretVariance()/12))) + 2
}

// LogDistance is log2 of the largest statistical distance that all answers of one product may have
// together.
const LogDistance = -40

// flooding is the flood that hides the noise of a plan's answers.
type flooding struct {
	noise    float64  // bound on the noise of a coefficient
	bound    *big.Int // E: the flood is uniform in [-E, E]
	distance float64  // log2 of N answers noise/(2E + 1)
}

// flood returns the largest flood with which answers decode: with D = Q/q_0,
//
//	(bound + noise)/D + rounding <= (q_0 - 1 - T)/2T.
//
// A uniform variable in [-E, E] and the same variable moved by x have the statistical distance
// |x|/(2E+1). The error wraps [ErrNoise] if that adds up to more than 2^LogDistance over all
// coefficients of all answers.
func (s *Set) flood(noise float64, answers int) (*flooding, error) {
	room := big.NewInt(int64((s.Q[0]-1-s.T)/(2*s.T)) - s.rounding())
	for _, q := range s.Q[1:] {
		room.Mul(room, new(big.Int).SetUint64(q))
	}
	worst, _ := big.NewFloat(noise).Int(nil)
	f := &flooding{noise: noise, bound: room.Sub(room, worst)}
	if f.bound.Sign() > 0 {
		e, _ := new(big.Float).SetInt(f.bound).Float64()
		f.distance = math.Log2(noise) - math.Log2(e) - 1 + float64(s.LogN) + math.Log2(float64(answers))
	}
	//lodge:check linear/distance [drop=f.distance > LogDistance] a product is computed although
	//  flooding cannot hide its noise
	//lodge:check linear/no-flood [swap=f.bound.Sign() <= 0 || f.distance >
	//  LogDistance=>f.bound.Sign() > 0 && f.distance > LogDistance] a product is computed without
	//  modulus for its flooding
	if f.bound.Sign() <= 0 || f.distance > LogDistance {
		return nil, fmt.Errorf("%w: %d answers with noises of %.0f bits leave a flood of %d bits in set %s",
			ErrNoise, answers, math.Log2(noise), max(0, f.bound.BitLen()), s.Name)
	}
	return f, nil
}
