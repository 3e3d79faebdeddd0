package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// testGaussian returns the constants for width w with 2^log <= w/4, or log 0. Its table need not
// match the width.
func testGaussian(r *rand.Rand, width float64, entries int) *Gaussian {
	g := &Gaussian{}
	for width/4 >= float64(uint64(2)<<g.Log) {
		g.Log++
	}
	ratio := new(big.Float).SetPrec(300).SetFloat64(math.Pi / (width * width))
	mantissa := new(big.Float)
	g.Shift = uint64(-ratio.MantExp(mantissa))
	scaled, _ := mantissa.SetMantExp(mantissa, 104).Int(nil)
	g.Ratio[0] = new(big.Int).Rsh(scaled, 52).Uint64()
	g.Ratio[1] = new(big.Int).And(scaled, big.NewInt(lowest52)).Uint64()
	for range entries {
		g.Table = append(g.Table, r.Uint64())
	}
	slices.Sort(g.Table)
	return g
}

// exactProbability returns exp(-x), exact to about 2^-60.
func (g *Gaussian) exactProbability(y, v, hi, lo uint64) float64 {
	f := func(x uint64) *big.Float { return new(big.Float).SetPrec(300).SetUint64(x) }
	t := f(hi)
	t.SetMantExp(t, 64).Add(t, f(lo)).SetMantExp(t, -128)
	if v&1 == 1 {
		t.Sub(f(1), t)
	}
	u := v >> 1 & (1<<g.Log - 1)
	z0 := y<<g.Log + u
	x := f(2 * z0)
	x.Add(x, t).Mul(x, t)
	x.Add(x, f(u*(u+2*(y<<g.Log))))
	ratio := f(g.Ratio[0])
	ratio.SetMantExp(ratio, 52).Add(ratio, f(g.Ratio[1])).SetMantExp(ratio, -104-int(g.Shift))
	e, _ := x.Mul(x, ratio).Float64()
	return math.Exp(-e)
}

// orEdge returns a random word; one in four is the smallest word and one in four the largest.
func orEdge(r *rand.Rand) uint64 {
	return []uint64{0, math.MaxUint64, r.Uint64(), r.Uint64()}[r.IntN(4)]
}

var gaussianWidths = []float64{3, 3.01, 7.9, 8, 15.886, 402.7, 4000, 65535.9, 65536}

// The probability of a candidate is within its error bound, and its value is exact, at the ends of
// all ranges.
func TestGaussianProbability(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 71))
	edges := []uint64{0, 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 1, 1 << 12, 1<<12 - 1}
	for _, width := range gaussianWidths {
		g := testGaussian(r, width, 1)
		most := uint64(6.65*width) >> g.Log
		worst := 0.0
		for i := range 4000 {
			y, v, hi, lo := r.Uint64N(most+1), r.Uint64(), r.Uint64(), r.Uint64()
			if i%2 == 0 {
				y, hi, lo = []uint64{0, most, r.Uint64N(most + 1)}[i/2%3], edges[r.IntN(len(edges))], edges[r.IntN(len(edges))]
				v = []uint64{0, 1, math.MaxUint64, math.MaxUint64 - 1}[r.IntN(4)]
			}
			p, z := g.Probability(y, v, hi, lo)
			z0 := int64(y<<g.Log + v>>1&(1<<g.Log-1))
			if want := []int64{-z0, 1 + z0}[v&1]; z != want {
				t.Fatalf("width %v: value %d, want %d", width, z, want)
			}
			// a double loses 2^-53 of a number of at most 1, twice
			d := math.Abs(float64(p) - g.exactProbability(y, v, hi, lo)*(1<<expUnits))
			if worst = max(worst, d); d > 20 {
				t.Fatalf("width %v, y %d, v %#x, centre %#x %#x: %v units off", width, y, v, hi, lo, d)
			}
		}
		t.Logf("width %v: at most %.1f units of 2^-51 off", width, worst)
	}
}

// A verdict counts the entries of the table below a word, leaves equality with an entry open, and
// compares 51 bits.
func TestGaussianVerdict(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(72, 72))
		for _, width := range gaussianWidths {
			for _, entries := range []int{1, 2, 27, 60} {
				g := testGaussian(r, width, entries)
				for y := 0; y <= entries && float64(y<<g.Log) < 6.65*width; y++ {
					var h, v, hi, lo, words []uint64
					var want []uint8
					add := func(word uint64, d int64, verdict uint8) {
						h, v = append(h, word), append(v, r.Uint64())
						hi, lo = append(hi, orEdge(r)), append(lo, orEdge(r))
						last := len(h) - 1
						p, _ := g.Probability(uint64(y), v[last], hi[last], lo[last])
						if int64(p)+d < 0 || int64(p)+d >= 1<<expUnits {
							d, verdict = -int64(p>>expUnits), Open // probability 1 does not fit in 51 bits
						}
						words = append(words, (p+uint64(d))<<sampleBits|r.Uint64()>>(64-sampleBits))
						want = append(want, verdict)
					}
					from, to := uint64(0), uint64(math.MaxUint64)
					if y > 0 {
						from = g.Table[y-1] + 1
					}
					if y < entries {
						to = g.Table[y] - 1
						add(g.Table[y], -1000, Open)
						add(g.Table[y], 1000, Open)
					}
					for _, word := range []uint64{from, to, from + (to-from)/2} {
						for _, c := range []struct {
							d       int64
							verdict uint8
						}{{-33, Accepted}, {-32, Open}, {0, Open}, {32, Open}, {33, Rejected}, {-1 << 40, Accepted}, {1 << 40, Rejected}} {
							add(word, c.d, c.verdict)
						}
					}
					z, got := make([]int64, len(h)), make([]uint8, len(h))
					g.Judge(z, got, h, v, words, hi, lo)
					for i := range got {
						_, value := g.Probability(uint64(y), v[i], hi[i], lo[i])
						if got[i] != want[i] || want[i] != Open && z[i] != value {
							t.Fatalf("width %v, y %d: verdict %d on %d, want %d on %d", width, y, got[i], z[i], want[i], value)
						}
					}
				}
			}
		}
	})
}

// All paths return the same verdicts at every length and write nothing beyond it.
func TestGaussianPathsAgree(t *testing.T) {
	var want []byte
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(73, 73))
		var got []byte
		for _, width := range gaussianWidths {
			g := testGaussian(r, width, 27)
			for n := range 40 {
				words := make([][]uint64, 5)
				for k := range words {
					for range n + 3 {
						words[k] = append(words[k], orEdge(r))
					}
				}
				z, verdict := slices.Repeat([]int64{99}, n+3), slices.Repeat([]uint8{99}, n+3)
				g.Judge(z[:n], verdict[:n], words[0], words[1], words[2], words[3], words[4])
				got = fmt.Append(got, z, verdict)
				if slices.ContainsFunc(z[n:], func(x int64) bool { return x != 99 }) || slices.ContainsFunc(verdict[n:], func(x uint8) bool { return x != 99 }) {
					t.Fatalf("%d candidates: words beyond them were written", n)
				}
			}
		}
		if want == nil {
			want = got // from the plain path
		}
		if !bytes.Equal(got, want) {
			t.Error("the verdicts differ from plain Go")
		}
	})
}

// The exponential is within its error bound on both sides of the multiples of ln 2, and at the
// ends.
func TestExpNegAtItsEdges(t *testing.T) {
	list := []uint64{0, 1, 1<<52 - 1, 1 << 52, 32<<52 - 1}
	for n := range uint64(47) {
		edge := uint64(float64(n) * math.Ln2 * (1 << 52))
		for d := range uint64(5) {
			if edge+d >= 2 && edge+d < 32<<52 {
				list = append(list, edge+d-2)
			}
		}
	}
	for _, x := range list {
		if d := math.Abs(float64(expNeg52(x)) - math.Exp(-float64(x)/(1<<52))*(1<<expUnits)); d > 10 {
			t.Errorf("exp(-%#x/2^52) is off by %.0f units", x, d)
		}
	}
}

func TestExpFactors(t *testing.T) {
	f := big.NewInt(1)
	for i, c := range expFactors {
		if i > 0 {
			f.Mul(f, big.NewInt(int64(i)))
		}
		if want := new(big.Int).Quo(new(big.Int).Lsh(big.NewInt(1), expUnits), f); want.Uint64() != c {
			t.Errorf("2^51/%d! is stored as %d, want %v", i, c, want)
		}
	}
	for name, d := range map[string]float64{"2^57 ln 2": math.Ln2*(1<<57) - ln2By57, "2^26/ln 2": math.Log2E*(1<<26) - log2eBy26} {
		if d < 0 || d >= 1 { // exact until it is a double
			t.Errorf("%s is stored %v too small", name, d)
		}
	}
}
