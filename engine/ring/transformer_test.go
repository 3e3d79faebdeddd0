package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	lattigo "github.com/tuneinsight/lattigo/v6/ring"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// onPaths runs a test with every kernel that this processor supports.
func onPaths(t *testing.T, f func(t *testing.T)) {
	before := kernel.Selected()
	defer func() { selectPath(t, before) }()
	for p := range kernel.Best() + 1 {
		selectPath(t, p)
		t.Run(p.String(), f)
	}
}

func selectPath(t testing.TB, p kernel.Path) {
	if err := kernel.Select(p); err != nil {
		t.Fatal(err)
	}
}

// transformPrimes are 1 mod 2^17; the smaller ones are 1 mod 2^10.
func transformPrimes(logN int) []uint64 {
	out := []uint64{0x1fffffffffe00001, 0x7fffffff380001, 0x3ffffffef40001, 0x1ffffffea0001, 0x7fffffbc0001}
	if logN <= 8 {
		out = append(out, 12289, 0x3ffffe8c001, 0x7fffffb58001)
	}
	return slices.DeleteFunc(out, func(q uint64) bool { return q%(2<<logN) != 1 || !lattigo.IsPrime(q) })
}

func random(r *rand.Rand, n int, limit uint64) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = r.Uint64N(limit)
	}
	return v
}

// Transforms of a basis, and of Lattigo's ring with the transformer, equal those of Lattigo's own
// ring.
func TestTransformsAreLattigos(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 41))
		for logN := 4; logN <= 15; logN++ {
			if testing.Short() && logN > 13 {
				break
			}
			n, primes := 1<<logN, transformPrimes(logN)
			if len(primes) < 3 {
				t.Fatalf("only %d primes for degree 2^%d", len(primes), logN)
			}
			own, err := lattigo.NewRing(n, primes)
			if err != nil {
				t.Fatal(err)
			}
			custom, err := lattigo.NewRingWithCustomNTT(n, primes, newTransformer, 2*n)
			if err != nil {
				t.Fatal(err)
			}
			b := mustBasis(t, logN, primes...)
			x, v, back := b.NewPoly(), b.NewNTT(), b.NewPoly()
			for i, q := range primes {
				x.C[i] = random(r, n, q)
			}
			b.Forward(v, x)
			b.Inverse(back, v)
			for i, s := range own.SubRings {
				want, got := make([]uint64, n), make([]uint64, n)
				s.NTT(x.C[i], want)
				custom.SubRings[i].NTT(x.C[i], got)
				if !slices.Equal(want, v.C[i]) || !slices.Equal(want, got) {
					t.Fatalf("N=2^%d, q=%#x: the forward transform differs", logN, s.Modulus)
				}
				custom.SubRings[i].INTT(got, got)
				if !slices.Equal(x.C[i], got) || !slices.Equal(x.C[i], back.C[i]) {
					t.Fatalf("N=2^%d, q=%#x: the inverse transform differs", logN, s.Modulus)
				}
			}
		}
	})
}

// The transformer accepts lazily reduced values and any other words.
func TestTransformerReduces(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		const n = 32
		r := rand.New(rand.NewPCG(42, 42))
		for _, q := range transformPrimes(5) {
			custom, err := lattigo.NewRingWithCustomNTT(n, []uint64{q}, newTransformer, 2*n)
			if err != nil {
				t.Fatal(err)
			}
			s, x := custom.SubRings[0], random(r, n, q)
			lazy := slices.Clone(x)
			for i := range lazy {
				lazy[i] += r.Uint64N(^uint64(0)/q) * q
			}
			for _, c := range []struct {
				name                 string
				canonical, transform func(src, dst []uint64)
			}{
				{"forward", s.NTT, s.NTT}, {"forward lazy", s.NTT, s.NTTLazy},
				{"inverse", s.INTT, s.INTT}, {"inverse lazy", s.INTT, s.INTTLazy},
			} {
				want, got := make([]uint64, n), make([]uint64, n+3)
				c.canonical(x, want)
				c.transform(lazy, got)
				if !slices.Equal(want, got[:n]) || slices.Max(got[n:]) != 0 {
					t.Fatalf("q=%#x: %s", q, c.name)
				}
			}
		}
	})
}

func TestTransformerElsewhere(t *testing.T) {
	if r, err := lattigo.NewRingWithCustomNTT(8, []uint64{97}, newTransformer, 16); err != nil || r.Type() != lattigo.Standard {
		t.Errorf("degree 8 does not keep Lattigo's transform: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the conjugate-invariant ring was accepted")
		}
	}()
	_, _ = lattigo.NewRingWithCustomNTT(16, []uint64{193}, newTransformer, 64)
}

func BenchmarkTransforms(b *testing.B) {
	const logN = 14
	r := rand.New(rand.NewPCG(43, 43))
	for _, q := range []uint64{0x1ffffffea0001, 0x1fffffffffe00001} {
		basis := mustBasis(b, logN, q)
		own, err := lattigo.NewRing(1<<logN, []uint64{q})
		if err != nil {
			b.Fatal(err)
		}
		custom, err := lattigo.NewRingWithCustomNTT(1<<logN, []uint64{q}, newTransformer, 2<<logN)
		if err != nil {
			b.Fatal(err)
		}
		x, y := Poly{[][]uint64{random(r, 1<<logN, q)}}, Poly{[][]uint64{random(r, 1<<logN, q)}}
		for _, c := range []struct {
			name string
			run  func()
		}{
			{"forward", func() { basis.Forward(NTT(x), x) }},
			{"inverse", func() { basis.Inverse(x, NTT(x)) }},
			{"multiply-add", func() { basis.MulAddNTT(NTT(y), NTT(x), NTT(x)) }},
			{"lattigo-multiply-add", func() { own.SubRings[0].MulCoeffsMontgomeryThenAdd(x.C[0], x.C[0], y.C[0]) }},
			{"lattigo-forward", func() { own.SubRings[0].NTT(x.C[0], x.C[0]) }},
			{"lattigo-inverse", func() { own.SubRings[0].INTT(x.C[0], x.C[0]) }},
			{"transformer-forward", func() { custom.SubRings[0].NTT(x.C[0], x.C[0]) }},
			{"transformer-inverse", func() { custom.SubRings[0].INTT(x.C[0], x.C[0]) }},
		} {
			b.Run(fmt.Sprintf("%s/%#x", c.name, q), func(b *testing.B) {
				for b.Loop() {
					c.run()
				}
			})
		}
	}
}

// Every path passes the tests that the best path passes.
func TestOnPaths(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		for name, f := range map[string]func(*testing.T){
			"extend": TestExtend, "extend exhaustively": TestExtendExhaustively, "extend in place": TestExtendInPlace,
			"divide": TestDivRound, "divide exhaustively": TestDivRoundExhaustively, "lift": TestLift,
			"arithmetic": TestArithmetic, "products": TestProducts, "monomials": TestMonomials, "from integers": TestFromInt,
			"slots": TestSlots, "roots": TestRootsArePinned,
		} {
			t.Run(name, f)
		}
	})
}

// newTransformer returns a ring of Lattigo the transforms of package kernel, which return the same
// results:
//
//	lattigo.NewRingWithCustomNTT(n, primes, newTransformer, 2*n)
//
// It supports Z_q[X]/(X^N+1), not the conjugate-invariant ring. Degrees and primes that package
// kernel does not support keep Lattigo's transform. Lattigo does not know the type of a ring with a
// foreign transformer: Ring.Type panics, and so do its callers, such as Ring.Automorphism on
// coefficients and marshalling.
func newTransformer(r *lattigo.SubRing, n int) lattigo.NumberTheoreticTransformer {
	if r.NthRoot != uint64(2*n) {
		panic("ring: the transformer supports only rings modulo X^N+1")
	}
	m, err := kernel.NewModulus(r.Modulus)
	if err != nil || n < 16 || n > maxDegree {
		return lattigo.NewNumberTheoreticTransformerStandard(r, n)
	}
	return &transformer{Modulus: m, prepared: sync.OnceValue(func() *kernel.NTT {
		t, err := newNTT(m, r)
		if err != nil {
			panic(err) // Lattigo has checked the prime and its root
		}
		return t
	})}
}

// transformer prepares its tables on first use, because Lattigo does not know the root yet when it
// creates the transformer.
type transformer struct {
	kernel.Modulus
	prepared func() *kernel.NTT
}

// Forward accepts any words, because Lattigo may reduce its values lazily.
func (t *transformer) Forward(src, dst []uint64) {
	ntt := t.prepared()
	dst = dst[:ntt.N()]
	t.ReduceVec(dst, src)
	ntt.Forward(dst, dst)
}

func (t *transformer) Backward(src, dst []uint64) {
	ntt := t.prepared()
	dst = dst[:ntt.N()]
	t.ReduceVec(dst, src)
	ntt.Inverse(dst, dst)
}

// The lazy forms may leave values less reduced; here they reduce fully.

func (t *transformer) ForwardLazy(src, dst []uint64) { t.Forward(src, dst) }

func (t *transformer) BackwardLazy(src, dst []uint64) { t.Backward(src, dst) }
