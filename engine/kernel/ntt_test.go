package kernel

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// nttPrimes returns the largest primes of at most length bits that are 1 mod 2n.
func nttPrimes(length, n, count int) (qs []uint64) {
	step := uint64(2 * n)
	for q := (uint64(1)<<length-2)/step*step + 1; len(qs) < count && q > step; q -= step {
		if new(big.Int).SetUint64(q).ProbablyPrime(10) {
			qs = append(qs, q)
		}
	}
	return qs
}

// mustNTT prepares transforms for some root of order 2n.
func mustNTT(t testing.TB, q uint64, n int) *NTT {
	m := mustModulus(t, q)
	for g := uint64(2); ; g++ {
		psi := m.Exp(g, (q-1)/uint64(2*n))
		if m.Exp(psi, uint64(n)) == q-1 {
			out, err := NewNTT(*m, n, psi)
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
}

func (t *NTT) psi() uint64 { return t.forward.c[t.n/2] } // rev(1) = n/2

func (t *NTT) exponent(k int) uint64 {
	return bits.Reverse64(uint64(k))>>(bits.LeadingZeros64(uint64(t.n))+1)*2 + 1
}

// extremes returns inputs that drive values to the ends of their ranges, and random ones.
func extremes(r *rand.Rand, n int, q uint64) [][]uint64 {
	out := [][]uint64{
		make([]uint64, n), fill(make([]uint64, n), q-1), fill(make([]uint64, n), 1),
		residues(r, n, q), residues(r, n, q), residues(r, n, q),
	}
	mixed, single := make([]uint64, n), make([]uint64, n)
	for i := range mixed {
		mixed[i] = (q - 1) * (r.Uint64() & 1)
	}
	single[r.IntN(n)] = q - 1
	return append(out, mixed, single)
}

func TestNewNTT(t *testing.T) {
	m := mustModulus(t, 257)
	for _, c := range []struct {
		n   int
		psi uint64
		ok  bool
	}{{16, 136, true}, {128, 3, true}, {8, 0, false}, {24, 3, false}, {0, 3, false}, {-16, 3, false}, {1 << 21, 3, false},
		{64, 3, false}, {128, 0, false}, {128, 1, false}, {128, 257 + 3, false}, {256, 3, false}} {
		if _, err := NewNTT(*m, c.n, c.psi); (err == nil) != c.ok {
			t.Errorf("n=%d, psi=%d: %v", c.n, c.psi, err)
		}
	}
	const large = 1 << 21 // too large, although a root exists
	q := nttPrimes(61, large, 1)[0]
	m = mustModulus(t, q)
	for g := uint64(2); ; g++ {
		if psi := m.Exp(g, (q-1)/(2*large)); m.Exp(psi, large) == q-1 {
			if _, err := NewNTT(*m, large, psi); err == nil {
				t.Error("degree 2^21 was accepted")
			}
			break
		}
	}
}

// Compares every slot with the value of the polynomial by Horner's rule, and transforms back.
func TestNTTSlots(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(21, 21))
		for n := 16; n <= 512; n *= 2 {
			for _, length := range []int{10, 11, 31, 32, 33, 49, 50, 51, 60, 61} {
				for _, q := range nttPrimes(length, n, 1) {
					tr := mustNTT(t, q, n)
					for _, x := range extremes(r, n, q) {
						y := make([]uint64, n)
						tr.Forward(y, x)
						for k := range y {
							at, sum := tr.Exp(tr.psi(), tr.exponent(k)), uint64(0)
							for j := n - 1; j >= 0; j-- {
								sum = tr.Add(tr.Mul(sum, at), x[j])
							}
							if y[k] != sum {
								t.Fatalf("n=%d q=%d: slot %d is %d, want %d", n, q, k, y[k], sum)
							}
						}
						tr.Inverse(y, y)
						if !slices.Equal(x, y) {
							t.Fatalf("n=%d q=%d: the inverse transform differs from the input", n, q)
						}
					}
				}
			}
		}
	})
}

// Compares some slots of large degrees with big.Int.
func TestNTTAgainstBig(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(22, 22))
		const n = 1 << 12
		for _, length := range []int{50, 61} {
			q := nttPrimes(length, n, 1)[0]
			tr, x, y := mustNTT(t, q, n), residues(r, n, q), make([]uint64, n)
			tr.Forward(y, x)
			for _, k := range []int{0, 1, 15, 16, n / 2, n - 1, r.IntN(n)} {
				at, sum, prime := new(big.Int).SetUint64(tr.psi()), new(big.Int), new(big.Int).SetUint64(q)
				at.Exp(at, new(big.Int).SetUint64(tr.exponent(k)), prime)
				for j := n - 1; j >= 0; j-- {
					sum.Mul(sum, at).Add(sum, new(big.Int).SetUint64(x[j])).Mod(sum, prime)
				}
				if sum.Uint64() != y[k] {
					t.Fatalf("q=%d: slot %d is %d, want %v", q, k, y[k], sum)
				}
			}
		}
	})
}

// For all degrees and every length of prime, a path agrees with the plain path, inverts, works in
// place, and leaves other operands unchanged.
func TestNTTPaths(t *testing.T) {
	defer restore(Selected())
	r := rand.New(rand.NewPCG(23, 23))
	for logN := 4; logN <= 17; logN++ {
		n := 1 << logN
		lengths := []int{logN + 4, 40, 49, 50, 51, 55, 60, 61}
		if logN <= 10 {
			lengths = lengths[:0]
			for l := logN + 2; l <= MaxBits; l++ {
				lengths = append(lengths, l)
			}
		}
		if logN > 15 || testing.Short() && logN > 13 {
			lengths = []int{50, 61}
		}
		for _, length := range lengths {
			for _, q := range nttPrimes(length, n, 1) {
				comparePaths(t, r, mustNTT(t, q, n))
			}
		}
	}
}

func comparePaths(t *testing.T, r *rand.Rand, tr *NTT) {
	n, q := tr.n, tr.Q
	for i, x := range extremes(r, n, q) {
		if n > 1<<12 && i%2 == 0 {
			continue
		}
		restore(Plain)
		forward, inverse, before := make([]uint64, n), make([]uint64, n), slices.Clone(x)
		tr.Forward(forward, x)
		tr.Inverse(inverse, x)
		for p := range best + 1 {
			restore(p)
			const guard = 8
			out := fill(make([]uint64, n+guard), ones)
			check := func(what string, want []uint64) {
				if !slices.Equal(out[:n], want) || !slices.Equal(x, before) || slices.Max(want) >= q {
					t.Fatalf("n=%d q=%d input %d, %v: %s", n, q, i, p, what)
				}
			}
			tr.Forward(out, x)
			check("forward", forward)
			tr.Inverse(out, out)
			check("inverse in place", x)
			tr.Inverse(out, x)
			check("inverse", inverse)
			tr.Forward(out, out)
			check("forward in place", x)
			if !slices.Equal(out[n:], fill(make([]uint64, guard), ones)) {
				t.Fatalf("n=%d q=%d, %v: words after the end were written", n, q, p)
			}
		}
	}
}

func BenchmarkNTT(b *testing.B) {
	for _, length := range []int{50, 61} {
		for _, logN := range []int{13, 14, 15} {
			n := 1 << logN
			tr := mustNTT(b, nttPrimes(length, n, 1)[0], n)
			x := residues(rand.New(rand.NewPCG(1, 1)), n, tr.Q)
			for _, inverse := range []bool{false, true} {
				do := tr.Forward
				if inverse {
					do = tr.Inverse
				}
				b.Run(fmt.Sprintf("%d/%d/inverse=%v", length, logN, inverse), func(b *testing.B) {
					benchmarkPaths(b, func(b *testing.B) {
						for b.Loop() {
							do(x, x)
						}
					})
				})
			}
		}
	}
}
