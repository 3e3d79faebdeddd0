package lwe

import "math"

// Every party's errors have at least this standard deviation, at which sums of discrete Gaussians
// are discrete Gaussians but for 2^-128 (the smoothing of Z), and not the 0.7 of the paper.
const (
	minDeviation = 2.1
	minVariance  = minDeviation * minDeviation
)

// PartyVariance is the variance of the errors that each of n parties contributes to a key whose
// errors are to have the given variance when t parties know their own: max(variance/(n-t), 2.1^2).
// Together they have n times as much.
func PartyVariance(variance float64, parties, threshold int) float64 {
	return max(variance/float64(parties-threshold), minVariance)
}

// Noise is the noise model of a set under keys whose errors have these variances in all. Variances
// of phases are in units of 1, of residues modulo Q, unless said otherwise; terms are independent
// and their variances add up.
type Noise struct {
	Set    *Set
	Ring   float64 // variance of each error of the public key and the rotation key
	Switch float64 // variance of each error of the switching key
}

// Noise is the model under keys that one party makes.
func (s *Set) Noise() Noise { return Noise{s, s.Variance, s.SwitchVariance} }

// NoiseOf is the model under keys that n parties make, t of which may collude.
func (s *Set) NoiseOf(parties, threshold int) Noise {
	all := float64(parties)
	return Noise{
		s, all * PartyVariance(s.Variance, parties, threshold), all * PartyVariance(s.SwitchVariance, parties, threshold),
	}
}

// Variances of the coefficients of z, and of u in encryption, and mean of those of s and of their
// squares.
const (
	varianceZ = 0.5
	meanS     = 0.5
)

// digitSquare is the mean square of a digit: (B^2+2)/12 if it is uniform in [-B/2, B/2), 1/2 if it
// is a bit.
func (g Gadget) digitSquare() float64 {
	if g.LogBase == 1 {
		return 0.5
	}
	b := math.Exp2(float64(g.LogBase))
	return (b*b + 2) / 12
}

// dropSquare is the mean square of what rounding to multiples of D = 2^Drop leaves, uniform in
// [-D/2, D/2): (D^2+2)/12.
func (g Gadget) dropSquare(q uint64) float64 {
	d := g.Drop(q)
	if d == 0 {
		return 0
	}
	return (math.Exp2(2*float64(d)) + 2) / 12
}

// Fresh is the variance of an encryption under the public key, whose noise is e u + e2 - e1 z:
//
//	N Ring/2 + Variance + N Variance/2.
func (n Noise) Fresh() float64 {
	d := float64(n.Set.N())
	return d*n.Ring*varianceZ + n.Set.Variance + d*n.Set.Variance*varianceZ
}

// Bootstrapped returns the variance of a result of a lookup or a gate: of n external products. Each
// has 2 l digits times the errors of as many rows, and rounding errors of the digits, in b and,
// times z, in a, if s_i is 1:
//
//	n (2 l N D2 Ring + R2 (1 + N/2)/2)
//
// for l digits of mean square D2 and rounding errors of mean square R2. A multiplexer has twice as
// much.
func (n Noise) Bootstrapped() float64 {
	s, g, d := n.Set, n.Set.Rotation, float64(n.Set.N())
	return float64(s.Dim) * (2*float64(g.Digits)*d*g.digitSquare()*n.Ring + meanS*g.dropSquare(s.Q)*(1+d*varianceZ))
}

// Switching is the variance that key switching adds:
//
//	N l D2 Switch + R2 N/2.
//
// Bits have the mean 1/2: for B = 2, half of the first term is the same for all ciphertexts of a
// key.
func (n Noise) Switching() float64 {
	g, d := n.Set.Switch, float64(n.Set.N())
	return d*float64(g.Digits)*g.digitSquare()*n.Switch + d*varianceZ*g.dropSquare(n.Set.Q)
}

// Rounding is the variance that modulus switching adds, in units of 2N to the circle. Every
// coordinate a_i is rounded to a multiple of Q/2N, with an error d_i/Q uniform in [-1/2, 1/2], and
// so is b:
//
//	(1 + n/2)/12   of d_i s_i/Q, as half of the s_i are 1
//	(1 + n/4)/12   if the set is Centred: of d_i (s_i - 1/2)/Q
func (n Noise) Rounding() float64 {
	square := meanS
	if n.Set.Centred {
		square -= meanS * meanS
	}
	return (1 + square*float64(n.Set.Dim)) / 12
}

// Decision returns the variance of the turn of a blind rotation, in units of 2N to the circle, for
// an input of given variance: that of the input after key switching, and of rounding.
func (n Noise) Decision(input float64) float64 {
	unit := 2 * float64(n.Set.N()) / float64(n.Set.Q)
	return (input+n.Switching())*unit*unit + n.Rounding()
}

// LookupFailure is log2 of the probability that a lookup takes another entry than that of its
// input's message, for padded input of given variance. The message is decided if the error is below
// N/2p, in units of 2N to the circle.
func (n Noise) LookupFailure(input float64) float64 {
	return Tail(float64(n.Set.N())/float64(2*n.Set.P)-0.5, n.Decision(input))
}

// GateFailure is log2 of the probability that a gate of two inputs of given variance gives the
// wrong bit: a sum of inputs is decided if the error is below N/4; exclusive or doubles the sum and
// has N/2.
func (n Noise) GateFailure(input float64) float64 {
	half, d := float64(n.Set.N())/4, n.Decision
	return max(Tail(half-0.5, d(2*input)), Tail(2*half-0.5, d(8*input)))
}

// OpenFailure returns log2 of the probability that a ciphertext of the given variance, in the plain
// encoding, decodes to another message because its error reaches Q/2p.
func (n Noise) OpenFailure(variance float64) float64 {
	return Tail(float64(n.Set.Q)/float64(2*n.Set.P), variance)
}

// Tail is log2 of the probability that a Gaussian of this variance is at least as large as margin:
// of erfc(x) for x = margin/sqrt(2 variance), which is below exp(-x^2)/(x sqrt(pi)) and close to it
// for x > 3.
func Tail(margin, variance float64) float64 {
	x := margin / math.Sqrt(2*variance)
	if x < 20 {
		return math.Log2(math.Erfc(x))
	}
	return -x*x*math.Log2E - math.Log2(x*math.Sqrt(math.Pi))
}
