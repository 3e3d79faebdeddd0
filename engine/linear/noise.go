package linear

import (
	"fmt"
	"math"
	"math/big"
)

// The noise of a ciphertext is e in its phase m/T + e, with m centred. Errors are drawn; all else is as bad as it can
// be. A sum of errors of width w with a vector u of weights exceeds r |u| with a probability of at most 2 exp(-pi
// r^2/w^2), as discrete Gaussians are no wider than continuous ones, and tail is the r for which that is 2^-128: the
// bounds here are wrong for one coefficient with that probability at most.

func (s *Set) tail() float64 { return s.ErrorWidth * math.Sqrt(129*math.Ln2/math.Pi) }

// FreshNoise bounds the noise of fresh ciphertexts.
func (s *Set) FreshNoise() float64 { return s.tail() }

// proved bounds what a proof shows, each in the canonical norm and so as a vector and in each coefficient: twice the
// secret, twice the error of the key, and twice the phase of an input, its message included. A response differs from
// another one by at most twice its bound, and by N/2 more where it was rounded, and 2/(X^w - X^w') is at most
// 1/sin(pi/2N).
func (s *Set) proved() (secret, input float64) {
	n := float64(s.N())
	most := 2 / math.Sin(math.Pi/(2*n))
	return up(most * float64(s.Proof.Bound)), up(most * (float64(s.Proof.Bound) + n/2))
}

// ZeroNoise bounds that of encryptions of 0 under the public key, e u + e_1 s; where inputs are proved, of twice that.
func (s *Set) ZeroNoise() float64 {
	if s.HasProof() {
		secret, _ := s.proved()
		return up((math.Sqrt(float64(s.N())) + s.tail()) * secret)
	}
	return s.tail() * math.Sqrt(2*float64(s.N()))
}

// ProductNoise bounds the noise of a sum of so many fresh ciphertexts times polynomials modulo T, where messages have
// so many coefficients that are not 0, with an encryption of 0 added. What products of centred messages are beyond T is
// noise too. Where inputs are proved it is for owners that do not follow the protocol, with everything doubled.
func (s *Set) ProductNoise(terms, support int) float64 {
	t, n := float64(s.T), float64(s.N())
	if s.HasProof() {
		_, input := s.proved()
		return up(float64(terms)*math.Sqrt(n)*t/2*input + 1 + s.ZeroNoise())
	}
	errors := s.tail() * math.Sqrt(float64(terms)*n) * t / 2
	return up(errors + float64(terms)*float64(support)*t/4 + 1 + s.ZeroNoise())
}

// ScalarNoise is ProductNoise for numbers in the place of polynomials.
func (s *Set) ScalarNoise(terms int) float64 {
	t := float64(s.T)
	if s.HasProof() {
		_, input := s.proved()
		return up(float64(terms)*t/2*input + 1 + s.ZeroNoise())
	}
	errors := s.tail() * math.Sqrt(float64(terms)) * t / 2
	return up(errors + float64(terms)*t/4 + 1 + s.ZeroNoise())
}

// SquareNoise bounds the noise of a sum of so many products of a fresh ciphertext and a sum of moved ones, whose messages
// have no coefficient in common, after relinearisation, with an encryption of 0 added: of m m'/T + m e' + m' e + T e e'
// and the digits of the gadget, which are at most half their primes.
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

// up covers the rounding of floats.
func up(x float64) float64 { return math.Ceil(x * (1 + 0x1p-30)) }

// rounding bounds what a switch of the modulus adds to the noise.
func (s *Set) rounding() int64 { return int64(1+s.N())/2 + 2 }

// LogDistance is log2 of the statistical distance that all answers of one product may have together.
const LogDistance = -40

// flooding is how answers hide their noise.
type flooding struct {
	noise    float64
	bound    *big.Int // of the flood
	distance float64  // log2 of N answers noise/(2 bound + 1)
}

// flood returns the largest flood with which answers decode: with D = Q/q_0,
//
//	(bound + noise)/D + rounding <= (q_0 - 1 - T)/2T.
//
// A uniform variable in [-E, E] and one moved by x have the statistical distance |x|/(2E+1). The error wraps ErrNoise
// if that is more than 2^LogDistance for all coefficients of all answers together.
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
