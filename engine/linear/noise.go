package linear

import (
	"fmt"
	"math"
	"math/big"
)

// The noise of a ciphertext is e in its phase m/T + e, with m centred. Errors are random; all other
// values are assumed to be the worst case. A sum of errors of width w with a vector u of weights
// exceeds r |u| with probability at most 2 exp(-pi r^2/w^2), as discrete Gaussians are no wider
// than continuous ones. tail is the r for which this is 2^-128: each bound here is wrong for one
// coefficient with at most that probability.

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
		return up(float64(terms)*math.Sqrt(n)*t/2*input + 1 + s.ZeroNoise())
	}
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

// rounding bounds the noise that a switch of the modulus adds.
func (s *Set) rounding() int64 { return int64(1+s.N())/2 + 2 }

// LogDistance is log2 of the largest statistical distance that all answers of one product may have
// together.
const LogDistance = -40

// flooding describes how answers hide their noise.
type flooding struct {
	noise    float64
	bound    *big.Int // of the flood
	distance float64  // log2 of N answers noise/(2 bound + 1)
}

// flood returns the largest flood with which answers decode. With D = Q/q_0,
//
//	(bound + noise)/D + rounding <= (q_0 - 1 - T)/2T.
//
// A uniform variable in [-E, E] and the same variable shifted by x have the statistical distance
// |x|/(2E+1). The error wraps ErrNoise if this exceeds 2^LogDistance for all coefficients of all
// answers together.
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
	if f.bound.Sign() <= 0 || f.distance > LogDistance {
		return nil, fmt.Errorf("%w: %d answers with noises of %.0f bits leave a flood of %d bits in set %s",
			ErrNoise, answers, math.Log2(noise), max(0, f.bound.BitLen()), s.Name)
	}
	return f, nil
}
