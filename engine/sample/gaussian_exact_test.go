package sample

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// The exact tests use an oracle at 512 bits that shares no constant and no exponential with the
// sampler, and streams of chosen words.

const oraclePrecision = 512

func oracleFloat() *big.Float { return new(big.Float).SetPrec(oraclePrecision) }

// oraclePi returns Machin's 16 arctan(1/5) - 4 arctan(1/239).
var oraclePi = func() *big.Float {
	arctan := func(inverse int64) *big.Int { // scaled by 2^oraclePrecision
		term := new(big.Int).Lsh(big.NewInt(1), oraclePrecision)
		term.Quo(term, big.NewInt(inverse))
		sum := new(big.Int)
		for i := int64(1); term.Sign() != 0; i += 2 {
			part := new(big.Int).Quo(term, big.NewInt(i))
			if i%4 == 3 {
				part.Neg(part)
			}
			sum.Add(sum, part)
			term.Quo(term, big.NewInt(inverse*inverse))
		}
		return sum
	}
	p := new(big.Int).Mul(big.NewInt(16), arctan(5))
	p.Sub(p, new(big.Int).Mul(big.NewInt(4), arctan(239)))
	return oracleFloat().SetMantExp(oracleFloat().SetInt(p), -oraclePrecision)
}()

// oracleExpNeg returns exp(-x) for 0 <= x < 1000, as the inverse of a series of positive terms.
func oracleExpNeg(x *big.Float) *big.Float {
	sum, term := oracleFloat().SetInt64(1), oracleFloat().SetInt64(1)
	for i := int64(1); term.Sign() != 0 && term.MantExp(nil) > -oraclePrecision; i++ {
		term.Mul(term, x)
		term.Quo(term, oracleFloat().SetInt64(i))
		sum.Add(sum, term)
	}
	return sum.Quo(oracleFloat().SetInt64(1), sum)
}

// oracleWeight is exp(-pi (z-c)^2/width^2).
func oracleWeight(width float64, z int64, c Frac) *big.Float {
	d := oracleFloat().SetMantExp(oracleFloat().SetInt(fracInt(c)), -128)
	d.Sub(oracleFloat().SetInt64(z), d)
	d.Quo(d, oracleFloat().SetFloat64(width))
	return oracleExpNeg(d.Mul(d, d).Mul(d, oraclePi))
}

// oracleAccept returns the required acceptance probability of a candidate: the weight of its z
// divided by that of y.
func oracleAccept(g *Gaussian, v candidate) *big.Float {
	return oracleFloat().Quo(oracleWeight(g.width, g.value(v), v.c), oracleWeight(g.width, int64(v.y<<g.kernel.Log), Frac{}))
}

func exponentOf(x *big.Float) int {
	if x.Sign() == 0 {
		return math.MinInt32
	}
	return x.MantExp(nil)
}

// The exact distribution of the sampler, derived from its table and its acceptance thresholds, is
// within 2^-180 of D.
func TestExactLaw(t *testing.T) {
	widths := []float64{3, 3.999, 4, 7.943, 15.886, 33.3}
	if !testing.Short() {
		widths = append(widths, 402.7)
	}
	for _, width := range widths {
		g, err := NewGaussian(width)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.table) > 60 {
			t.Errorf("width %v: the table has %d entries", width, len(g.table))
		}
		centres := testCentres
		if width > 30 {
			centres = centres[2:3]
		}
		for _, c := range centres {
			distance, seen := lawDistance(t, g, c.c)
			if e := exponentOf(distance); e > -180 {
				t.Errorf("width %v, centre %s: statistical distance 2^%d", width, c.name, e)
			}
			if want := 2 << g.kernel.Log * (len(g.table) + 1); seen != want {
				t.Errorf("width %v: %d values of %d candidates", width, seen, want)
			}
		}
	}
}

func lawDistance(t *testing.T, g *Gaussian, c Frac) (*big.Float, int) {
	t.Helper()
	drawn, exact := map[int64]*big.Float{}, map[int64]*big.Float{}
	drawnTotal, exactTotal := oracleFloat(), oracleFloat()
	before := new(big.Int)
	for y := range len(g.table) + 1 {
		upTo := new(big.Int).Lsh(big.NewInt(1), 192)
		if y < len(g.table) {
			upTo.SetInt64(0)
			for i := 2; i >= 0; i-- {
				upTo.Lsh(upTo, 64).Or(upTo, new(big.Int).SetUint64(g.table[y][i]))
			}
		}
		share := new(big.Int).Sub(upTo, before)
		if share.Sign() < 0 {
			t.Fatalf("entry %d of the table is below its predecessor", y)
		}
		before = upTo
		for u := range uint64(1) << g.kernel.Log {
			for b := range uint64(2) {
				v := candidate{y: uint64(y), u: u, b: b, c: c}
				z := g.value(v)
				if drawn[z] != nil || math.Abs(float64(z)) > 7*g.width {
					t.Fatalf("value %d has two candidates, or is too large", z)
				}
				drawn[z] = oracleFloat().SetInt(new(big.Int).Mul(share, g.threshold(v)))
				drawnTotal.Add(drawnTotal, drawn[z])
			}
		}
	}
	for z := int64(-8 * g.width); z <= int64(8*g.width); z++ { // the weight beyond is 2^-280
		exact[z] = oracleWeight(g.width, z, c)
		exactTotal.Add(exactTotal, exact[z])
	}
	distance := oracleFloat()
	for z := range exact {
		d := oracleFloat()
		if drawn[z] != nil {
			d.Quo(drawn[z], drawnTotal)
		}
		d.Sub(d, oracleFloat().Quo(exact[z], exactTotal))
		distance.Add(distance, d.Abs(d))
	}
	return distance, len(drawn)
}

// candidates calls f with edge and random candidates of several widths.
func candidates(t *testing.T, n int, f func(g *Gaussian, v candidate)) {
	t.Helper()
	s := source(2).Stream("candidates")
	for _, width := range []float64{3, 4, 7.943, 15.886, 100.25, 402.7, 5000, maxWidth} {
		g, err := NewGaussian(width)
		if err != nil {
			t.Fatal(err)
		}
		last, k := uint64(len(g.table)), uint64(1)<<g.kernel.Log
		for _, c := range append(testCentres, testCentres[2]) {
			for b := range uint64(2) {
				for _, y := range []uint64{0, 1, last} {
					f(g, candidate{y, 0, b, c.c})
					f(g, candidate{y, k - 1, b, c.c})
				}
			}
		}
		for range n {
			f(g, candidate{s.Uint64() % (last + 1), s.Uint64() % k, s.Uint64() & 1, Frac{s.Uint64(), s.Uint64()}})
		}
	}
}

func TestProbabilityIsWithinItsBound(t *testing.T) {
	worst := 0.0
	candidates(t, 300, func(g *Gaussian, v candidate) {
		exact := oracleAccept(g, v)
		d := oracleFloat().SetMantExp(exact, 51)
		p, _ := g.kernel.Probability(v.y, v.word(), v.c.Hi, v.c.Lo)
		off, _ := d.Sub(d, oracleFloat().SetUint64(p)).Float64()
		worst = max(worst, math.Abs(off))
	})
	t.Logf("off by at most %.1f units of 2^-51", worst)
	if worst >= 19 { // numbers within 32 are compared exactly
		t.Errorf("probability is off by %.1f units of 2^-51; the analysis allows less than 19", worst)
	}
}

func TestThresholdIsExact(t *testing.T) {
	worst := math.MinInt32
	candidates(t, 40, func(g *Gaussian, v candidate) {
		d := oracleFloat().SetMantExp(oracleFloat().SetInt(g.threshold(v)), -255)
		worst = max(worst, exponentOf(d.Sub(d, oracleAccept(g, v))))
	})
	t.Logf("off by less than 2^%d", worst)
	if worst > -254 {
		t.Errorf("threshold is off by 2^%d", worst)
	}
}

// The decisions that the first comparison leaves open, and those at its edges, agree with a
// comparison of all 255 bits.
func TestResolveDecidesByAllBits(t *testing.T) {
	refined, decided := 0, 0
	candidates(t, 4, func(g *Gaussian, v candidate) {
		limit := g.threshold(v)
		p, z := g.kernel.Probability(v.y, v.word(), v.c.Hi, v.c.Lo)
		h := uint64(0) // between two entries of the table
		if v.y > 0 {
			h = g.table[v.y-1][2] + 1
		}
		if v.y > 0 && h == 0 || v.y < uint64(len(g.table)) && h >= g.table[v.y][2] {
			return // no single word decides here
		}
		try := func(first int64, rest *big.Int) {
			if first < 0 {
				return
			}
			low := words(rest, 3)
			s := scripted(low[2], low[1], low[0])
			number := new(big.Int).Lsh(big.NewInt(first), 192)
			number.Or(number, rest)
			value, verdict := g.resolve([3]uint64{h, v.word(), uint64(first)<<1 | uint64(first)&1}, v.c, s)
			if got, want := verdict == kernel.Accepted, number.Cmp(limit) < 0; got != want || value != z {
				t.Fatalf("width %v, %v: %d and %x are accepted: %v", g.width, v, first, rest, got)
			}
			off := first>>12 - int64(p)
			if inside := off >= -32 && off <= 32; inside != (s.at == 24) || s.at != 0 && s.at != 24 {
				t.Fatalf("%d bytes were drawn to decide %d against %d", s.at, first, p)
			}
			if s.at == 24 {
				refined++
			} else {
				decided++
			}
		}
		all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 192), big.NewInt(1))
		for _, off := range []int64{-33, -32, -18, -1, 0, 1, 18, 32, 33} {
			if first := (int64(p) + off) << 12; int64(p)+off < 1<<51 {
				try(first, new(big.Int))
				try(first|0xfff, all)
			}
		}
		for _, off := range []int64{-1, 0, 1} { // at the limit itself
			edge := new(big.Int).Add(limit, big.NewInt(off))
			if edge.Sign() >= 0 && edge.BitLen() <= 255 {
				try(new(big.Int).Rsh(edge, 192).Int64(), new(big.Int).And(edge, all))
			}
		}
	})
	if refined < 1000 || decided < 100 {
		t.Errorf("%d candidates were refined and %d decided at once", refined, decided)
	}
}

// The position in the table is that of a 192-bit number. Its lower bits are drawn if the upper word
// does not decide.
func TestHalfReadsItsTable(t *testing.T) {
	g, err := NewGaussian(7.943)
	if err != nil {
		t.Fatal(err)
	}
	check := func(h, middle, lower, want uint64, drawn int) {
		t.Helper()
		if s := scripted(lower, middle); g.half(h, s) != want || s.at != drawn {
			t.Errorf("%#x %#x %#x: want %d with %d more bytes, read %d", h, middle, lower, want, drawn, s.at)
		}
	}
	check(0, 0, 0, 0, 0)
	check(math.MaxUint64, math.MaxUint64, math.MaxUint64, uint64(len(g.table)), 16)
	for i, e := range g.table {
		if i > 0 && g.table[i-1][2] == e[2] || i+1 < len(g.table) && g.table[i+1][2] == e[2] {
			continue // the last entries share their upper word
		}
		check(e[2], e[1], e[0], uint64(i+1), 16)
		r0, c := bits.Sub64(e[0], 1, 0)
		r1, c := bits.Sub64(e[1], 0, c)
		if c == 0 {
			check(e[2], r1, r0, uint64(i), 16)
		}
		if e[2] > 0 && (i == 0 || g.table[i-1][2] < e[2]-1) {
			check(e[2]-1, math.MaxUint64, math.MaxUint64, uint64(i), 0)
		}
	}
}

// oneByOne returns the samples of a Gaussian for the given centres when candidates are judged one
// by one.
func oneByOne(g *Gaussian, centres []Frac, s *Stream) []int64 {
	values := make([]int64, len(centres))
	for start := 0; start < len(centres); start += batch {
		var wanted []int
		for i := start; i < min(start+batch, len(centres)); i++ {
			wanted = append(wanted, i)
		}
		for len(wanted) > 0 {
			n := len(wanted)
			w := make([]uint64, 3*n)
			for k := range w {
				w[k] = s.Uint64()
			}
			var again []int
			for i, at := range wanted {
				z, verdict := g.resolve([3]uint64{w[i], w[n+i], w[2*n+i]}, centres[at], s)
				if values[at] = z; verdict != kernel.Accepted {
					again = append(again, at)
				}
			}
			wanted = again
		}
	}
	return values
}

func randomCentres(n int) []Frac {
	centres, s := make([]Frac, n), source(8).Stream("centres")
	for i := range centres {
		centres[i] = Frac{s.Uint64(), s.Uint64()}
	}
	return centres
}

// A rejected value is drawn again with new words and keeps its centre.
func TestRoundsJudgeOneByOne(t *testing.T) {
	for _, width := range []float64{3, 15.886, 402.7} {
		g, err := NewGaussian(width)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 7, 8, 100, batch, batch + 1, 3*batch - 5} {
			centres, got := randomCentres(n), make([]int64, n)
			g.SampleAt(got, centres, source(8).Stream("x"))
			if !slices.Equal(got, oneByOne(g, centres, source(8).Stream("x"))) {
				t.Errorf("width %v: %d values differ from sampling one by one", width, n)
			}
		}
	}
}

// Random words nearly never produce candidates that the kernel leaves open. They are resolved with
// the candidate's own words and centre.
func TestOpenCandidatesAreResolved(t *testing.T) {
	for _, width := range []float64{3, 15.886, 402.7} {
		g, err := NewGaussian(width)
		if err != nil {
			t.Fatal(err)
		}
		const n = 100
		centres, s := randomCentres(n), source(9).Stream("words")
		script, open := make([]uint64, 3*n), 0
		s.words(script)
		for i, c := range centres {
			h, v, r := &script[i], script[n+i], &script[2*n+i]
			switch i % 3 {
			case 0:
				*h = g.table[i/3%6][2]
				open++
			case 1:
				y := g.half(*h, nil)
				p, _ := g.kernel.Probability(y, v, c.Hi, c.Lo)
				if p += uint64(i % 5 * 8); p>>51 == 0 {
					*r = p<<13 | *r>>51
					open++
				}
			}
		}
		got := make([]int64, n)
		g.SampleAt(got, centres, scripted(script...))
		if want := oneByOne(g, centres, scripted(script...)); !slices.Equal(got, want) {
			t.Errorf("width %v: %v, one by one %v", width, got, want)
		}
		if open < n/2 {
			t.Errorf("width %v: %d open candidates", width, open)
		}
	}
}

// The kernel holds the upper words of the table, and pi/w^2 to 104 bits, rounded down.
func TestKernelHasItsConstants(t *testing.T) {
	for _, width := range []float64{3, 3.999, 4, 7.943, 15.886, 402.7, 5000.3, maxWidth} {
		g, err := NewGaussian(width)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(g.table, g.kernel.Table, func(e [3]uint64, upper uint64) bool { return e[2] == upper }) {
			t.Errorf("width %v: the table of the kernel differs", width)
		}
		w := oracleFloat().SetFloat64(width)
		want := oracleFloat().Quo(oraclePi, w.Mul(w, w))
		scaled, _ := want.SetMantExp(want, 104+int(g.kernel.Shift)).Int(nil)
		if r := words(scaled, 2); g.kernel.Ratio != [2]uint64{r[1]<<12 | r[0]>>52, r[0] & (1<<52 - 1)} || g.kernel.Ratio[0]>>51 != 1 {
			t.Errorf("width %v: pi/w^2 is stored as %#x/2^%d", width, g.kernel.Ratio, g.kernel.Shift)
		}
	}
}

func TestConstants(t *testing.T) {
	if d := oracleFloat().Sub(oraclePi, pi); exponentOf(d) > -317 {
		t.Errorf("pi is off by 2^%d", exponentOf(d))
	}
	if got, want := oraclePi.Text('f', 60), "3.141592653589793238462643383279502884197169399375105820974945"; got[:61] != want[:61] {
		t.Errorf("the oracle's pi is %s, want %s", got, want)
	}
	got := oracleExpNeg(oracleFloat().SetInt64(1)).Text('f', 60)
	if want := "0.367879441171442321595523770161460867445811131031767834507837"; got[:61] != want[:61] {
		t.Errorf("the oracle's exp(-1) is %s, want %s", got, want)
	}
}
