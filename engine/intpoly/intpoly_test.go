package intpoly

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

func pow2(e int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(e)) }

// wrap returns v modulo 2^(64w) in [-2^(64w-1), 2^(64w-1)).
func wrap(v *big.Int, w int) *big.Int {
	m, half := pow2(64*w), pow2(64*w-1)
	r := new(big.Int).Add(v, half)
	return r.Sub(r.Mod(r, m), half)
}

// random mixes uniform coefficients with extreme ones.
func random(r *rand.Rand, n, w int) Poly {
	p := New(n, w)
	for k := range n {
		c := p.Coeff(k)
		switch r.IntN(6) {
		case 0: // small
			p.SetBig(k, big.NewInt(int64(r.IntN(5)-2)))
		case 1: // -2^(64w-1)
			c[w-1] = 1 << 63
		case 2: // 2^(64w-1) - 1
			p.SetBig(k, new(big.Int).Sub(pow2(64*w-1), big.NewInt(1)))
		case 3: // near a word boundary
			p.SetBig(k, big.NewInt(0).Sub(pow2(64*r.IntN(w)), big.NewInt(int64(r.IntN(3)))))
		default:
			for i := range c {
				c[i] = r.Uint64()
			}
		}
	}
	return p
}

func TestBigRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for w := 1; w <= 3; w++ {
		one := big.NewInt(1)
		for _, v := range []*big.Int{
			big.NewInt(0), one, big.NewInt(-1), pow2(64*w - 2), new(big.Int).Neg(pow2(64*w - 1)),
			new(big.Int).Sub(pow2(64*w-1), one),
		} {
			p := New(3, w)
			p.SetBig(1, v)
			if p.Big(1).Cmp(v) != 0 || p.Big(0).Sign() != 0 || p.Big(2).Sign() != 0 {
				t.Fatalf("width %d: %v became %v", w, v, p.Big(1))
			}
		}
		p := random(r, 200, w)
		again := New(200, w)
		for k := range 200 {
			again.SetBig(k, p.Big(k))
			if wrap(p.Big(k), w).Cmp(p.Big(k)) != 0 {
				t.Fatalf("width %d: %v is out of range", w, p.Big(k))
			}
		}
		for i := range p.C {
			if p.C[i] != again.C[i] {
				t.Fatalf("width %d: word %d differs", w, i)
			}
		}
	}
}

func TestFromInt64(t *testing.T) {
	v := []int64{0, 1, -1, 1<<63 - 1, -1 << 63}
	for w := 1; w <= 3; w++ {
		p := random(rand.New(rand.NewPCG(5, 5)), len(v), w)
		FromInt64(p, v)
		for k := range v {
			if p.N() != len(v) || p.Big(k).Cmp(big.NewInt(v[k])) != 0 {
				t.Fatalf("width %d: %d became %v", w, v[k], p.Big(k))
			}
		}
		c := p.Clone()
		p.Wipe()
		if c.Big(1).Int64() != 1 || p.Big(1).Sign() != 0 {
			t.Fatal("a clone shares storage with its source, or Wipe left nonzero words")
		}
	}
}

func TestAddSub(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	const n = 500
	for w := 1; w <= 3; w++ {
		a, b := random(r, n, w), random(r, n, w)
		sum, diff, neg := New(n, w), a.Clone(), New(n, w)
		Neg(neg, a)
		Add(sum, a, b)
		Sub(diff, diff, b) // in place
		for k := range n {
			x, y := a.Big(k), b.Big(k)
			if want := wrap(new(big.Int).Neg(x), w); neg.Big(k).Cmp(want) != 0 {
				t.Fatalf("width %d: -(%v) = %v", w, x, neg.Big(k))
			}
			if want := wrap(new(big.Int).Add(x, y), w); sum.Big(k).Cmp(want) != 0 {
				t.Fatalf("width %d: %v + %v = %v", w, x, y, sum.Big(k))
			}
			if want := wrap(new(big.Int).Sub(x, y), w); diff.Big(k).Cmp(want) != 0 {
				t.Fatalf("width %d: %v - %v = %v", w, x, y, diff.Big(k))
			}
		}
	}
}

func TestAddMonomial(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 2, 8} {
		for narrow := 1; narrow <= 4; narrow++ {
			for wide := narrow; wide <= 4; wide++ {
				for e := range 2 * n {
					a, dst := random(r, n, narrow), random(r, n, wide)
					want := make([]*big.Int, n)
					for k := range n {
						want[k] = dst.Big(k)
					}
					for k := range n {
						at := (k + e) % (2 * n)
						if at < n {
							want[at].Add(want[at], a.Big(k))
						} else {
							want[at-n].Sub(want[at-n], a.Big(k))
						}
					}
					AddMonomial(dst, a, e)
					for k := range n {
						if dst.Big(k).Cmp(wrap(want[k], wide)) != 0 {
							t.Fatalf("N=%d, widths %d and %d, X^%d: coefficient %d is %v", n, narrow, wide, e, k, dst.Big(k))
						}
					}
				}
			}
		}
	}
}

func TestMismatchPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"too few values":   func() { FromInt64(New(4, 1), make([]int64, 3)) },
		"Add widths":       func() { Add(New(4, 1), New(4, 1), New(4, 2)) },
		"Sub sizes":        func() { Sub(New(4, 1), New(8, 1), New(4, 1)) },
		"monomial narrows": func() { AddMonomial(New(4, 1), New(4, 2), 0) },
		"exponent":         func() { AddMonomial(New(4, 1), New(4, 1), 8) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	one := big.NewInt(1)
	for w := 1; w <= 3; w++ {
		var bounds []*big.Int
		for _, e := range []int{0, 1, 63, 64, 65, 64*w - 2, 64*w - 1, 64 * w, 64*w + 5} {
			for d := int64(-1); d <= 1; d++ {
				bounds = append(bounds, new(big.Int).Add(pow2(e), big.NewInt(d)))
			}
		}
		for range 50 {
			bounds = append(bounds, new(big.Int).Abs(random(r, 1, w).Big(0)))
		}
		bounds = append(bounds, big.NewInt(-5))
		for _, bound := range bounds {
			values := []*big.Int{new(big.Int), bound, new(big.Int).Sub(bound, one), new(big.Int).Add(bound, one),
				new(big.Int).Sub(pow2(64*w-1), one), new(big.Int).Neg(pow2(64*w - 1)), random(r, 1, w).Big(0)}
			for _, v := range values {
				for _, v := range []*big.Int{v, new(big.Int).Neg(v)} {
					if wrap(v, w).Cmp(v) != 0 {
						continue // does not fit
					}
					p := New(3, w)
					p.SetBig(2, v)
					want := v.CmpAbs(bound) < 0 && bound.Sign() > 0
					if p.Within(bound) != want {
						t.Fatalf("width %d: Within reports |%v| < %v as %v", w, v, bound, !want)
					}
				}
			}
		}
	}
}

func FuzzAddMonomial(f *testing.F) {
	f.Add(uint64(1), uint64(1)<<63, ^uint64(0), uint64(5), uint8(3))
	f.Fuzz(func(t *testing.T, a, lo, hi, b uint64, e uint8) {
		const n = 2
		x := Poly{W: 1, C: []uint64{a, b}}
		dst := Poly{W: 2, C: []uint64{lo, hi, hi, lo}}
		before := dst.Clone()
		exponent := int(e) % (2 * n)
		AddMonomial(dst, x, exponent)
		AddMonomial(dst, x, (exponent+n)%(2*n)) // X^(e+N) = -X^e
		for i := range dst.C {
			if dst.C[i] != before.C[i] {
				t.Fatal("adding X^e and X^(e+N) changed the sum")
			}
		}
	})
}

func BenchmarkAddMonomial(b *testing.B) {
	const n = 1 << 14
	r := rand.New(rand.NewPCG(9, 9))
	for _, w := range [][2]int{{1, 1}, {1, 2}, {2, 2}, {2, 3}, {3, 3}, {3, 4}, {4, 4}} {
		a, dst := random(r, n, w[0]), random(r, n, w[1])
		b.Run(fmt.Sprintf("words=%d/sum=%d", w[0], w[1]), func(b *testing.B) {
			for b.Loop() {
				AddMonomial(dst, a, n+n/3)
			}
		})
	}
}

// Coefficient k of a moves to place gk, with the sign of X^(gk).
func TestAddAutomorphism(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for w := 1; w <= 3; w++ {
		for _, n := range []int{4, 16} {
			for g := 1; g < 2*n; g += 2 {
				a, dst := random(r, n, w), random(r, n, w)
				before := dst.Clone()
				AddAutomorphism(dst, a, g)
				for k := range n {
					to, c := k*g%(2*n), a.Big(k)
					if to >= n {
						to, c = to-n, c.Neg(c)
					}
					if got := dst.Big(to); got.Cmp(wrap(c.Add(c, before.Big(to)), w)) != 0 {
						t.Fatalf("%d words, X -> X^%d: coefficient %d is %v, want %v", w, g, to, got, c)
					}
				}
			}
		}
	}
}
