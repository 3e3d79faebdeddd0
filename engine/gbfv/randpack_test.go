package gbfv_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// quotient returns x with mu = (X^D-b)·x, to the precision of a double: x_k = (x_{k-D} - mu_k)/b,
// where x_{k-D} = -x_{k-D+N} for k < D. A division by b reduces the error of the previous value by
// 2^-LogB, so after two turns the starting values no longer matter.
func quotient(s *gbfv.Scheme, mu intpoly.Poly) []float64 {
	n, d := s.N(), s.Slots()
	b, _ := new(big.Float).SetInt(s.Spec.B).Float64()
	x := make([]float64, n)
	for range 2 {
		for k := range n {
			before := -x[(k-d+n)%n]
			if k >= d {
				before = x[k-d]
			}
			m, _ := new(big.Float).SetInt(mu.Big(k)).Float64()
			x[k] = (before - m) / b
		}
	}
	return x
}

// moments holds the moments of x by the quarter of [0, 1) that contains the centre of its coset.
type moments [4]struct{ n, sum, squares float64 }

func (m *moments) add(x float64) {
	centre := -x - math.Floor(-x) // x is in Z minus the centre
	q := &m[int(4*centre)%4]
	q.n++
	q.sum += x
	q.squares += x * x
}

// check fails the test unless every quarter has mean 0 and the variance w^2/2pi of a Gaussian on
// its coset.
func (m *moments) check(t *testing.T, what string, width float64) {
	t.Helper()
	variance := width * width / (2 * math.Pi)
	for i, q := range m {
		if q.n < 2000 {
			t.Fatalf("%s: only %v values in quarter %d", what, q.n, i)
		}
		// six standard deviations
		if mean := q.sum / q.n; math.Abs(mean) > 6*math.Sqrt(variance/q.n) {
			t.Errorf("%s, quarter %d of centres: x has mean %.3f", what, i, mean)
		}
		if got := q.squares / q.n; math.Abs(got/variance-1) > 6*math.Sqrt(2/q.n) {
			t.Errorf("%s, quarter %d of centres: x has variance %.3f, want %.3f", what, i, got, variance)
		}
	}
}

// The values x = z - t of a random plaintext mu = P·x have mean 0 wherever the centre t of z lies
// in [0, 1): mu reveals only the coset of its message, not a side. The test uses the smallest
// widths, for which a centre shows most.
func TestRandPackIsCentredOnItsCoset(t *testing.T) {
	for _, c := range []struct{ set, field string }{{"insecure-8", "p128"}, {"insecure-8-16", "p128"}} {
		s := newScheme(t, c.set, c.field)
		for _, width := range []float64{3, 7} {
			g, err := sample.NewGaussian(width)
			if err != nil {
				t.Fatal(err)
			}
			stream := sample.NewSource(seed).Stream("centres", uint64(width))
			mu := intpoly.New(s.N(), s.MessageWords())
			coeffs := s.Field.NewVec(s.Slots())
			var full, diag moments
			for range 100 {
				if err := s.Field.Random(coeffs, stream); err != nil {
					t.Fatal(err)
				}
				s.RandPack(mu, coeffs, g, stream)
				for _, x := range quotient(s, mu) {
					full.add(x)
				}
			}
			for range 12000 / s.Spec.M {
				if err := s.Field.Random(coeffs.Slice(0, 1), stream); err != nil {
					t.Fatal(err)
				}
				s.RandPackDiag(mu, coeffs.At(0), g, stream)
				for k, x := range quotient(s, mu) {
					if k%s.Slots() == 0 {
						diag.add(x)
					}
				}
			}
			full.check(t, c.set+" RandPack", width)
			diag.check(t, c.set+" RandPackDiag", width)
		}
	}
}
