package sigma

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/cmplx"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// values returns the values of z at the roots exp(i*pi*(2j+1)/N), computed by the definition.
func values(z []int64) []complex128 {
	n := len(z)
	out := make([]complex128, n)
	for j := range out {
		for k, c := range z {
			out[j] += complex(float64(c), 0) * cmplx.Rect(1, math.Pi*float64((2*j+1)*k%(2*n))/float64(n))
		}
	}
	return out
}

func canonical(z []int64) (top float64) {
	for _, v := range values(z) {
		top = max(top, cmplx.Abs(v))
	}
	return top
}

func poly(z []int64) intpoly.Poly {
	p := intpoly.New(len(z), 1)
	intpoly.FromInt64(p, z)
	return p
}

// random returns n coefficients of the given number of bits, including the sign.
func random(r io.Reader, n, bits int) []int64 {
	z := make([]int64, n)
	raw := make([]byte, 8*n)
	io.ReadFull(r, raw)
	for k := range z {
		z[k] = int64(binary.LittleEndian.Uint64(raw[8*k:])) >> (64 - bits)
	}
	return z
}

// extreme returns a polynomial with the largest values that words must hold: every coefficient has
// the largest magnitude, and at one root all terms have the same direction.
func extreme(n, bits, root int) []int64 {
	z := make([]int64, n)
	top := int64(1) << (bits - 1)
	for k := range z {
		if math.Cos(math.Pi*float64((2*root+1)*k%(2*n))/float64(n)) > 0 {
			z[k] = top - 1
		} else {
			z[k] = -top
		}
	}
	return z
}

func TestNormIsTheLargestValue(t *testing.T) {
	for _, c := range []struct{ n, bits int }{{4, 3}, {8, 16}, {64, 10}, {256, 11}, {1024, 10}, {1024, 14}} {
		m, err := NewNorm(c.n, c.bits, 1<<22)
		if err != nil {
			t.Fatal(err)
		}
		list := [][]int64{make([]int64, c.n)}
		for i := range 6 {
			list = append(list, random(xof(fmt.Sprint("norm", i)), c.n, c.bits), extreme(c.n, c.bits, i%c.n))
		}
		for k := range min(c.n, 32) { // a monomial is 1 everywhere
			z := make([]int64, c.n)
			z[k] = 1
			list = append(list, z)
		}
		unit := math.Ldexp(1, -m.frac)
		for i, z := range list {
			got, want := math.Sqrt(float64(m.square(poly(z))))*unit, canonical(z)
			if math.Abs(got-want) > float64(m.slack)*unit+1e-6*want {
				t.Errorf("%d coefficients of %d bits, polynomial %d: norm %v, want %v within %v", c.n, c.bits, i, got, want, float64(m.slack)*unit)
			}
		}
	}
}

// Around every bound: no polynomial above it passes, and every polynomial sufficiently below it
// does.
func TestNormAroundTheBound(t *testing.T) {
	const n, bits = 256, 10
	for i := range 20 {
		z := random(xof(fmt.Sprint("around", i)), n, bits)
		norm := canonical(z)
		for step := int64(-40); step <= 40; step++ {
			bound := int64(norm) + step
			m, err := NewNorm(n, bits, bound)
			if err != nil {
				t.Fatal(err)
			}
			slack := math.Ldexp(float64(m.slack), -m.frac)
			switch got := m.Within(poly(z)); {
			case got && norm > float64(bound):
				t.Errorf("norm %v passes with bound %d", norm, bound)
			case !got && norm <= float64(bound)-2*slack:
				t.Errorf("norm %v does not pass with bound %d, slack %v", norm, bound, slack)
			}
		}
	}
}

func TestNormRefusesLongCoefficients(t *testing.T) {
	m, err := NewNorm(64, 4, 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	for c, want := range map[int64]bool{7: true, 8: false, -8: true, -9: false, 1 << 62: false, math.MinInt64: false} {
		z := make([]int64, 64)
		z[63] = c
		if m.Within(poly(z)) != want {
			t.Errorf("coefficient %d: within is %v", c, !want)
		}
	}
}

func TestNewNormRefuses(t *testing.T) {
	for _, c := range []struct {
		n, bits int
		bound   int64
	}{{3, 4, 100}, {2, 4, 100}, {96, 4, 1000}, {64, 1, 1000}, {1 << 14, 16, 1000}, {64, 40, 1000}, {64, 10, 0}, {64, 10, -5}, {1 << 14, 10, 40}, {64, 10, 1 << 30}} {
		if _, err := NewNorm(c.n, c.bits, c.bound); err == nil {
			t.Errorf("accepted a norm of %d coefficients of %d bits with bound %d", c.n, c.bits, c.bound)
		}
	}
}

// The roots lie on the unit circle, up to half a unit.
func TestRoots(t *testing.T) {
	for _, n := range []int{4, 8, 64, 1 << 14} {
		at := unitCircle(n)
		for k := range 2 * n {
			re, im := at(k)
			want := cmplx.Rect(1<<rootBits, math.Pi*float64(k)/float64(n))
			if math.Abs(float64(re)-real(want)) > 0.5001 || math.Abs(float64(im)-imag(want)) > 0.5001 {
				t.Fatalf("root %d of %d is (%d, %d), want %v", k, n, re, im, want)
			}
		}
	}
}

func BenchmarkNorm(b *testing.B) {
	const n = 1 << 14
	m, err := NewNorm(n, 10, 34000)
	if err != nil {
		b.Fatal(err)
	}
	z := poly(random(xof("bench"), n, 6))
	for b.Loop() {
		m.Within(z)
	}
}
