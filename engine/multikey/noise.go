package multikey

import (
	"math"

	"github.com/lodge-mpc/lodge/engine/lwe"
)

// transformError is the error that double-precision transforms add to a product, expressed as the
// standard deviation of errors of its factor modulo 1 with the same effect. A word has 53 bits in a
// transform, and so has a sum of products. It is an upper estimate, which TestTransformError
// verifies with keys without errors. Masks have transform errors too, and these are multiplied by a
// secret in the phase, so transforms add more than the errors of keys.
const transformError = 0x1p-52

const transformSquare = transformError * transformError

// Noise is the noise model of a set for gates whose operands have k parties together, with all k
// parties in both operands. Variances are those of phases as fractions of the torus; terms are
// independent and add up.
type Noise struct {
	Set *Set
	K   int
}

// Noise returns the model for k parties.
func (s *Set) Noise(k int) Noise { return Noise{s, k} }

// digitSquare returns the mean square of a digit: (B^2+2)/12, uniform in [-B/2, B/2).
func (g Gadget) digitSquare() float64 { return (math.Exp2(2*float64(g.LogBase)) + 2) / 12 }

// restSquare returns the mean square of the rounding error, uniform in an interval of length
// B^-Digits.
func (g Gadget) restSquare() float64 { return math.Exp2(-2*float64(g.LogBase*g.Digits)) / 12 }

// ones returns the mean number of ones among the coefficients of s, and among its first Dim, z.
func (s *Set) ones() (all, z float64) {
	z = float64(s.Dim) / float64(s.Block+1)
	return z + float64(s.N()-s.Dim)/2, z
}

// ternary returns the mean square norm of t and of r.
func (s *Set) ternary() float64 { return 2 * float64(s.N()) / 3 }

// ring returns the variance of an error of keys.
func (n Noise) ring() float64 {
	s := n.Set
	rounded := math.Exp2(2*float64(s.Drop-ringBits)) / 12
	if s.Drop == 0 {
		rounded = 0
	}
	return s.Ring*s.Ring + rounded
}

// Fresh returns the variance of an encryption.
func (n Noise) Fresh() float64 { return n.Set.LWE * n.Set.LWE }

// Accumulator returns the variance of a coefficient of a rotated accumulator of one party. In each
// of n/Block steps, the digits of both its halves are multiplied by the rows of Block coordinates,
// times X^c - 1. If one of these coordinates is 1, which has probability Block/(Block+1), the
// rounding error of the decomposition counts with the norm of (1, t):
//
//	n/Block (Block 2 (2 l N D2 (ring + T^2 (1 + |t|^2))) + Block/(Block+1) 2 R2 (1 + |t|^2)),
//
// where T is transformError.
func (n Noise) Accumulator() float64 {
	s, g := n.Set, n.Set.Rotation
	b, t := float64(s.Block), 1+s.ternary()
	rows := b * 2 * 2 * float64(g.Digits) * float64(s.N()) * g.digitSquare() * (n.ring() + transformSquare*t)
	rest := b / (b + 1) * 2 * g.restSquare() * t
	return float64(s.Dim) / b * (rows + rest)
}

// Merged returns the variance of the merged ciphertext of k parties. Product i, which has i-1
// parties before it, decomposes c_0, ..., c_(i-1) with gadget Lev against an accumulator, and then
// the resulting y_j with gadget Uni. Errors at c_j are multiplied by s_j, whose norm is 1 for j = 0
// and ones otherwise. With primes for Uni, and W = l' N D2',
//
//	sum_i (1 + (i-1) ones) (R2 + l N D2 (Accumulator + T^2 (1 + |t|^2)) + R2' |t|^2 + W (ring + T^2))
//	      + ((i-1) W ring + i W T^2 + R2') |r|^2 + W (ring + T^2 (1 + ones)).
//
// The second line covers the sum of the products of y_j with the public parts, and the product of
// that sum with the relinearisation key.
//
// Errors of accumulators behave like noise times t, and are then multiplied by s_j. That is why t
// is ternary: for two binary secrets, whose coefficients have mean 1/2 each, the square of the
// product's norm is not the product of the squared norms but N/12 times as large, nearly all of it
// in the lowest frequency.
func (n Noise) Merged() float64 {
	s, lev, uni := n.Set, n.Set.Lev, n.Set.Uni
	all, _ := s.ones()
	t, degree := s.ternary(), float64(s.N())
	w := float64(uni.Digits) * degree * uni.digitSquare()
	each := lev.restSquare() + float64(lev.Digits)*degree*lev.digitSquare()*(n.Accumulator()+transformSquare*(1+t)) +
		uni.restSquare()*t + w*(n.ring()+transformSquare)
	sum := 0.0
	for i := range n.K {
		before := float64(i)
		sum += (1+before*all)*each + t*(before*w*n.ring()+(before+1)*w*transformSquare+uni.restSquare()) +
			w*(n.ring()+transformSquare*(1+all))
	}
	return sum
}

// Switching returns the variance that key switching adds: for each party (N-n) (l D2 LWE^2 + R2/2).
func (n Noise) Switching() float64 {
	s, g := n.Set, n.Set.Switch
	return float64(n.K) * float64(s.N()-s.Dim) * (float64(g.Digits)*g.digitSquare()*n.Fresh() + g.restSquare()/2)
}

// Gate returns the variance of a result of a gate.
func (n Noise) Gate() float64 { return n.Merged() + n.Switching() }

// Mux returns the variance of a result of a multiplexer, the sum of two merged ciphertexts.
func (n Noise) Mux() float64 { return 2*n.Merged() + n.Switching() }

// Rounding returns the variance of rounding a ciphertext to multiples of 1/2N. In these units the
// error of a word is uniform in [-1/2, 1/2], and a coordinate of z is 1 with probability p =
// 1/(Block+1):
//
//	(1 + k n p)/12         of d_i z_i
//	(1 + k n p (1-p))/12   if the set is Centred: of d_i (z_i - p)
//
// Coordinates of a block depend on each other, but their errors do not, so that the squares add up.
func (n Noise) Rounding() float64 {
	p := 1 / float64(n.Set.Block+1)
	square := p
	if n.Set.Centred {
		square -= p * p
	}
	unit := 1 / float64(2*n.Set.N())
	return (1 + float64(n.K)*float64(n.Set.Dim)*square) / 12 * unit * unit
}

// Failure returns log2 of the probability that a gate with two operands of the given variance
// yields the wrong bit. Sums of operands are at least 1/8 away from a change of sign; exclusive or
// doubles them and has 1/4. Rounding b loses half a unit.
func (n Noise) Failure(operand float64) float64 {
	half := 0.5 / float64(2*n.Set.N())
	r := n.Rounding()
	return max(lwe.Tail(1./8-half, 2*operand+r), lwe.Tail(1./4-half, 8*operand+r))
}

// WorstFailure is Failure for operands that are results of multiplexers, the largest of any gate of
// a circuit.
func (n Noise) WorstFailure() float64 { return n.Failure(n.Mux()) }

// DecryptionFailure returns log2 of the probability that the phase of a ciphertext with the given
// variance has the wrong sign.
func (n Noise) DecryptionFailure(variance float64) float64 { return lwe.Tail(1./8, variance) }
