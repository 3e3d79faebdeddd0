package field

import (
	"fmt"
	"math/big"
	"testing"
)

// Covers all elements of a small field, and some of every large one.
func TestSqrt(t *testing.T) {
	check := func(f *Field, r *Roots, a *big.Int) {
		t.Helper()
		x, root := f.NewElement(), f.NewElement()
		f.SetBig(x, a)
		got, want := r.Sqrt(root, x), big.Jacobi(a, f.p) >= 0
		if again := append(Element(nil), x...); r.Sqrt(again, again) != got || got && !f.Equal(again, root) {
			t.Fatalf("%v modulo %v: the root in place differs", a, f.p)
		}
		if got != want {
			t.Fatalf("%v modulo %v: Sqrt reports %v, want %v", a, f.p, got, want)
		}
		if v := f.Big(root); want && (new(big.Int).Mod(new(big.Int).Mul(v, v), f.p).Cmp(a) != 0 || v.Cmp(new(big.Int).Rsh(f.p, 1)) > 0) {
			t.Fatalf("root of %v modulo %v: %v", a, f.p, v)
		}
	}
	for _, c := range []struct {
		b int64
		m int
	}{{2, 2}, {4, 2}, {6, 2}, {2, 4}, {2, 8}, {10, 2}, {16, 2}, {14, 2}, {6, 4}} {
		f := small(t, c.b, c.m)
		r := NewRoots(f)
		for a := int64(0); a < 3000 && a < f.p.Int64(); a++ {
			check(f, r, big.NewInt(a))
		}
	}
	forFields(t, func(t *testing.T, _ spec, f *Field) {
		r := NewRoots(f)
		for i, a := range samples(t, f, 2) {
			if i%2 == 0 {
				a.Mul(a, a).Mod(a, f.p)
			}
			check(f, r, a)
		}
	})
}

// Covers inverses in place and not, of one element and of many.
func TestInverseVec(t *testing.T) {
	forFields(t, func(t *testing.T, _ spec, f *Field) {
		for _, n := range []int{0, 1, 2, 7} {
			a, want, got := f.NewVec(n), f.NewVec(n), f.NewVec(n)
			for i := range n {
				f.SetBig(a.At(i), big.NewInt(int64(i+1)*1234567))
				f.Inverse(want.At(i), a.At(i))
			}
			f.InverseVec(got, a)
			f.InverseVec(a, a)
			if !f.EqualVec(got, want) || !f.EqualVec(a, want) {
				t.Errorf("%d inverses are wrong", n)
			}
		}
	})
}

func BenchmarkSqrt(b *testing.B) {
	for _, s := range specs {
		if s.logN != 14 {
			continue
		}
		f := s.field(b)
		r, a := NewRoots(f), f.NewElement()
		f.SetUint64(a, 1234567)
		f.Mul(a, a, a)
		b.Run(fmt.Sprintf("%d", f.Bits()), func(b *testing.B) {
			x := f.NewElement()
			for i := uint64(3); b.Loop(); i++ {
				f.SetUint64(x, i)
				f.Mul(x, x, a)
				f.Mul(x, x, x)
				r.Sqrt(x, x)
			}
		})
	}
}
