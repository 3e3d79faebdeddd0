package kernel

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"
)

const ones = ^uint64(0)

// oracle returns (2^64 hi + lo) mod q by division.
func oracle(hi, lo, q uint64) uint64 {
	_, r := bits.Div64(hi%q, lo, q)
	return r
}

// moduli returns the smallest, the largest and random odd numbers of every allowed length.
func moduli(r *rand.Rand) (qs []uint64) {
	for n := 2; n <= MaxBits; n++ {
		low, high := uint64(1)<<(n-1), uint64(1)<<n
		qs = append(qs, low|1, high-1, low|1|r.Uint64N(low), low|1|r.Uint64N(low))
	}
	return qs
}

func mustModulus(t testing.TB, q uint64) *Modulus {
	m, err := NewModulus(q)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

func TestNewModulus(t *testing.T) {
	for _, q := range []uint64{0, 1, 2, 4, 1 << 60, 1 << 61, 1<<61 + 1, ones} {
		if _, err := NewModulus(q); err == nil {
			t.Errorf("%d was accepted", q)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, q := range moduli(r) {
		m := mustModulus(t, q)
		want := new(big.Int).Lsh(big.NewInt(1), 128)
		want.Quo(want, new(big.Int).SetUint64(q))
		got := new(big.Int).Lsh(new(big.Int).SetUint64(m.hi), 64)
		if got.Add(got, new(big.Int).SetUint64(m.lo)).Cmp(want) != 0 {
			t.Fatalf("the Barrett constant of %d is %v", q, got)
		}
	}
}

func TestReduce(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, q := range moduli(r) {
		m := mustModulus(t, q)
		check := func(hi, lo uint64) {
			if got, want := m.Reduce(hi, lo), oracle(hi, lo, q); got != want {
				t.Fatalf("(%#x, %#x) mod %d = %d, want %d", hi, lo, q, got, want)
			}
		}
		edges := []uint64{0, 1, 2, q - 1, q, q + 1, 2*q - 1, 2 * q, m.hi, m.lo, 1 << 63, ones - 1, ones}
		for _, hi := range edges {
			for _, lo := range edges {
				check(hi, lo)
			}
		}
		for range 200 {
			check(r.Uint64(), r.Uint64())
			// Multiples of q and their neighbours, where the quotient estimate is most likely to be
			// wrong.
			hi, lo := bits.Mul64(q, r.Uint64())
			check(hi, lo)
			check(hi, lo-1)
			check(hi, lo+1)
		}
		// The largest multiple of q below 2^128.
		hi, lo := bits.Mul64(m.lo, q)
		hi += m.hi * q
		check(hi, lo)
		check(hi, lo-1)
	}
}

// TestProduct checks product up to its stated bound: every x below 2^(2n).
func TestProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, q := range moduli(r) {
		m := mustModulus(t, q)
		n := uint(bits.Len64(q))
		topHi, topLo := uint64(0), uint64(1)<<(2*n&63)-1
		if 2*n >= 64 {
			topHi, topLo = 1<<(2*n-64)-1, ones
		}
		check := func(hi, lo uint64) {
			if hi > topHi || hi == topHi && lo > topLo {
				return
			}
			if got, want := m.product(hi, lo), oracle(hi, lo, q); got != want {
				t.Fatalf("(%#x, %#x) mod %d = %d, want %d", hi, lo, q, got, want)
			}
		}
		check(topHi, topLo)
		check(bits.Mul64(q-1, q-1))
		check(0, 0)
		for range 300 {
			check(r.Uint64()&topHi, r.Uint64()&topLo)
			hi, lo := bits.Mul64(q, r.Uint64()&(1<<n-1)) // multiples of q and their neighbours
			check(hi, lo)
			down, borrow := bits.Sub64(lo, 1, 0)
			check(hi-borrow, down)
			check(hi, lo+1)
			c, a := r.Uint64N(q), r.Uint64()
			if got, want := m.Scale(a, m.Factor(c)), product(a%q, c, 0, q); got != want {
				t.Fatalf("%d times %d mod %d = %d", a, c, q, got)
			}
		}
		for _, a := range []uint64{0, 1, q - 1, q, ones - 1, ones} {
			for _, c := range []uint64{0, 1, q - 1} {
				if got, want := m.Scale(a, m.Factor(c)), product(a%q, c, 0, q); got != want {
					t.Fatalf("%d times %d mod %d = %d", a, c, q, got)
				}
			}
		}
	}
}

// These are multiples of q for which the estimate in product loses most. They end in as many ones
// as the estimate cuts off, their quotients are the largest, and their moduli are slightly above a
// power of two, where the bits cut off weigh most.
func TestProductLosesMost(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	for n := 6; n <= MaxBits; n++ {
		top := 64 - min(64, 128-2*n) // bits of the upper word of 2^(2n) - 1
		for range 40 {
			q := uint64(1)<<(n-1) | r.Uint64N(1<<(n-5)) | 1
			m := mustModulus(t, q)
			most, _ := bits.Div64(1<<top-1, ones>>(max(0, 64-2*n)), q)
			inverse := uint64(1)
			for range 6 {
				inverse *= 2 - inverse*q
			}
			cut := uint64(1) << m.shift
			for end := range uint64(4) {
				k := -(1 + end) * inverse & (cut - 1)
				k += (most - k) / cut * cut
				if hi, lo := bits.Mul64(k, q); m.product(hi, lo) != 0 {
					t.Fatalf("%d times %d is reduced to a nonzero residue", k, q)
				}
			}
		}
	}
}

func TestSmallModuliExhaustively(t *testing.T) {
	for q := uint64(3); q < 200; q += 2 {
		m := mustModulus(t, q)
		for a := range q {
			if m.Neg(a) != (q-a)%q {
				t.Fatalf("-%d mod %d", a, q)
			}
			for b := range q {
				if m.Add(a, b) != (a+b)%q || m.Sub(a, b) != (a+q-b)%q || m.Mul(a, b) != a*b%q || m.Scale(a, m.Factor(b)) != a*b%q {
					t.Fatalf("%d and %d mod %d", a, b, q)
				}
			}
		}
		if !new(big.Int).SetUint64(q).ProbablyPrime(0) {
			continue
		}
		for a := uint64(1); a < q; a++ {
			if m.Mul(a, m.Inverse(a)) != 1 {
				t.Fatalf("1/%d mod %d", a, q)
			}
		}
	}
}

func TestExp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, q := range moduli(r) {
		m := mustModulus(t, q)
		for _, e := range []uint64{0, 1, 2, 3, ones, r.Uint64()} {
			a := r.Uint64N(q)
			var x, y, z big.Int
			want := x.Exp(x.SetUint64(a), y.SetUint64(e), z.SetUint64(q)).Uint64()
			if got := m.Exp(a, e); got != want {
				t.Fatalf("%d^%d mod %d = %d", a, e, q, got)
			}
		}
	}
}

// residues returns n random residues.
func residues(r *rand.Rand, n int, q uint64) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = r.Uint64N(q)
	}
	return v
}

func product(a, b, c, q uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return (oracle(hi, lo, q) + c) % q
}

func TestMatMul(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	q61, q50 := uint64(1)<<61-1, uint64(0x1ffffffd40001)
	shapes := [][3]int{{1, 1, 1}, {1, 64, 1}, {1, 65, 3}, {2, 128, 2}, {3, 129, 4}, {5, 63, 5}, {7, 200, 7}, {4, 0, 4}, {0, 3, 3}}
	for m := 1; m <= 4; m++ {
		for n := 1; n <= 7; n++ {
			shapes = append(shapes, [3]int{m, 1 + r.IntN(8), n})
		}
	}
	for _, q := range []uint64{3, 5, 65537, q50, 1<<60 - 93, q61} {
		for _, s := range shapes {
			for _, extreme := range []bool{false, true} { // all entries q-1 fill the accumulators
				a, b := residues(r, s[0]*s[1], q), residues(r, s[1]*s[2], q)
				if extreme {
					for _, v := range [][]uint64{a, b} {
						for i := range v {
							v[i] = q - 1
						}
					}
				}
				dst := residues(r, s[0]*s[2], q)
				MatMul(dst, a, b, s[0], s[1], s[2], q)
				for i := range s[0] {
					for j := range s[2] {
						want := uint64(0)
						for k := range s[1] {
							want = product(a[i*s[1]+k], b[k*s[2]+j], want, q)
						}
						if got := dst[i*s[2]+j]; got != want {
							t.Fatalf("%v mod %d at (%d, %d): %d, want %d", s, q, i, j, got, want)
						}
					}
				}
			}
		}
	}
}

func TestMatMulRefuses(t *testing.T) {
	for name, f := range map[string]func(){
		"even modulus":    func() { MatMul(make([]uint64, 1), make([]uint64, 1), make([]uint64, 1), 1, 1, 1, 8) },
		"short result":    func() { MatMul(make([]uint64, 3), make([]uint64, 4), make([]uint64, 4), 2, 2, 2, 7) },
		"short left side": func() { MatMul(make([]uint64, 4), make([]uint64, 3), make([]uint64, 4), 2, 2, 2, 7) },
		"short right side": func() { // the backing array is longer
			MatMul(make([]uint64, 4), make([]uint64, 4), make([]uint64, 3, 8), 2, 2, 2, 7)
		},
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
