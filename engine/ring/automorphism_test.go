package ring

import (
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

func TestAutomorphisms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, b := range append(small(t), mustBasis(t, 5, 193, 257), mustBasis(t, 6, 257)) {
		x := randomPoly(r, b)
		X := lift(b, x)
		value, got, back := b.NewNTT(), b.NewNTT(), b.NewPoly()
		b.Forward(value, x)
		for g := 1 - 2*b.N(); g < 4*b.N(); g += 2 {
			want := substitute(X, g)
			y := randomPoly(r, b)
			b.Automorphism(y, x, g)
			wantPoly(t, b, y, want, "X^%d in coefficient form", g)
			b.AutomorphismNTT(got, value, g)
			b.Inverse(back, got)
			wantPoly(t, b, back, want, "X^%d in evaluation form", g)
		}
	}
}

// order returns the order of g modulo 2n.
func order(g, n int) int {
	d := 1
	for x := g; x != 1; x = x * g % (2 * n) {
		d++
	}
	return d
}

func TestOrbits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, b := range []*Basis{mustBasis(t, 4, 97, 193), mustBasis(t, 6, 257, 641)} {
		v, moved := NTT(randomPoly(r, b)), b.NewNTT()
		for g := 1; g < 2*b.N(); g += 2 {
			d := order(g, b.N())
			o := NewOrbits(b, g, d)
			b.AutomorphismNTT(moved, v, g)
			seen := make([]bool, b.N())
			if o.Count()*d != b.N() {
				t.Fatalf("N=%d, g=%d: %d orbits of %d", b.N(), g, o.Count(), d)
			}
			for orbit := range o.Count() {
				for j := range d {
					at, next := o.Index(orbit, j), o.Index(orbit, (j+1)%d)
					if seen[at] {
						t.Fatalf("slot %d is in two places", at)
					}
					seen[at] = true
					for i := range v.C {
						if moved.C[i][at] != v.C[i][next] {
							t.Fatalf("N=%d, g=%d: phi(v)[s_%d] is not v[s_%d]", b.N(), g, j, (j+1)%d)
						}
					}
				}
			}
		}
	}
}

func TestOrbitsRefuseAWrongOrder(t *testing.T) {
	b := mustBasis(t, 4, 97)
	for _, d := range []int{4, 16} { // the order of 5 modulo 32 is 8
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("order %d: no panic", d)
				}
			}()
			NewOrbits(b, 5, d)
		}()
	}
}

// The sums over k of a_k phi^i(b_(i-k)), i mod d, are one matrix product per prime and orbit.
func TestProductsByOrbits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	b := mustBasis(t, 5, 193, primesOf(5, 61, 1)[0], primesOf(5, 50, 1)[0])
	for _, g := range []int{25, 5, 17, 63, 1} {
		d := order(g, b.N())
		phi := func(dst, x Poly) { b.Automorphism(dst, x, g) }
		x, y := make([]Poly, d), make([]Poly, d)
		X, Y := make([]NTT, d), make([]NTT, d)
		for k := range d {
			x[k], y[k], X[k], Y[k] = randomPoly(r, b), randomPoly(r, b), b.NewNTT(), b.NewNTT()
			b.Forward(X[k], x[k])
			b.Forward(Y[k], y[k])
		}
		out := make([]NTT, d)
		for i := range out {
			out[i] = b.NewNTT()
		}
		o := NewOrbits(b, g, d)
		left, right, prod := make([]uint64, d*d), make([]uint64, d*d), make([]uint64, d*d)
		for p, q := range b.Primes() {
			for orbit := range o.Count() {
				for j := range d {
					at := o.Index(orbit, j)
					for k := range d {
						left[j*d+(j+k)%d] = X[k].C[p][at]
						right[k*d+j] = Y[(j-k+d)%d].C[p][at] // row k, column j: b_(j-k)[s_j]
					}
				}
				kernel.MatMul(prod, left, right, d, d, d, q)
				for j := range d {
					for i := range d {
						out[i].C[p][o.Index(orbit, j)] = prod[j*d+(j+i)%d]
					}
				}
			}
		}
		turned := y // phi^i of all right factors
		for i := range d {
			sum, term, power, got := b.NewNTT(), b.NewNTT(), b.NewNTT(), b.NewPoly()
			for k := range d {
				b.Forward(power, turned[(i-k+d)%d])
				b.MulNTT(term, X[k], power)
				b.AddNTT(sum, sum, term)
			}
			if !out[i].Equal(sum) {
				t.Fatalf("g=%d: output %d", g, i)
			}
			for k := range d {
				phi(got, turned[k])
				turned[k] = got.Clone()
			}
		}
	}
}
