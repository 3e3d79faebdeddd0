package kernel

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Inner products agree with math/big at every length around the sizes of vectors and for long rows
// of q-1, and an operand that is not a residue is detected at every position.
func TestInner(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		for _, q := range []uint64{
			3, 17, 1048583, 1125899906826241, 1<<51 - 129, 1<<52 - 47, 9007199254614017, 1<<58 - 27, 1<<61 - 1,
		} {
			m, err := NewModulus(q)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 95, 96, 255, 2048, 1<<14 + 37, 1 << 15} {
				a, b := endpoints(r, n, q), endpoints(r, n, q)
				if n > 1<<14 {
					for i := range a {
						a[i], b[i] = q-1, q-1
					}
				}
				want := new(big.Int)
				for i := range a {
					want.Add(want, new(big.Int).Mul(new(big.Int).SetUint64(a[i]), new(big.Int).SetUint64(b[i])))
				}
				want.Mod(want, new(big.Int).SetUint64(q))
				if got, residues := m.Inner(a, b); got != want.Uint64() || !residues {
					t.Fatalf("%d terms modulo %d: %d, %v, want %v", n, q, got, residues, want)
				}
				for _, bad := range []uint64{q, q + 1, 1<<63 - 1, 1 << 63, 1<<63 + q, math.MaxUint64} {
					if n == 0 {
						continue
					}
					at := r.IntN(n)
					good := a[at]
					a[at] = bad
					if _, residues := m.Inner(a, b); residues {
						t.Errorf("%d was accepted as a residue modulo %d, at position %d of %d", bad, q, at, n)
					}
					a[at] = good
				}
			}
		}
	})
}

func BenchmarkInner(b *testing.B) {
	benchmarkPaths(b, func(b *testing.B) {
		for _, q := range []uint64{1125899906826241, 9007199254614017} {
			b.Run(fmt.Sprint(q), func(b *testing.B) {
				m, err := NewModulus(q)
				if err != nil {
					b.Fatal(err)
				}
				r := rand.New(rand.NewPCG(1, 1))
				x, y := endpoints(r, 2048, q), endpoints(r, 2048, q)
				for b.Loop() {
					m.Inner(x, y)
				}
			})
		}
	})
}
