package gbfvtest

import (
	"math"
	"math/cmplx"
	"testing"
)

func TestEmbedAgainstEvaluation(t *testing.T) {
	for _, n := range []int{1, 2, 16, 64} {
		c := make([]float64, n)
		for k := range c {
			c[k] = float64((k*k*7+3*k)%23) - 11
		}
		v := Embed(c)
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
		if math.Abs(v.Norm()-top) > 1e-10 {
			t.Errorf("N = %d: norm %v, want %v", n, v.Norm(), top)
		}
		for k, x := range v.Coefficients() {
			if math.Abs(x-c[k]) > 1e-10 {
				t.Errorf("N = %d: coefficient %d comes back as %v, was %v", n, k, x, c[k])
			}
		}
	}
}
