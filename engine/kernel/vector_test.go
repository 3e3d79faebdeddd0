package kernel

import (
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// vectorOperation is an operation on vectors and what slot it should give. b is ignored by those with one operand.
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
	{"scale", func(m *Modulus, dst, a, _ []uint64, c uint64) { m.ScaleVec(dst, a, c) },
		func(_, a, _, c, q uint64) uint64 { return product(a, c, 0, q) }},
	{"mul", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.MulVec(dst, a, b) },
		func(_, a, b, _, q uint64) uint64 { return product(a, b, 0, q) }},
	{"muladd", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.MulAddVec(dst, a, b) },
		func(d, a, b, _, q uint64) uint64 { return product(a, b, d, q) }},
	{"reduce", func(m *Modulus, dst, a, b []uint64, _ uint64) { m.ReduceVec(dst, a) },
		func(_, a, _, _, q uint64) uint64 { return a % q }},
	{"montgomery mul", func(m *Modulus, dst, a, b []uint64, _ uint64) { f := m.Montgomery(); f.MulVec(dst, a, b) },
		func(_, a, b, _, q uint64) uint64 { return product(product(a, b, 0, q), unmontgomery(q), 0, q) }},
	{"montgomery muladd", func(m *Modulus, dst, a, b []uint64, _ uint64) { f := m.Montgomery(); f.MulAddVec(dst, a, b) },
		func(d, a, b, _, q uint64) uint64 { return product(product(a, b, 0, q), unmontgomery(q), d, q) }},
	{"to montgomery", func(m *Modulus, dst, a, _ []uint64, _ uint64) { f := m.Montgomery(); f.To(dst, a) },
		func(_, a, _, _, q uint64) uint64 { return product(a, oracle(1, 0, q), 0, q) }},
	{"from montgomery", func(m *Modulus, dst, a, _ []uint64, _ uint64) { f := m.Montgomery(); f.From(dst, a) },
		func(_, a, _, _, q uint64) uint64 { return product(a, unmontgomery(q), 0, q) }},
}

var unmontgomeryOf sync.Map

// unmontgomery is 2^-64 mod q.
func unmontgomery(q uint64) uint64 {
	if v, ok := unmontgomeryOf.Load(q); ok {
		return v.(uint64)
	}
	v := new(big.Int).Lsh(big.NewInt(1), 64)
	v.ModInverse(v, new(big.Int).SetUint64(q))
	unmontgomeryOf.Store(q, v.Uint64())
	return v.Uint64()
}

// endpoints gives n residues, half of them at the ends of the range.
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
			t.Fatalf("%s mod %d: %d slots: written behind the end", o.name, m.Q, n)
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
			t.Fatalf("%s mod %d: %d slots in place of operand %d", o.name, m.Q, n, in)
		}
	}
}

// Every length of vector up to several times that of a register, moduli of every length, residues at the ends of
// their range.
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

// Quotients that are most likely to be estimated wrongly: products just below and just above multiples of the modulus.
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

// ReduceVec is for any words.
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
