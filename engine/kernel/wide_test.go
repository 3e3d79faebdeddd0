package kernel

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// words returns a value below 2^(64 n) as n words.
func words(x *big.Int, n int) []uint64 {
	w := make([]uint64, n)
	for i := range w {
		w[i] = new(big.Int).Rsh(x, uint(64*i)).Uint64()
	}
	return w
}

// Covers products of integers at both ends of all ranges, for moduli of every number of words up to
// several blocks of limbs and rows, and long ones, and any number of products, in complete groups
// of eight or not.
func TestWide(t *testing.T) {
	if Best() < IFMA {
		t.Skip("no kernel")
	}
	r := rand.New(rand.NewPCG(52, 52))
	lengths := []int{40, 47, 63, 64, 65, 72, 129}
	for n := 3; n <= 33; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		for range 6 {
			mod := extremeWords(r, n)
			mod[0] |= 1
			mod[n-1] |= 1 << r.IntN(64)
			m := integer(mod)
			inverse := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), uint(64*n)), m)
			count := 1 + r.IntN(20)
			x, y, want := make([]uint64, 0, n*count), make([]uint64, 0, n*count), make([]uint64, 0, n*count)
			for range count {
				b := integer(extremeWords(r, n))
				if b.Mod(b, m); r.IntN(3) == 0 {
					b.Sub(m, big.NewInt(1))
				}
				pair := [2][]uint64{extremeWords(r, n), words(b, n)}
				if r.IntN(2) == 0 {
					pair[0], pair[1] = pair[1], pair[0]
				}
				x, y = append(x, pair[0]...), append(y, pair[1]...)
				p := new(big.Int).Mul(integer(pair[0]), integer(pair[1]))
				want = append(want, words(p.Mod(p.Mul(p, inverse), m), n)...)
			}
			w := NewWide(mod)
			b := w.Buffer()
			got := make([]uint64, len(x))
			b.Mul(got, x, y)
			if !slices.Equal(got, want) {
				t.Fatalf("%d words, %d products are wrong modulo %x", n, count, m)
			}
			copy(got, x)
			b.Mul(got, got, y)
			if !slices.Equal(got, want) {
				t.Fatalf("%d words, %d products in place are wrong", n, count)
			}

			z := slices.Clone(y[:n])
			if integer(z).Cmp(m) >= 0 {
				z = words(new(big.Int).Sub(m, big.NewInt(1)), n)
			}
			for i := range count {
				p := new(big.Int).Mul(integer(x[n*i:n*(i+1)]), integer(z))
				copy(want[n*i:], words(p.Mod(p.Mul(p, inverse), m), n))
			}
			b.Scale(got, x, z)
			if !slices.Equal(got, want) {
				t.Fatalf("%d words, %d products by one factor are wrong", n, count)
			}
			b.Wipe()
			for _, v := range [][]uint64{b.words, b.x, b.y, b.product, b.rows} {
				if slices.ContainsFunc(v, func(w uint64) bool { return w != 0 }) {
					t.Fatal("a wiped buffer holds words")
				}
			}
		}
	}
}

// Paths without the kernel do not use it.
func TestWidePaths(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		if got := NewWide([]uint64{1, 2, 3}).Buffer() != nil; got != (Selected() == IFMA) {
			t.Errorf("Buffer returned %v on a path without the kernel", got)
		}
	})
}

func BenchmarkWide(b *testing.B) {
	if Best() < IFMA {
		b.Skip("no kernel")
	}
	for _, n := range []int{4, 8, 16, 32, 64} {
		mod, x := make([]uint64, n), make([]uint64, 64*n)
		for i := range mod {
			mod[i] = ones
		}
		b.Run(new(big.Int).SetInt64(int64(64*n)).String(), func(b *testing.B) {
			buf := NewWide(mod).Buffer()
			for b.Loop() {
				buf.Scale(x, x, x[:n])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/product")
		})
	}
}
