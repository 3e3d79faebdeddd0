// Package share implements Shamir's secret sharing over a prime field, on vectors (Shamir, How to
// share a secret, 1979), for the threshold protocols (Damgard and Nielsen, CRYPTO 2007).
//
// A sharing [x]_d of degree d among n parties gives party i, counted from 0, the value f(i+1) of a
// polynomial f of degree at most d over Z_Q with f(0) = x whose other coefficients are uniform. Any
// d of the shares reveal nothing about x, and any d+1 determine it: x is the sum of lambda_i f(i+1)
// for the Lagrange coefficients of those d+1 points at 0, so lambda_i times the share is an
// additive share among them. Sums of sharings are sharings of sums; products of shares of degree t
// are a sharing of the product of degree 2t.
//
// Vectors are shared slot by slot. Points, degrees and parties are public; no branch or index
// depends on a share.
package share

import (
	"fmt"
	"io"
	"math/big"
	"slices"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// MaxParties is the maximum number of parties.
const MaxParties = 64

// Vec is a vector of secret residues: shares or shared values.
type Vec []uint64

// Wipe zeroes v.
func (v Vec) Wipe() { clear(v) }

// Format prints a placeholder, whatever the verb.
func (Vec) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// MarshalText returns a placeholder.
func (Vec) MarshalText() ([]byte, error) { return []byte(secret.Redacted), nil }

// MarshalJSON returns a placeholder.
func (Vec) MarshalJSON() ([]byte, error) { return []byte(`"` + secret.Redacted + `"`), nil }

// MarshalBinary returns secret.ErrEncode.
func (Vec) MarshalBinary() ([]byte, error) { return nil, secret.ErrEncode }

// GobEncode returns secret.ErrEncode.
func (Vec) GobEncode() ([]byte, error) { return nil, secret.ErrEncode }

// Shamir holds the field and the points of n parties. It is immutable and public.
type Shamir struct {
	kernel.Modulus
	parties int
}

// New prepares sharings modulo the prime q, 3 <= q < 2^61, among n parties, 2 <= n <= MaxParties
// and n < q. It returns an error for other values.
func New(q uint64, parties int) (*Shamir, error) {
	m, err := kernel.NewModulus(q)
	switch {
	case err != nil:
		return nil, fmt.Errorf("share: %w", err)
	case !new(big.Int).SetUint64(q).ProbablyPrime(20):
		return nil, fmt.Errorf("share: %d is not prime", q)
	case parties < 2 || parties > MaxParties || uint64(parties) >= q:
		return nil, fmt.Errorf("share: cannot share among %d parties modulo %d (2 to 64 parties, fewer than the modulus)", parties, q)
	}
	return &Shamir{m, parties}, nil
}

// Parties returns the number of parties.
func (s *Shamir) Parties() int { return s.parties }

// Point returns the point at which the polynomial's value is party i's share.
func (s *Shamir) Point(i int) uint64 { return uint64(i) + 1 }

// Lagrange returns c with f(at) = sum of c[k] f(Point(parties[k])) for every polynomial f of degree
// below len(parties). It panics unless the parties exist and are distinct.
func (s *Shamir) Lagrange(at uint64, parties []int) []uint64 {
	points := make([]uint64, len(parties))
	for k, p := range parties {
		if p < 0 || p >= s.parties {
			panic(fmt.Sprintf("share: party %d does not exist among %d", p, s.parties))
		}
		points[k] = s.Point(p)
	}
	return s.interpolation(at, points)
}

// interpolation is Lagrange for any distinct points.
func (s *Shamir) interpolation(at uint64, points []uint64) []uint64 {
	c := make([]uint64, len(points))
	for k, x := range points {
		over, under := uint64(1), uint64(1)
		for j, y := range points {
			if j != k {
				over = s.Mul(over, s.Sub(at, y))
				under = s.Mul(under, s.Sub(x, y))
			}
		}
		if under == 0 {
			panic("share: a party is listed twice")
		}
		c[k] = s.Mul(over, s.Inverse(under))
	}
	return c
}

// block is the number of slots that Combine processes at a time.
const block = 512

// Combine sets dst to the sum of weights[k] vecs[k] for public weights. dst may alias one of the
// vectors.
func (s *Shamir) Combine(dst []uint64, weights []uint64, vecs ...[]uint64) {
	s.combine(dst, s.factors(weights), vecs)
}

func (s *Shamir) factors(weights []uint64) []kernel.Factor {
	f := make([]kernel.Factor, len(weights))
	for k, w := range weights {
		f[k] = s.Factor(w)
	}
	return f
}

func (s *Shamir) combine(dst []uint64, weights []kernel.Factor, vecs [][]uint64) {
	if len(weights) != len(vecs) {
		panic(fmt.Sprintf("share: %d weights for %d vectors", len(weights), len(vecs)))
	}
	room := make([]uint64, 2*min(block, len(dst)))
	sum, term := room[:len(room)/2], room[len(room)/2:]
	for from := 0; from < len(dst); from += block {
		to := min(from+block, len(dst))
		a, b := sum[:to-from], term[:to-from]
		clear(a)
		for k, v := range vecs {
			s.ScaleByVec(b, v[from:to], weights[k])
			s.AddVec(a, a, b)
		}
		copy(dst[from:to], a)
	}
	clear(room)
}

// Reconstruct sets dst to the shared values, from the shares of a quorum of degree+1 parties.
func (s *Shamir) Reconstruct(dst []uint64, quorum []int, shares [][]uint64) {
	s.Combine(dst, s.Lagrange(0, quorum), shares...)
}

// Additive sets dst to party self's additive share among a quorum of degree+1 parties: the sum of
// the quorum's additive shares is the shared value. dst may be the share.
func (s *Shamir) Additive(dst []uint64, quorum []int, self int, mine []uint64) {
	k := slices.Index(quorum, self)
	if k < 0 {
		panic(fmt.Sprintf("share: party %d is not in the quorum", self))
	}
	s.ScaleVec(dst, mine, s.Lagrange(0, quorum)[k])
}

// Share deals the secrets: it sets each shares[i], a vector as long as the secrets, to party i's
// shares of fresh sharings of the degree, which must be below the number of parties.
func (s *Shamir) Share(shares [][]uint64, secrets []uint64, degree int, stream *sample.Stream) {
	d := s.Dealing(0, degree)
	for _, i := range d.Seeded() {
		sample.Uniform(shares[i][:len(secrets)], s.Q, stream)
	}
	d.Deal(shares, secrets)
}
