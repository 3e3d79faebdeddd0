package linear

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// within compares noises with a bound, and checks that the bound is tight: at most the given number
// of bits over the largest.
func within(t *testing.T, what string, e []*big.Int, bound, slack float64) {
	t.Helper()
	most, _ := new(big.Float).SetInt(largest(e)).Float64()
	if most > bound {
		t.Errorf("%s: a noise of 2^%.1fexceeds the bound 2^%.1f", what, math.Log2(most), math.Log2(bound))
	}
	if most*math.Exp2(slack) < bound {
		t.Errorf("%s: noises up to 2^%.1fleave the bound 2^%.1f too loose", what, math.Log2(most), math.Log2(bound))
	}
}

// The measured noise of every operation, before the flood, stays within its bound for the largest
// messages and factors.
func TestNoiseIsWithinItsBounds(t *testing.T) {
	for _, set := range Sets() {
		t.Run(set.Name, func(t *testing.T) {
			w := newWorld(t, set.Name)
			if w.HasProof() {
				w.noiseOfProvedProducts(t)
				return
			}
			w.noiseOfProducts(t)
			w.noiseOfSquares(t)
		})
	}
}

// encrypted returns inputs whose entries are all v.
func (w *world) encrypted(t testing.TB, count int, v uint64) *Inputs {
	t.Helper()
	in, err := w.secret.encrypt(count, 1, func(_ int, m []uint64) { copy(m, constant(w.N(), v)) }, w.source())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func (w *world) noiseOfProducts(t *testing.T) {
	const terms = 5
	n := w.N()
	in := w.encrypted(t, terms, w.T/2)
	b, a, err := in.all(w.public, terms)
	if err != nil {
		t.Fatal(err)
	}
	noises := func(b, a ring.NTT) []*big.Int {
		e, _ := w.noises(w.coefficients(b, a))
		return e
	}
	within(t, "fresh", noises(b[0], a[0]), w.FreshNoise(), 4)

	zero := [2]ring.NTT{w.basis.NewNTT(), w.basis.NewNTT()}
	e, _ := w.noises(w.public.addZero(zero[0], zero[1], w.source()))
	within(t, "zero", e, w.ZeroNoise(), 4)

	for name, m := range map[string][]uint64{"random": w.residues(n), "largest": constant(n, w.T/2)} {
		factor, c0, c1 := w.basis.NewNTT(), w.basis.NewNTT(), w.basis.NewNTT()
		w.multiplier(factor, m)
		for i := range terms {
			w.basis.MulAddNTT(c0, factor, b[i])
			w.basis.MulAddNTT(c1, factor, a[i])
		}
		slack := 5.0
		if name == "random" {
			slack = 12
		}
		within(t, "product, "+name, noises(c0, c1), w.ProductNoise(terms, n), slack)
	}

	c0, c1, scaled := w.basis.NewNTT(), w.basis.NewNTT(), w.basis.NewPoly()
	for i := range terms {
		w.basis.MulScalar(scaled, ring.Poly(b[i]), w.scalar(w.T/2))
		w.basis.AddNTT(c0, c0, ring.NTT(scaled))
		w.basis.MulScalar(scaled, ring.Poly(a[i]), w.scalar(w.T/2))
		w.basis.AddNTT(c1, c1, ring.NTT(scaled))
	}
	within(t, "scalars", noises(c0, c1), w.ScalarNoise(terms), 4)
}

func (w *world) noiseOfSquares(t *testing.T) {
	const terms = 3
	p := &ProductPlan{scheme: w.Scheme, downs: 1, inners: terms, acrosses: 1}
	left, right := w.encrypted(t, terms, w.T/2), w.encrypted(t, terms, w.T/2)
	e, err := p.Evaluator(w.public, left, right)
	if err != nil {
		t.Fatal(err)
	}
	c0, c1, c2 := e.multiply(0)
	w.public.relinearise(c0, c1, c2)
	got, _ := w.noises(w.coefficients(c0, c1))
	within(t, "squares", got, w.SquareNoise(terms, 1), 6)

	const cols = 8
	p = &ProductPlan{ProductShape: ProductShape{Cols: cols, Method: First}, scheme: w.Scheme, downs: 1, inners: terms, acrosses: 1,
		stride: 1, TileRows: 2, TileInner: 4, TileCols: cols}
	columns, err := w.secret.encrypt(p.Rights(), 1, func(_ int, m []uint64) { copy(m, constant(8, w.T/2)) }, w.source())
	if err != nil {
		t.Fatal(err)
	}
	if e, err = p.Evaluator(w.public, left, columns); err != nil {
		t.Fatal(err)
	}
	c0, c1, c2 = e.multiply(0)
	w.public.relinearise(c0, c1, c2)
	got, _ = w.noises(w.coefficients(c0, c1))
	within(t, "squares of moved columns", got, w.SquareNoise(terms, cols), 7)
}

// With the largest flood and the largest noise an answer decodes, and with more it does not: the
// bound on the flood is tight except for the rounding, which takes at most a quarter of the margin.
func TestLargestFloodDecodes(t *testing.T) {
	for _, name := range []string{"insecure-V6-32", "insecure-P6-17", "insecure-P6-40"} {
		w := newWorld(t, name)
		noise := w.ProductNoise(3, w.N())
		f, err := w.flood(noise, 1)
		if err != nil {
			t.Fatal(err)
		}
		most, _ := new(big.Float).SetFloat64(noise).Int(nil)
		most.Add(most, f.bound)
		twice := new(big.Int).Lsh(most, 1)
		for _, c := range []struct {
			e    *big.Int
			good bool
		}{{most, true}, {new(big.Int).Neg(most), true}, {twice, false}} {
			m, c0 := w.residues(w.N()), w.basis.NewPoly()
			w.message(c0, m)
			for i, q := range w.Q {
				r := new(big.Int).Mod(c.e, new(big.Int).SetUint64(q)).Uint64()
				for k := range c0.C[i] {
					c0.C[i][k] = (c0.C[i][k] + r) % q
				}
			}
			got := w.decode(w.reduced(c0).C[0])
			right := 0
			for i := range m {
				if got[i] == m[i] {
					right++
				}
			}
			if c.good && right != w.N() || !c.good && right > w.N()/2 {
				t.Errorf("%s, noise of %d bits: %d of %d coefficients are correct", name, c.e.BitLen(), right, w.N())
			}
		}
	}
}

// Plans that leave too little space for a flood are refused before anything is computed.
func TestNoRoomForNoise(t *testing.T) {
	s, err := Find("V13-32")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PlanVector(MaxEntries, MaxEntries, Forward, 0); !errors.Is(err, ErrNoise) {
		t.Errorf("a plan of 2^48 entries: %v", err)
	}
	wide := ProductShape{Rows: 1 << 12, Inner: 1 << 12, Cols: 1 << 12, MaxLeft: 1, MaxRight: 1}
	if _, err := s.PlanProduct(wide); !errors.Is(err, ErrNoise) {
		t.Errorf("products of ciphertexts in a set for products with polynomials: %v", err)
	}
	if _, err := s.flood(math.Exp2(150), 1); !errors.Is(err, ErrNoise) {
		t.Errorf("a noise beyond the modulus: %v", err)
	}
	p, err := s.PlanVector(4000, 2000, Double, 0)
	if err != nil || p.Distance() > LogDistance {
		t.Errorf("distance 2^%v, %v", p.Distance(), err)
	}
}
