package kernel

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// integer returns the value of words, lowest first.
func integer(words []uint64) *big.Int {
	x := new(big.Int)
	for _, w := range slices.Backward(words) {
		x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(w))
	}
	return x
}

// extremeWords returns n words that are random, all ones or zero.
func extremeWords(r *rand.Rand, n int) []uint64 {
	v := make([]uint64, n)
	kind := r.IntN(4)
	for i := range v {
		switch {
		case kind == 1 || kind == 0 && r.IntN(2) == 0:
			v[i] = ones
		case kind == 2:
			v[i] = r.Uint64()
		}
	}
	return v
}

// Covers every number of words up to several times the kernel's step, and long ones, at both ends
// of all ranges.
func TestMontgomery(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(71, 71))
		lengths := []int{40, 48, 63, 64, 65, 72}
		for n := 1; n <= 33; n++ {
			lengths = append(lengths, n)
		}
		for _, n := range lengths {
			for range 30 {
				mod := extremeWords(r, n)
				mod[0] |= 1
				mod[n-1] |= 1 << r.IntN(64)
				m := integer(mod)
				a, b := extremeWords(r, n), make([]uint64, n)
				y := integer(extremeWords(r, n))
				if y.Mod(y, m); r.IntN(3) == 0 {
					y.Sub(m, big.NewInt(1))
				}
				for i := range b {
					b[i] = new(big.Int).Rsh(y, uint(64*i)).Uint64()
				}
				inverse := uint64(1)
				for range 6 {
					inverse *= 2 - inverse*mod[0]
				}
				power := new(big.Int).Lsh(big.NewInt(1), uint(64*n))
				want := new(big.Int).ModInverse(power, m)
				if want == nil { // of mod = 1
					want = new(big.Int)
				}
				want.Mul(want, integer(a)).Mul(want, y).Mod(want, m)
				for _, c := range [][2][]uint64{{a, b}, {b, a}} {
					out := fill(make([]uint64, n+3), ones)
					Montgomery(out[:n+1], c[0], c[1], mod, -inverse)
					got := integer(append(slices.Clone(out[1:n+1]), out[0]))
					if out[0] > 1 || got.Cmp(new(big.Int).Lsh(m, 1)) >= 0 || got.Mod(got, m).Cmp(want) != 0 {
						t.Fatalf("%d words: %x times %x modulo %x", n, c[0], c[1], mod)
					}
					if out[n+1] != ones || out[n+2] != ones {
						t.Fatalf("%d words: words after the end were written", n)
					}
				}
			}
		}
	})
}

func TestMontgomeryOfNothing(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		out := []uint64{7, 7}
		if Montgomery(out[:1], nil, nil, nil, 1); out[0] != 0 || out[1] != 7 {
			t.Error(out)
		}
	})
}

// All paths return the same words, not merely the same residue.
func TestMontgomeryPaths(t *testing.T) {
	defer restore(Selected())
	r := rand.New(rand.NewPCG(72, 72))
	for n := 8; n <= 64; n += 8 {
		for range 50 {
			mod, a, b := extremeWords(r, n), extremeWords(r, n), extremeWords(r, n)
			mod[0] |= 1
			mod[n-1], b[n-1] = ones, ones-1
			var first []uint64
			for p := range best + 1 {
				restore(p)
				out := make([]uint64, n+1)
				Montgomery(out, a, b, mod, mod[0]) // any n0 is accepted
				if first == nil {
					first = out
				} else if !slices.Equal(out, first) {
					t.Fatalf("%d words: path %v differs", n, p)
				}
			}
		}
	}
}

func BenchmarkMontgomery(b *testing.B) {
	r := rand.New(rand.NewPCG(73, 73))
	for _, n := range []int{8, 16, 32, 64} {
		x, y, mod, out := residues(r, n, 1<<63), residues(r, n, 1<<63), fill(make([]uint64, n), ones), make([]uint64, n+1)
		b.Run(fmt.Sprint(64*n), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				for b.Loop() {
					Montgomery(out, x, y, mod, 1)
				}
			})
		})
	}
}
