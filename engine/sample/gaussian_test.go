package sample

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The statistical tests compare draws with the exact probabilities. Doubles have 15 digits, far
// more precision than a million draws can resolve.

// law is the discrete Gaussian with a width and a centre, tabulated on an interval that omits less
// than 2^-150.
type law struct {
	from        int64
	probability []float64
}

func newLaw(width, centre float64) law {
	span := int64(6*width) + 2
	l := law{from: -span}
	total := 0.0
	for z := -span; z <= span; z++ {
		d := (float64(z) - centre) / width
		l.probability = append(l.probability, math.Exp(-math.Pi*d*d))
		total += l.probability[len(l.probability)-1]
	}
	for i := range l.probability {
		l.probability[i] /= total
	}
	return l
}

// share returns the probability of [a, b].
func (l law) share(a, b float64) (p float64) {
	for i, x := range l.probability {
		if z := float64(l.from + int64(i)); a <= z && z <= b {
			p += x
		}
	}
	return p
}

// moments returns the mean and the variance.
func (l law) moments() (mean, variance float64) {
	for i, p := range l.probability {
		mean += p * float64(l.from+int64(i))
	}
	for i, p := range l.probability {
		d := float64(l.from+int64(i)) - mean
		variance += p * d * d
	}
	return mean, variance
}

// fits compares values with l by chi-square on at most 48 cells of neighbouring values: few enough
// to detect a width that is 1 % off.
func (l law) fits(values []int64) (ok bool, statistic, low, high float64) {
	n := float64(len(values))
	cellOf := make([]int, len(l.probability))
	expected := []float64{0}
	for i, p := range l.probability {
		last := len(expected) - 1
		if expected[last] >= n/48 {
			expected = append(expected, 0)
			last++
		}
		cellOf[i] = last
		expected[last] += n * p
	}
	for expected[len(expected)-1] < 10 { // merge the end of the tail into the cell before
		last := len(expected) - 1
		expected[last-1] += expected[last]
		expected = expected[:last]
	}
	count := make([]int, len(expected))
	for _, z := range values {
		count[min(cellOf[min(max(z-l.from, 0), int64(len(cellOf)-1))], len(count)-1)]++
	}
	statistic, low, high = chiSquare(count, expected)
	return low <= statistic && statistic <= high, statistic, low, high
}

var testCentres = []struct {
	name  string
	c     Frac
	value float64
}{
	{"0", Frac{}, 0},
	{"2^-128", Frac{0, 1}, 0},
	{"1/3", Frac{0x5555555555555555, 0x5555555555555555}, 1.0 / 3},
	{"1/2", Frac{1 << 63, 0}, 0.5},
	{"7/8 and some", Frac{0xe000000000000000, 12345}, 0.875},
	{"1-2^-64", Frac{math.MaxUint64, 0}, 1},
	{"1-2^-128", Frac{math.MaxUint64, math.MaxUint64}, 1},
}

func draw(t *testing.T, width float64, c Frac, n int, s *Stream) []int64 {
	t.Helper()
	g, err := NewGaussian(width)
	if err != nil {
		t.Fatal(err)
	}
	values, centres := make([]int64, n), slices.Repeat([]Frac{c}, n)
	g.SampleAt(values, centres, s)
	return values
}

func TestGaussianFitsItsLaw(t *testing.T) {
	const n = 1_000_000 // fewer samples would not reveal a width that is 1 % off
	for _, width := range []float64{3, 4.5, 7.943, 15.886, 33.3, 402.7, 1000} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			for i, c := range testCentres {
				values := draw(t, width, c.c, n, source(1).Stream("fit", math.Float64bits(width), uint64(i)))
				right := newLaw(width, c.value)
				if ok, s, low, high := right.fits(values); !ok {
					t.Errorf("centre %s: chi-square is %.1f, want %.1f to %.1f", c.name, s, low, high)
				}
				checkMoments(t, c.name, right, values)
				checkTails(t, c.name, right, values)
				// The same test rejects a width that is 1 % off and a centre that is off by 1 % of
				// a width.
				for what, wrong := range map[string]law{
					"a width 1 % more":     newLaw(width*1.01, c.value),
					"a width 1 % less":     newLaw(width/1.01, c.value),
					"a centre on the left": newLaw(width, c.value-width/100), "a centre on the right": newLaw(width, c.value+width/100),
				} {
					if ok, s, _, high := wrong.fits(values); ok {
						t.Errorf("centre %s: %s passes with %.1f, within %.1f", c.name, what, s, high)
					}
				}
			}
		})
	}
}

// checkMoments compares mean, variance and the covariance of neighbours within five standard
// deviations.
func checkMoments(t *testing.T, name string, l law, values []int64) {
	t.Helper()
	n := float64(len(values))
	mean, variance := l.moments()
	var sum, squares, products float64
	for i, z := range values {
		d := float64(z) - mean
		sum += d
		squares += d * d
		if i > 0 {
			products += d * (float64(values[i-1]) - mean)
		}
	}
	if d := math.Abs(sum / n); d > 5*math.Sqrt(variance/n) {
		t.Errorf("centre %s: the mean is %g off", name, d)
	}
	if d := math.Abs(squares/n/variance - 1); d > 5*math.Sqrt(2/n) {
		t.Errorf("centre %s: the variance is off by a factor of 1 %+g", name, d)
	}
	if d := math.Abs(products / n / variance); d > 5/math.Sqrt(n) {
		t.Errorf("centre %s: neighbouring values have correlation %g", name, d)
	}
}

// checkTails compares the number of values beyond 2 to 4.5 standard deviations on each side with
// Bernstein's bound.
func checkTails(t *testing.T, name string, l law, values []int64) {
	t.Helper()
	mean, variance := l.moments()
	for _, far := range []float64{2, 2.5, 3, 3.5, 4, 4.5} {
		edge := far * math.Sqrt(variance)
		left, right := 0, 0
		for _, z := range values {
			if float64(z) <= mean-edge {
				left++
			}
			if float64(z) >= mean+edge {
				right++
			}
		}
		n := float64(len(values))
		for side, c := range map[string][2]float64{
			"left":  {float64(left), n * l.share(math.Inf(-1), mean-edge)},
			"right": {float64(right), n * l.share(mean+edge, math.Inf(1))},
		} {
			if d := math.Abs(c[0] - c[1]); d > math.Sqrt(2*c[1]*doubt)+doubt/3.0 {
				t.Errorf("centre %s: %v values beyond %v deviations on the %s, want about %.1f", name, c[0], far, side, c[1])
			}
		}
	}
}

func TestSampleIsSampleAtZero(t *testing.T) {
	g, err := NewGaussian(15.886)
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]int64, 1000), make([]int64, 1000)
	g.Sample(a, source(5).Stream("x"))
	g.SampleAt(b, make([]Frac, 1000), source(5).Stream("x"))
	if !slices.Equal(a, b) {
		t.Error("Sample differs from SampleAt with centre 0")
	}
	checkPanics(t, "fewer centres than values", func() { g.SampleAt(a, make([]Frac, 999), source(5).Stream("x")) })
}

func TestCentresAreUsedOneByOne(t *testing.T) {
	g, err := NewGaussian(7.943)
	if err != nil {
		t.Fatal(err)
	}
	const n = 200_000
	values, centres := make([]int64, 3*n), make([]Frac, 3*n)
	for i := range centres {
		centres[i] = []Frac{{}, {1 << 62, 0}, {3 << 62, 0}}[i%3]
	}
	g.SampleAt(values, centres, source(6).Stream("x"))
	for r, centre := range []float64{0, 0.25, 0.75} {
		var own []int64
		for i := r; i < len(values); i += 3 {
			own = append(own, values[i])
		}
		if ok, s, low, high := newLaw(7.943, centre).fits(own); !ok {
			t.Errorf("centre %v: chi-square is %.1f, want %.1f to %.1f", centre, s, low, high)
		}
	}
}

func TestSamplingDoesNotAllocate(t *testing.T) {
	g, err := NewGaussian(7.943)
	if err != nil {
		t.Fatal(err)
	}
	dst, centres, s := make([]int64, 1000), make([]Frac, 1000), source(4).Stream("x")
	if n := testing.AllocsPerRun(10, func() { g.SampleAt(dst, centres, s) }); n != 0 {
		t.Errorf("%v allocations in 1000 samples", n)
	}
}

func TestNewGaussianRefusesWidths(t *testing.T) {
	for _, w := range []float64{0, -4, 2.99, 65537, math.NaN(), math.Inf(1)} {
		if _, err := NewGaussian(w); err == nil {
			t.Errorf("width %v was accepted", w)
		}
	}
	for _, w := range []float64{minWidth, maxWidth} {
		if g, err := NewGaussian(w); err != nil || g.Width() != w {
			t.Errorf("width %v: %v", w, err)
		}
	}
}

func BenchmarkGaussian(b *testing.B) {
	for _, width := range []float64{7.943, 15.886, 402.7} {
		for _, at := range []string{"zero", "fraction"} {
			b.Run(fmt.Sprint(width, "/", at), func(b *testing.B) {
				g, err := NewGaussian(width)
				if err != nil {
					b.Fatal(err)
				}
				dst, centres, s := make([]int64, 1024), make([]Frac, 1024), source(4).Stream("bench")
				for i := range centres {
					if at == "fraction" {
						centres[i] = Frac{s.Uint64(), s.Uint64()}
					}
				}
				for b.Loop() {
					g.SampleAt(dst, centres, s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/sample")
			})
		}
	}
}
