package kernel

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFraction checks that a fraction is below y/q by less than 3/2^64.
func TestFraction(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 51))
	for _, q := range moduli(r) {
		m := mustModulus(t, q)
		f := m.Fraction()
		for _, y := range append(endpoints(r, 50, q), 0, q-1) {
			exact := new(big.Int).Lsh(new(big.Int).SetUint64(y), 64) // scaled by q
			d := exact.Sub(exact, new(big.Int).Mul(new(big.Int).SetUint64(f.of(y)), new(big.Int).SetUint64(q)))
			if d.Sign() < 0 || d.Cmp(new(big.Int).Mul(big.NewInt(3), new(big.Int).SetUint64(q))) >= 0 {
				t.Fatalf("%d/%d is taken as %d/2^64", y, q, f.of(y))
			}
		}
	}
}

// rowLengths are numbers of slots around 4, 8 and 32, the group sizes of the vector code, and
// around their sums.
var rowLengths = []int{0, 1, 7, 8, 9, 15, 16, 20, 29, 30, 35, 42, 47, 63, 64, 70, 95}

func TestRoundFractions(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(52, 52))
		all := moduli(r)
		for _, terms := range []int{0, 1, 2, 3, 7, 8, 13, MaxTerms} {
			for _, n := range rowLengths {
				stride := n + r.IntN(3)
				var f []Fraction
				y := make([]uint64, terms*stride)
				for i := range terms {
					m := mustModulus(t, all[r.IntN(len(all))])
					f = append(f, m.Fraction())
					copy(y[i*stride:], endpoints(r, n, m.Q))
				}
				v := slices.Repeat([]uint8{0xee}, n+9)
				RoundFractions(v[:n], y, stride, f)
				for k := range v {
					want := uint64(0xee)
					if k < n {
						sum := new(big.Int).Lsh(big.NewInt(1), 63)
						for i, g := range f {
							p := new(big.Int).Mul(new(big.Int).SetUint64(y[i*stride+k]), new(big.Int).SetUint64(g.scaled))
							sum.Add(sum, p.Rsh(p, uint(g.shift)))
						}
						want = sum.Rsh(sum, 64).Uint64()
					}
					if uint64(v[k]) != want {
						t.Fatalf("%d terms, slot %d of %d: %d, want %d", terms, k, n, v[k], want)
					}
				}
			}
		}
	})
}

// Two fractions whose exact sum is 1/2 must be rounded up; if the sum is one unit less, it must be
// rounded down.
func TestRoundFractionsAtHalf(t *testing.T) {
	r := rand.New(rand.NewPCG(55, 55))
	const n = 16
	p, q := mustModulus(t, 0x1a2b3c4d5e6f7081), mustModulus(t, 0x0f1e2d3c4b5a6979) // their inverses have no zero bits
	f := []Fraction{p.Fraction(), q.Fraction()}
	for _, short := range []uint64{0, 1} {
		y := make([]uint64, 2*n)
		for k := range n {
			for f[0].of(y[k])+f[1].of(y[n+k]) != 1<<63-short {
				y[k] = r.Uint64N(p.Q / 2)
				hi, lo := bits.Mul64(1<<63-short-f[0].of(y[k]), q.Q)
				y[n+k] = min(hi+lo>>63, q.Q-1) // y/q, rounded to nearest
			}
		}
		onPaths(t, func(t *testing.T) {
			v := make([]uint8, n)
			for length := range n + 1 {
				RoundFractions(v[:length], y, n, f)
				if slices.ContainsFunc(v[:length], func(x uint8) bool { return x != uint8(1-short) }) {
					t.Fatalf("1/2 less %d/2^64 is rounded to %d", short, v)
				}
			}
		})
	}
}

func TestSum(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(53, 53))
		for i, q := range moduli(r) {
			for _, length := range []int{2 + r.IntN(49), MaxBitsIFMA, MaxBitsIFMA + 1, MaxBits} {
				terms := []int{0, 1, 2, 3, 7, 13, MaxTerms}[(i/4)%7]
				checkSum(t, r, q, length, terms, rowLengths[r.IntN(len(rowLengths))])
			}
		}
		for _, q := range append(moduli(r), 1<<61-1) {
			for _, terms := range []int{1, 2, MaxWordTerms} {
				checkSum(t, r, q, 64, terms, rowLengths[r.IntN(len(rowLengths))])
			}
		}
		for _, q := range []uint64{1<<50 - 27, 1<<61 - 1} {
			for _, n := range rowLengths {
				checkSum(t, r, q, min(MaxBits, MaxBitsIFMA), MaxTerms, n)
			}
		}
	})
}

func checkSum(t *testing.T, r *rand.Rand, q uint64, length, terms, n int) {
	t.Helper()
	for _, extreme := range []bool{false, true} {
		stride, top := n+r.IntN(3), ones
		if length < 64 {
			top = 1 << length
		}
		c, y, v := endpoints(r, terms+1, q), endpoints(r, terms*stride, top), make([]uint8, n)
		for k := range v {
			v[k] = uint8(r.IntN(256))
		}
		if extreme {
			fill(c, q-1)
			fill(y, top-1)
			v = slices.Repeat([]uint8{255}, n)
		}
		s := mustModulus(t, q).NewSum(c[:terms], c[terms], length)
		const guard = 9
		dst := fill(make([]uint64, n+guard), ones)
		s.Apply(dst[:n], y, stride, v)
		for k, got := range dst {
			want := ones
			if k < n {
				want = product(uint64(v[k])%q, c[terms], 0, q)
				for i := range terms {
					want = product(y[i*stride+k]%q, c[i], want, q)
				}
			}
			if got != want {
				t.Fatalf("mod %d, %d terms of %d bits: slot %d of %d holds %d, want %d", q, terms, length, k, n, got, want)
			}
		}
		for i := range terms {
			if s.Weight(i).c != c[i] {
				t.Fatalf("weight %d", i)
			}
		}
	}
}

func TestSumsRefuse(t *testing.T) {
	m := mustModulus(t, 97)
	s := m.NewSum([]uint64{1, 2}, 3, 7)
	for name, f := range map[string]func(){
		"too many terms":     func() { m.NewSum(make([]uint64, MaxTerms+1), 0, 7) },
		"too many words":     func() { m.NewSum(make([]uint64, MaxWordTerms+1), 0, MaxBits+1) },
		"short rows":         func() { s.Apply(make([]uint64, 8), make([]uint64, 15), 8, make([]uint8, 8)) },
		"too few carries":    func() { s.Apply(make([]uint64, 8), make([]uint64, 16), 8, make([]uint8, 7)) },
		"short fractions":    func() { RoundFractions(make([]uint8, 8), make([]uint64, 15), 8, make([]Fraction, 2)) },
		"too many fractions": func() { RoundFractions(nil, nil, 0, make([]Fraction, MaxTerms+1)) },
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

func BenchmarkSums(b *testing.B) {
	const n, terms = 512, 7
	r := rand.New(rand.NewPCG(54, 54))
	for _, q := range []uint64{0x1ffffffd40001, 1<<61 - 1} {
		m := mustModulus(b, q)
		y, v, dst := residues(r, n*terms, q), make([]uint8, n), make([]uint64, n)
		s := m.NewSum(residues(r, terms, q), 5, 50)
		if q > 1<<50 {
			s = m.NewSum(residues(r, terms, q), 5, 61)
		}
		b.Run(fmt.Sprintf("sum/%d", q), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				for b.Loop() {
					s.Apply(dst, y, n, v)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n/terms, "ns/term")
			})
		})
		f := slices.Repeat([]Fraction{m.Fraction()}, terms)
		b.Run(fmt.Sprintf("fractions/%d", q), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				for b.Loop() {
					RoundFractions(v, y, n, f)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n/terms, "ns/term")
			})
		})
	}
}
