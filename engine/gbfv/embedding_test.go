package gbfv_test

import (
	"math"
	"math/big"
	"math/cmplx"
	"testing"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// An embedding represents a polynomial with real coefficients by its values at the roots of X^N+1:
// value j belongs to exp(i·pi·(2j+1)/N), and value N-1-j is its conjugate. It is for measurements
// only: its doubles have 53 bits.
type embedding []complex128

// embed evaluates a polynomial. N is a power of two.
func embed(coeffs []float64) embedding {
	n := len(coeffs)
	v := make(embedding, n)
	for k, c := range coeffs {
		v[k] = complex(c, 0) * cmplx.Rect(1, math.Pi*float64(k)/float64(n))
	}
	transform(v, 1)
	return v
}

// coefficients is the inverse of embed. It drops the imaginary parts that rounding leaves.
func (v embedding) coefficients() []float64 {
	n := len(v)
	t := append(embedding(nil), v...)
	transform(t, -1)
	c := make([]float64, n)
	for k := range c {
		c[k] = real(t[k]*cmplx.Rect(1, -math.Pi*float64(k)/float64(n))) / float64(n)
	}
	return c
}

// norm returns the canonical norm: the largest absolute value.
func (v embedding) norm() (top float64) {
	for _, x := range v {
		top = max(top, cmplx.Abs(x))
	}
	return top
}

// transform replaces v by its sums over k of v_k·exp(sign·2·pi·i·jk/N).
func transform(v embedding, sign float64) {
	n := len(v)
	for i, j := 1, 0; i < n; i++ { // bit reversal
		bit := n >> 1
		for ; j&bit != 0; bit >>= 1 {
			j ^= bit
		}
		j ^= bit
		if i < j {
			v[i], v[j] = v[j], v[i]
		}
	}
	roots := make(embedding, n/2)
	for k := range roots {
		roots[k] = cmplx.Rect(1, sign*2*math.Pi*float64(k)/float64(n))
	}
	for size := 2; size <= n; size *= 2 {
		half, step := size/2, n/size
		for start := 0; start < n; start += size {
			for k := range half {
				a, b := v[start+k], v[start+k+half]*roots[k*step]
				v[start+k], v[start+k+half] = a+b, a-b
			}
		}
	}
}

// floats converts integers to the nearest doubles.
func floats(v []*big.Int) []float64 {
	f := make([]float64, len(v))
	for k, x := range v {
		f[k], _ = new(big.Float).SetInt(x).Float64()
	}
	return f
}

// randomPhases returns the n values of a real polynomial with random phases, all of the given size.
func randomPhases(n int, size float64, stream *sample.Stream) embedding {
	v := make(embedding, n)
	for j := range n / 2 {
		v[j] = cmplx.Rect(size, 2*math.Pi*float64(stream.Uint64())/math.Exp2(64))
		v[n-1-j] = cmplx.Conj(v[j])
	}
	return v
}

func TestEmbedAgainstEvaluation(t *testing.T) {
	for _, n := range []int{1, 2, 16, 64} {
		c := make([]float64, n)
		for k := range c {
			c[k] = float64((k*k*7+3*k)%23) - 11
		}
		v := embed(c)
		top := 0.0
		for j := range n {
			var want complex128
			for k, x := range c {
				want += complex(x, 0) * cmplx.Rect(1, math.Pi*float64(k*(2*j+1)%(2*n))/float64(n))
			}
			if cmplx.Abs(v[j]-want) > 1e-10 {
				t.Errorf("N = %d: value %d is %v, want %v", n, j, v[j], want)
			}
			top = max(top, cmplx.Abs(want))
		}
		if math.Abs(v.norm()-top) > 1e-10 {
			t.Errorf("N = %d: norm %v, want %v", n, v.norm(), top)
		}
		for k, x := range v.coefficients() {
			if math.Abs(x-c[k]) > 1e-10 {
				t.Errorf("N = %d: coefficient %d comes back as %v, was %v", n, k, x, c[k])
			}
		}
	}
}
