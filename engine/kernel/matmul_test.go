package kernel

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// innerProducts returns the matrix product entry by entry, in two words with a reduction per term.
func innerProducts(a, b []uint64, m, k, n int, q uint64) []uint64 {
	out := make([]uint64, m*n)
	for i := range m {
		for j := range n {
			var x uint64
			for t := range k {
				hi, lo := bits.Mul64(a[i*k+t], b[t*n+j])
				lo, c := bits.Add64(lo, x, 0)
				_, x = bits.Div64((hi+c)%q, lo, q)
			}
			out[i*n+j] = x
		}
	}
	return out
}

func fill(v []uint64, x uint64) []uint64 {
	for i := range v {
		v[i] = x
	}
	return v
}

// checkMatMul compares a product on the selected path with want and checks that nothing is written
// outside it.
func checkMatMul(t *testing.T, want, a, b []uint64, m, k, n int, q uint64) {
	t.Helper()
	const guard = 16
	dst := fill(make([]uint64, m*n+guard), ones)
	MatMul(dst, a, b, m, k, n, q)
	for i, x := range dst {
		if i >= m*n && x != ones {
			t.Fatalf("%d x %d x %d mod %d: word %d after the product was written", m, k, n, q, i-m*n)
		}
		if i < m*n && x != want[i] {
			t.Fatalf("%d x %d x %d mod %d: entry %d is %d, want %d", m, k, n, q, i, x, want[i])
		}
	}
	transposed := make([]uint64, m*k)
	for i := range m {
		for t := range k {
			transposed[t*m+i] = a[i*k+t]
		}
	}
	again := fill(make([]uint64, m*n+guard), ones)
	MatMulTransposed(again, transposed, b, m, k, n, q)
	if !slices.Equal(again, dst) {
		t.Fatalf("%d x %d x %d mod %d: the product of the transposed factor differs", m, k, n, q)
	}
}

// Covers every length of modulus: the smallest, the largest and a random modulus, with extreme and
// random entries.
func TestMatMulModuli(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 11))
		for _, q := range moduli(r) {
			m, k, n := 1+r.IntN(6), 1+r.IntN(140), 1+r.IntN(30)
			a, b := residues(r, m*k, q), residues(r, k*n, q)
			checkMatMul(t, innerProducts(a, b, m, k, n, q), a, b, m, k, n, q)
			fill(a, q-1)
			fill(b[:k*n/2], q-1)
			checkMatMul(t, innerProducts(a, b, m, k, n, q), a, b, m, k, n, q)
			clear(a)
			checkMatMul(t, make([]uint64, m*n), a, b, m, k, n, q)
		}
	})
}

// Covers every remainder of rows and columns by the tiles, and lengths around the number of terms
// per reduction.
func TestMatMulShapes(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(12, 12))
		for _, q := range []uint64{0x1ffffffd40001, 1<<50 - 27, 1<<60 - 93, 1<<61 - 1} {
			for m := 1; m <= 9; m++ {
				for n := 1; n <= 50; n++ {
					k := 1 + r.IntN(9)
					a, b := residues(r, m*k, q), residues(r, k*n, q)
					checkMatMul(t, innerProducts(a, b, m, k, n, q), a, b, m, k, n, q)
				}
			}
		}
	})
}

// Sums of the largest residues at the maximal number of terms before a reduction, and beyond.
func TestMatMulLong(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		for length := 2; length <= MaxBits; length += 1 {
			q := uint64(1)<<length - 1
			for _, k := range []int{4095, 4096, 4097, 8193, 1<<16 + 1} {
				if k > 5000 && length%10 > 1 {
					continue
				}
				const m, n = 5, 9
				a, b := fill(make([]uint64, m*k), q-1), fill(make([]uint64, k*n), q-1)
				x := new(big.Int).SetUint64(q - 1)
				x.Mul(x, x).Mul(x, big.NewInt(int64(k))).Mod(x, new(big.Int).SetUint64(q))
				checkMatMul(t, fill(make([]uint64, m*n), x.Uint64()), a, b, m, k, n, q)
			}
		}
	})
}

// Every tile with long sums: the largest residues for moduli whose constants are not small (unlike
// those of 2^length - 1), and random residues, for which swapped terms of a factor change the
// result.
func TestMatMulTilesLong(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(14, 14))
		for i := range 8 {
			top := uint64(1) << []int{50, 61, 50, 60, 50, 53, 49, 32}[i]
			q := top - r.Uint64N(top/8) | 1
			for n := 1; n <= 25; n++ {
				m, k, x := 1+n%6, []int{32, 300, 4096}[n%3], new(big.Int).SetUint64(q-1)
				a, b := fill(make([]uint64, m*k), q-1), fill(make([]uint64, k*n), q-1)
				x.Mul(x, x).Mul(x, big.NewInt(int64(k))).Mod(x, new(big.Int).SetUint64(q))
				checkMatMul(t, fill(make([]uint64, m*n), x.Uint64()), a, b, m, k, n, q)
			}
			const m, k, n = 5, 4096 + 5, 3
			a, b := residues(r, m*k, q), residues(r, k*n, q)
			checkMatMul(t, innerProducts(a, b, m, k, n, q), a, b, m, k, n, q)
		}
	})
}

// worst returns, among many moduli of the given length, the one with the largest errors when the
// quotients of products by 2^e mod q are estimated with the given number of bits. Sums of these
// products are then the largest.
func worst(t *testing.T, r *rand.Rand, length, bits int, e ...int) (q uint64) {
	most := -1.0
	for range 5000 {
		p := uint64(1)<<(length-1) | r.Uint64N(1<<(length-1)) | 1
		m, least := mustModulus(t, p), 1.0
		for _, x := range e {
			least = min(least, float64(m.Exp(2, uint64(x+bits)))/float64(p)) // the bits of 2^bits (2^e mod q)/q that are cut off
		}
		if least > most {
			most, q = least, p
		}
	}
	return q
}

// Every tile with random entries for the moduli whose reductions leave the largest values.
func TestMatMulReductions(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 15))
	short := worst(t, r, 50, 52, 0, 52)
	long := worst(t, r, 61, 64, 0, 32, 31, 63, 62, 94)
	const k = 1024
	for i := range 90 {
		q, m, n := []uint64{short, short, long}[i%3], []int{4, 1}[i/9%2], []int{24, 16, 8}[i/3%3]
		a, b := residues(r, m*k, 1+r.Uint64N(q)), residues(r, k*n, q) // sums of any size
		want := innerProducts(a, b, m, k, n, q)
		onPaths(t, func(t *testing.T) { checkMatMul(t, want, a, b, m, k, n, q) })
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, q := range []uint64{0x1ffffffd40001, 0x7fffffff150001, 1<<61 - 1} {
		b.Run(big.NewInt(int64(bits.Len64(q))).String(), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				const m, k, n = 128, 128, 256
				r := rand.New(rand.NewPCG(6, 6))
				x, y, dst := residues(r, m*k, q), residues(r, k*n, q), make([]uint64, m*n)
				for b.Loop() {
					MatMul(dst, x, y, m, k, n, q)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(m*k*n), "ns/mac")
			})
		})
	}
}
