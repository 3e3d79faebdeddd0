package sample

import (
	"math"
	"math/big"
	"testing"
)

func source(b byte) *Source {
	seed := make([]byte, SeedSize)
	for i := range seed {
		seed[i] = b
	}
	return NewSource(seed)
}

// chiSquare draws n values and compares them with the Gaussian of the given width and centre. It returns the
// statistic in standard deviations from its mean.
func chiSquare(t *testing.T, g *Gaussian, c Frac, width, centre float64, n int, s *Stream) float64 {
	t.Helper()
	dst, centres := make([]int64, n), make([]Frac, n)
	for i := range centres {
		centres[i] = c
	}
	g.SampleAt(dst, centres, s)
	count := map[int64]int{}
	for _, z := range dst {
		count[z]++
	}
	span := int64(width*3) + 2
	total := 0.0
	pmf := func(z int64) float64 { d := float64(z) - centre; return math.Exp(-math.Pi * d * d / (width * width)) }
	for z := -2 * span; z <= 2*span; z++ {
		total += pmf(z)
	}
	stat, cells := 0.0, 0
	restObserved, restExpected := n, float64(n)
	for z := -span; z <= span; z++ {
		e := float64(n) * pmf(z) / total
		if e < 10 {
			continue
		}
		d := float64(count[z]) - e
		stat += d * d / e
		cells++
		restObserved -= count[z]
		restExpected -= e
	}
	if restExpected > 5 {
		d := float64(restObserved) - restExpected
		stat += d * d / restExpected
		cells++
	}
	df := float64(cells - 1)
	return (stat - df) / math.Sqrt(2*df)
}

func TestGaussianFitsItsDistribution(t *testing.T) {
	const n = 400_000
	centres := []struct {
		c Frac
		v float64
	}{
		{Frac{}, 0},
		{Frac{1 << 63, 0}, 0.5},
		{Frac{^uint64(0), 0}, 1}, // 1 - 2^-64
		{Frac{^uint64(0), ^uint64(0)}, 1},
		{Frac{0, 1}, 0},
		{Frac{0x5555555555555555, 0x5555555555555555}, 1.0 / 3},
		{Frac{0xe000000000000000, 12345}, 0.875},
	}
	s := source(1)
	for wi, width := range []float64{3.5, 7.943, 15.886, 33.3, 402.7} {
		g, err := NewGaussian(width)
		if err != nil {
			t.Fatal(err)
		}
		for ci, c := range centres {
			if d := chiSquare(t, g, c.c, width, c.v, n, s.Stream("fit", uint64(wi), uint64(ci))); math.Abs(d) > 5 {
				t.Errorf("width %v, centre %v: chi-square is %.1f deviations off", width, c.v, d)
			}
		}
		// The same test sees a width 1 % off (4 % for the widest) and a centre 1/60 of a width off.
		off := 1.01
		if width > 100 {
			off = 1.04 // spread over thousands of cells
		}
		if d := chiSquare(t, g, Frac{}, width*off, 0, n, s.Stream("width", uint64(wi))); d < 5 {
			t.Errorf("width %v: chi-square does not see %v (%.1f)", width, width*off, d)
		}
		if d := chiSquare(t, g, Frac{1 << 63, 0}, width, 0.5+width/60, n, s.Stream("centre", uint64(wi))); d < 5 {
			t.Errorf("width %v: chi-square does not see a centre off (%.1f)", width, d)
		}
	}
}

// exactProbability is 2^63 exp(-x) by big floats.
func exactProbability(g *Gaussian, v candidate) *big.Float {
	tt := newFloat().SetMantExp(newFloat().SetInt(fracInt(v.c)), -128)
	if v.b == 1 {
		tt.Sub(newFloat().SetInt64(1), tt)
	}
	x := newFloat().Add(tt, newFloat().SetUint64(2*(g.k*v.y+v.u)))
	x.Mul(x, tt)
	x.Add(x, newFloat().SetUint64(v.u*(v.u+2*g.k*v.y)))
	return newFloat().SetMantExp(expNeg(x.Mul(x, g.ratio)), 63)
}

func TestProbabilityIsWithinItsBound(t *testing.T) {
	s := source(2).Stream("probability")
	worst := 0.0
	for _, width := range []float64{3, 7.943, 15.886, 100.25, 402.7, 5000} {
		g, err := NewGaussian(width)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 400 {
			v := candidate{y: s.Uint64() % uint64(len(g.table)+1), u: s.Uint64() % g.k, b: s.Uint64() & 1, c: Frac{s.Uint64(), s.Uint64()}}
			switch i % 8 {
			case 1:
				v.c = Frac{}
			case 2:
				v.c = Frac{^uint64(0), ^uint64(0)}
			case 3:
				v.c = Frac{0, 1}
			case 4:
				v.c.Lo = 0
			case 5:
				v.y, v.u = 0, 0
			}
			d, _ := newFloat().Sub(newFloat().SetUint64(g.probability(v)), exactProbability(g, v)).Float64()
			worst = max(worst, math.Abs(d))
		}
	}
	if worst > 60 {
		t.Errorf("probability is off by %.1f units of 2^-63, the analysis says less than 60", worst)
	}
}

func TestRefineDecidesByTheNextBits(t *testing.T) {
	g, err := NewGaussian(7.943)
	if err != nil {
		t.Fatal(err)
	}
	s := source(3)
	v := candidate{y: 3, b: 1, c: Frac{0x1234567890abcdef, 42}}
	exact := exactProbability(g, v)
	whole, _ := exact.Int(nil)
	p := whole.Uint64()
	rest, _ := newFloat().Sub(exact, newFloat().SetInt(whole)).Float64()
	if !g.refine(v, p-1, s.Stream("below")) || g.refine(v, p+1, s.Stream("above")) {
		t.Fatal("refine disagrees with the bits before")
	}
	accepted := 0
	const n = 2000
	for i := range n {
		if g.refine(v, p, s.Stream("at", uint64(i))) {
			accepted++
		}
	}
	if d := math.Abs(float64(accepted)/n - rest); d > 5*math.Sqrt(rest*(1-rest)/n) {
		t.Errorf("refine accepts %d of %d, want a share of %.3f", accepted, n, rest)
	}
}

func TestExpNegWordAtItsEdges(t *testing.T) {
	for _, c := range []struct{ whole, frac uint64 }{
		{0, 0}, {0, 1}, {0, ln2Word - 1}, {0, ln2Word}, {0, ln2Word + 1}, {0, ^uint64(0)}, {1, 0}, {43, 1 << 63}, {44, 0}, {200, 7}, {256, 0},
	} {
		x := newFloat().SetMantExp(newFloat().SetUint64(c.frac), -64)
		if c.frac == 0 {
			x = newFloat()
		}
		x.Add(x, newFloat().SetUint64(c.whole))
		want := newFloat().SetMantExp(expNeg(x), 63)
		d, _ := newFloat().Sub(newFloat().SetUint64(expNegWord(c.whole, c.frac)), want).Float64()
		if math.Abs(d) > 30 {
			t.Errorf("exp(-(%d + %d/2^64)) is off by %.0f units", c.whole, c.frac, d)
		}
	}
}

func TestExpNegAgainstKnownDigits(t *testing.T) {
	got := expNeg(newFloat().SetInt64(1)).Text('f', 60)
	if want := "0.367879441171442321595523770161460867445811131031767834507837"; got[:61] != want[:61] {
		t.Errorf("exp(-1) = %s, want %s", got, want)
	}
	if got, want := pi.Text('f', 60), "3.141592653589793238462643383279502884197169399375105820974945"; got[:61] != want[:61] {
		t.Errorf("pi = %s, want %s", got, want)
	}
}

func TestNewGaussianRefusesWidths(t *testing.T) {
	for _, w := range []float64{0, -4, 2.99, 65537, math.NaN(), math.Inf(1)} {
		if _, err := NewGaussian(w); err == nil {
			t.Errorf("width %v was accepted", w)
		}
	}
}

func BenchmarkGaussian(b *testing.B) {
	for _, width := range []float64{7.943, 15.886, 402.7} {
		g, _ := NewGaussian(width)
		dst, c := make([]int64, 1024), make([]Frac, 1024)
		s := source(4).Stream("bench")
		for i := range c {
			c[i] = Frac{s.Uint64(), s.Uint64()}
		}
		b.Run("", func(b *testing.B) {
			for range b.N {
				g.SampleAt(dst, c, s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/sample")
		})
	}
}
