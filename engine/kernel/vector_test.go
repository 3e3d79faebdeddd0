package kernel

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// vectorOperation is an operation on vectors and the expected value of a slot. Operations with one
// operand ignore b.
type vectorOperation struct {
	name string
	run  func(m *Modulus, dst, a, b []uint64, c uint64)
	want func(d, a, b, c, q uint64) uint64
}

var vectorOperations = []vectorOperation{
	{"add", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.AddVec(dst, a, b) },
		func(_, a, b, _, q uint64) uint64 { return oracle(0, a+b, q) }},
	{"sub", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.SubVec(dst, a, b) },
		func(_, a, b, _, q uint64) uint64 { return oracle(0, a+q-b, q) }},
	{"neg", func(m *Modulus, dst, a, _ []uint64, _ uint64) { m.NegVec(dst, a) },
		func(_, a, _, _, q uint64) uint64 { return oracle(0, q-a, q) }},
	{"signed", func(m *Modulus, dst, a, _ []uint64, c uint64) {
		a = slices.Clone(a)
		for i := range a {
			if a[i] != 0 && (c+uint64(i))%3 == 0 {
				a[i] -= m.Q
			}
		}
		m.SignedVec(dst, a)
	}, func(_, a, _, _, _ uint64) uint64 { return a }},
	{"digit", func(m *Modulus, dst, a, _ []uint64, c uint64) { m.DigitVec(dst, a, digitOf(m.Q, c)) },
		func(_, a, _, c, q uint64) uint64 {
			d := digitOf(q, c)
			v := int64((a+d.Centre)%q+d.Offset)>>d.Shift&int64(d.Mask) - int64(d.Middle)
			return uint64((v%int64(q) + int64(q)) % int64(q))
		}},
	{"scale", func(m *Modulus, dst, a, _ []uint64, c uint64) { m.ScaleVec(dst, a, c) },
		func(_, a, _, c, q uint64) uint64 { return product(a, c, 0, q) }},
	{"mul", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.MulVec(dst, a, b) },
		func(_, a, b, _, q uint64) uint64 { return product(a, b, 0, q) }},
	{"muladd", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.MulAddVec(dst, a, b) },
		func(d, a, b, _, q uint64) uint64 { return product(a, b, d, q) }},
	{"mulsum", func(m *Modulus, dst, a, b []uint64, c uint64) {
		x, y := slices.Clone(b), slices.Clone(a)
		for i := range y {
			y[i] = m.Sub(c, y[i])
		}
		m.MulSumVec(dst, a, b, x, y)
	}, func(_, a, b, c, q uint64) uint64 { return product(b, (c+q-a)%q, product(a, b, 0, q), q) }},
	{"reduce", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.ReduceVec(dst, a) },
		func(_, a, _, _, q uint64) uint64 { return a % q }},
}

// digitOf returns a digit with the most bits that stay below q.
func digitOf(q, c uint64) *Digit {
	mask := uint64(1)<<(bits.Len64(q)-1) - 1
	return &Digit{Centre: c, Offset: c / 3, Shift: c % 7, Mask: mask, Middle: []uint64{0, (mask + 1) / 2}[c%2]}
}

// endpoints returns n residues, half of them at the ends of the range.
func endpoints(r *rand.Rand, n int, q uint64) []uint64 {
	v := residues(r, n, q)
	for i := range v {
		if r.IntN(2) == 0 {
			v[i] = []uint64{0, 1, q / 2, q - 2, q - 1, q - 1}[r.IntN(6)]
		}
	}
	return v
}

func (o vectorOperation) check(t *testing.T, m *Modulus, d, a, b []uint64, c uint64) {
	t.Helper()
	const guard = 9
	n := len(a)
	want := make([]uint64, n)
	for i := range want {
		want[i] = o.want(d[i], a[i], b[i], c, m.Q)
	}
	buffer := append(slices.Clone(d), fill(make([]uint64, guard), ones)...)
	o.run(m, buffer[:n], a, b, c)
	for i, x := range buffer {
		if i < n && x != want[i] {
			t.Fatalf("%s mod %d: slot %d of %d is %d, want %d", o.name, m.Q, i, n, x, want[i])
		}
		if i >= n && x != ones {
			t.Fatalf("%s mod %d: %d slots: words after the end were written", o.name, m.Q, n)
		}
	}
	for in := range 2 { // in place of either operand
		x, y := slices.Clone(a), slices.Clone(b)
		dst := [][]uint64{x, y}[in]
		for i := range want {
			want[i] = o.want(dst[i], a[i], b[i], c, m.Q)
		}
		o.run(m, dst, x, y, c)
		if !slices.Equal(dst, want) {
			t.Fatalf("%s mod %d: %d slots, in place on operand %d, are wrong", o.name, m.Q, n, in)
		}
	}
}

// Covers every length of vector up to several registers, moduli of every length, and residues at
// the ends of their range.
func TestVectors(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 4))
		for _, q := range moduli(r) {
			m := mustModulus(t, q)
			for range 3 {
				n := r.IntN(90)
				a, b, d := endpoints(r, n, q), endpoints(r, n, q), endpoints(r, n, q)
				for _, c := range []uint64{0, q - 1, r.Uint64N(q)} {
					for _, o := range vectorOperations {
						o.check(t, m, d, a, b, c)
					}
				}
			}
		}
		for _, q := range []uint64{3, 1<<50 - 27, 1<<61 - 1} {
			m := mustModulus(t, q)
			for n := range 70 {
				a, b, d := endpoints(r, n, q), endpoints(r, n, q), endpoints(r, n, q)
				for _, o := range vectorOperations {
					o.check(t, m, d, a, b, q-1)
				}
			}
		}
	})
}

// Products just below and just above multiples of the modulus, whose quotients are most likely to
// be estimated wrongly.
func TestVectorsNearMultiples(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		for _, q := range moduli(r) {
			m, prime := mustModulus(t, q), new(big.Int).SetUint64(q)
			const n = 40
			a, b, d := make([]uint64, n), make([]uint64, n), endpoints(r, n, q)
			for i := range a {
				for { // a b = -1, 0, 1 or 2 mod q
					a[i] = r.Uint64N(q)
					if inverse := new(big.Int).ModInverse(new(big.Int).SetUint64(a[i]), prime); inverse != nil {
						b[i] = product(inverse.Uint64(), []uint64{q - 1, 0, 1, 2}[i%4], 0, q)
						break
					}
				}
			}
			for _, o := range vectorOperations {
				o.check(t, m, d, a, b, b[0])
			}
		}
	})
}

// ReduceVec accepts any words.
func TestReduceVec(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(10, 10))
		for _, q := range moduli(r) {
			a := []uint64{0, q, q - 1, q + 1, 2*q - 1, ones, ones - 1, 1 << 63, 1 << 52, 1<<52 - 1, ones / q * q, ones/q*q - 1}
			for range 20 {
				x := r.Uint64()
				a = append(a, x, x/q*q, x/q*q-1, x/q*q+1)
			}
			out := make([]uint64, len(a))
			mustModulus(t, q).ReduceVec(out, a)
			for i, x := range a {
				if out[i] != x%q {
					t.Fatalf("%d mod %d = %d", x, q, out[i])
				}
			}
		}
	})
}

func TestVectorsInPlace(t *testing.T) {
	m := mustModulus(t, 97)
	a, b := []uint64{3, 96, 0}, []uint64{95, 96, 96}
	m.MulVec(a, a, b)
	m.AddVec(a, b, a)
	m.SubVec(b, a, b)
	if fmt.Sprint(a, b) != "[89 0 96] [91 1 0]" {
		t.Fatal(a, b)
	}
}

func BenchmarkVectors(b *testing.B) {
	const n = 1 << 14
	r := rand.New(rand.NewPCG(7, 7))
	for _, q := range []uint64{0x1ffffffd40001, 1<<61 - 1} {
		x, y, dst, m := residues(r, n, q), residues(r, n, q), residues(r, n, q), mustModulus(b, q)
		for _, o := range vectorOperations {
			b.Run(fmt.Sprintf("%s/%d", o.name, bits.Len64(q)), func(b *testing.B) {
				benchmarkPaths(b, func(b *testing.B) {
					for b.Loop() {
						o.run(m, dst, x, y, 12345)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/coeff")
				})
			})
		}
	}
}

// Covers words of any size, and every number of words up to several registers.
func TestAddMultiples(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 6))
		for n := range 70 {
			var rows [5][]uint64
			for i := range rows {
				rows[i] = make([]uint64, n)
				for k := range rows[i] {
					rows[i][k] = r.Uint64() >> (r.IntN(2) * r.IntN(64))
				}
			}
			f := [4]uint64{r.Uint64(), r.Uint64N(8), -r.Uint64N(8), ones}
			dst := append(slices.Clone(rows[4]), 7)
			AddMultiples(dst[:n], rows[0], rows[1], rows[2], rows[3], &f)
			for k := range n {
				if want := rows[4][k] + f[0]*rows[0][k] + f[1]*rows[1][k] + f[2]*rows[2][k] + f[3]*rows[3][k]; dst[k] != want {
					t.Fatalf("slot %d of %d is %d, want %d", k, n, dst[k], want)
				}
			}
			if dst[n] != 7 {
				t.Fatalf("%d slots: words after the end were written", n)
			}
		}
	})
}
