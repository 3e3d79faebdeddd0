package sample

import (
	"math"
	"math/big"
	"math/bits"
	"testing"
)

// The exact tests: an oracle at 512 bits that shares no constant and no exponential with the sampler, and
// streams whose words are chosen.

const oraclePrecision = 512

func oracleFloat() *big.Float { return new(big.Float).SetPrec(oraclePrecision) }

// oraclePi is Machin's 16 arctan(1/5) - 4 arctan(1/239).
var oraclePi = func() *big.Float {
	arctan := func(inverse int64) *big.Int { // times 2^oraclePrecision
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

// oracleExpNeg is exp(-x) for 0 <= x < 1000, the inverse of a series of positive terms.
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

// oracleAccept is the probability with which a candidate must be accepted: the weight of its z over that of y.
func oracleAccept(g *Gaussian, v candidate) *big.Float {
	return oracleFloat().Quo(oracleWeight(g.width, g.value(v), v.c), oracleWeight(g.width, int64(g.k*v.y), Frac{}))
}

func exponentOf(x *big.Float) int {
	if x.Sign() == 0 {
		return math.MinInt32
	}
	return x.MantExp(nil)
}

// The whole law of the sampler, from its table and its acceptance thresholds, is within 2^-180 of D.
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
			t.Errorf("width %v: a table of %d entries", width, len(g.table))
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
			if want := 2 * int(g.k) * (len(g.table) + 1); seen != want {
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
			t.Fatalf("entry %d of the table is below the one before", y)
		}
		before = upTo
		for u := range g.k {
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
	for z := int64(-8 * g.width); z <= int64(8*g.width); z++ { // beyond are 2^-280
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
		last := uint64(len(g.table))
		for _, c := range append(testCentres, testCentres[2]) {
			for b := range uint64(2) {
				for _, y := range []uint64{0, 1, last} {
					f(g, candidate{y, 0, b, c.c})
					f(g, candidate{y, g.k - 1, b, c.c})
				}
			}
		}
		for range n {
			f(g, candidate{s.Uint64() % (last + 1), s.Uint64() % g.k, s.Uint64() & 1, Frac{s.Uint64(), s.Uint64()}})
		}
	}
}

func TestProbabilityIsWithinItsBound(t *testing.T) {
	worst := 0.0
	candidates(t, 300, func(g *Gaussian, v candidate) {
		exact := oracleAccept(g, v)
		d := oracleFloat().SetMantExp(exact, 63)
		off, _ := d.Sub(d, oracleFloat().SetUint64(g.probability(v))).Float64()
		worst = max(worst, math.Abs(off))
	})
	t.Logf("off by at most %.1f units of 2^-63", worst)
	if worst > 22 { // window is 128; 2^-58 would be 32
		t.Errorf("probability is off by %.1f units of 2^-63, the analysis says less than 22", worst)
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

// Every decision that the first comparison leaves open, and those at its edges, are those of all 255 bits.
func TestAcceptDecidesByAllBits(t *testing.T) {
	refined, decided := 0, 0
	candidates(t, 4, func(g *Gaussian, v candidate) {
		limit := g.threshold(v)
		p := int64(g.probability(v))
		try := func(first int64, rest *big.Int) {
			if first < 0 {
				return
			}
			low := words(rest, 3)
			s := scripted(uint64(first)<<1|uint64(first)&1, low[2], low[1], low[0])
			number := new(big.Int).Lsh(big.NewInt(first), 192)
			number.Or(number, rest)
			if got, want := g.accept(v, s), number.Cmp(limit) < 0; got != want {
				t.Fatalf("width %v, %v: %d and %x accepted: %v", g.width, v, first, rest, got)
			}
			if inside := first-p >= -window && first-p <= window; inside != (s.at == 32) || s.at != 8 && s.at != 32 {
				t.Fatalf("%d bytes decided %d beside %d", s.at, first, p)
			}
			if s.at == 32 {
				refined++
			} else {
				decided++
			}
		}
		all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 192), big.NewInt(1))
		for _, off := range []int64{-window - 1, -window, -30, -1, 0, 1, 30, window, window + 1} {
			if first := p + off; first <= math.MaxInt64-1 && (off <= 0 || first > 0) {
				try(first, new(big.Int))
				try(first, all)
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
		t.Errorf("%d refined and %d decided at once", refined, decided)
	}
}

func TestHalfReadsItsTable(t *testing.T) {
	g, err := NewGaussian(7.943)
	if err != nil {
		t.Fatal(err)
	}
	if y := g.half(scripted(0, 0, 0)); y != 0 {
		t.Errorf("0 gives %d", y)
	}
	if y := g.half(scripted(math.MaxUint64, math.MaxUint64, math.MaxUint64)); y != uint64(len(g.table)) {
		t.Errorf("the largest number gives %d of %d", y, len(g.table))
	}
	for i, e := range g.table {
		if y := g.half(scripted(e[0], e[1], e[2])); y != uint64(i+1) {
			t.Errorf("entry %d gives %d", i, y)
		}
		r0, c := bits.Sub64(e[0], 1, 0)
		r1, c := bits.Sub64(e[1], 0, c)
		if y := g.half(scripted(r0, r1, e[2]-c)); y != uint64(i) {
			t.Errorf("what is just below entry %d gives %d", i, y)
		}
	}
}

func TestExpNegWordAtItsEdges(t *testing.T) {
	for _, c := range []struct{ whole, frac uint64 }{
		{0, 0}, {0, 1}, {0, ln2Word - 1}, {0, ln2Word}, {0, ln2Word + 1}, {0, math.MaxUint64}, {1, 0}, {1, 0x62e42fefa39ef357}, {1, 0x62e42fefa39ef358},
		{31, math.MaxUint64}, {43, 1 << 63}, {44, 0}, {63, math.MaxUint64},
	} {
		x := oracleFloat().SetMantExp(oracleFloat().SetUint64(c.frac), -64)
		x.Add(x, oracleFloat().SetUint64(c.whole))
		d := oracleFloat().SetMantExp(oracleExpNeg(x), 63)
		if off, _ := d.Sub(d, oracleFloat().SetUint64(expNegWord(c.whole, c.frac))).Float64(); math.Abs(off) > 14 {
			t.Errorf("exp(-(%d + %d/2^64)) is off by %.0f units", c.whole, c.frac, off)
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
	// exp(-ln 2) = 1/2 with the words for ln 2 and its inverse
	half, _ := oracleExpNeg(oracleFloat().SetMantExp(oracleFloat().SetUint64(ln2Word), -64)).Float64()
	inverse := new(big.Int).Mul(new(big.Int).SetUint64(ln2Word), new(big.Int).SetUint64(log2eFloor))
	if half != 0.5 || inverse.BitLen() != 127 || inverse.Bit(126) != 1 || new(big.Int).Rsh(inverse, 65).BitLen() != 62 {
		t.Errorf("ln 2 and its inverse disagree: %v, %x", half, inverse)
	}
}
