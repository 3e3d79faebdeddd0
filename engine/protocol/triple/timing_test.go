package triple

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
)

// A statistical test that times do not depend on secrets, after Reparaz, Balasch and Verbauwhede,
// "Dude, is my code constant time?" (DATE 2017): a fixed secret and random ones are measured in
// random order, and Welch's t compares the two classes, over all measurements and over the fastest
// parts of them, as long ones are the machine's. It can find a dependence of whole operations on
// the classes that were chosen; it cannot show that there is none.

// leakage is the |t| above which the times differ for certain; chance gives 5 once in a million.
const leakage = 10

// timed is an operation on a secret of one of two classes. set puts a secret of the class where run
// will find it.
type timed struct {
	set func(class int)
	run func()
}

// slowest is the largest |t| over the parts of the measurements.
func slowest(times [2][]float64) float64 {
	all := slices.Sorted(slices.Values(slices.Concat(times[0], times[1])))
	worst := 0.0
	for _, part := range []float64{0.25, 0.5, 0.75, 0.9, 0.99, 1} {
		limit := all[int(part*float64(len(all)-1))]
		var m moments
		for class := range times {
			for _, x := range times[class] {
				if x <= limit {
					m.add(class, x)
				}
			}
		}
		worst = max(worst, math.Abs(m.t()))
	}
	return worst
}

// moments are those of two samples (Welford's method).
type moments struct{ n, mean, squares [2]float64 }

func (m *moments) add(class int, x float64) {
	m.n[class]++
	d := x - m.mean[class]
	m.mean[class] += d / m.n[class]
	m.squares[class] += d * (x - m.mean[class])
}

// t is Welch's statistic, infinite for samples that are constant and differ; 0 without samples.
func (m *moments) t() float64 {
	if m.n[0] < 2 || m.n[1] < 2 || m.mean[0] == m.mean[1] {
		return 0
	}
	v := m.squares[0]/(m.n[0]-1)/m.n[0] + m.squares[1]/(m.n[1]-1)/m.n[1]
	return (m.mean[0] - m.mean[1]) / math.Sqrt(v)
}

func (o timed) measure(n int) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var times [2][]float64
	for i := range n + n/10 {
		class := random.IntN(2)
		o.set(class)
		begun := time.Now()
		o.run()
		took := float64(time.Since(begun))
		if i >= n/10 { // caches are warm
			times[class] = append(times[class], took)
		}
	}
	return slowest(times)
}

// The statistic tells a shift that is there from none, and an outlier in one class does not hide
// it.
func TestTimingStatistic(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	draw := func(shift float64) (times [2][]float64) {
		for i := range 20000 {
			times[i%2] = append(times[i%2], 1000+100*random.NormFloat64()+shift*float64(i%2))
		}
		times[0][5] = 1e9
		return times
	}
	if got := slowest(draw(0)); got > leakage/2 {
		t.Errorf("without a shift: %.1f", got)
	}
	if got := slowest(draw(50)); got < leakage {
		t.Errorf("with a shift of half a deviation: %.1f", got)
	}
	var m moments
	for i, x := range []float64{1, 2, 3, 4, 2, 4, 6, 8} {
		m.add(i/4, x)
	}
	if got := m.t(); math.Abs(got+2.5/math.Sqrt(5.0/12+5.0/3)) > 1e-12 {
		t.Errorf("t is %v", got)
	}
}

// TestTiming measures operations on secrets against a comparison that does leak.
func TestTiming(t *testing.T) {
	var cases []longtest.Case
	for name, c := range map[string]struct {
		n    int
		make func(t *testing.T) timed
	}{
		"keys, lifted secret": {20000, timedLift}, "decryption share": {20000, timedShare},
		"comparison of field vectors": {200000, timedVectors}, "comparison of bytes": {200000, timedBytes},
	} {
		cases = append(cases, longtest.Case{Name: name, Run: func(t *testing.T) {
			o, worst := c.make(t), 0.0
			for range 3 { // a leak shows every time
				if worst = o.measure(c.n); worst < leakage {
					t.Logf("|t| is at most %.1f over %d measurements", worst, c.n)
					return
				}
			}
			t.Errorf("|t| is %.1f three times: the time depends on the secret", worst)
		}})
	}
	cases = append(cases, longtest.Case{Name: "a comparison that leaks", Run: func(t *testing.T) {
		kept, given, other := bytes.Repeat([]byte{1}, 1<<12), make([]byte, 1<<12), make([]byte, 1<<12)
		o := timed{
			func(class int) { copy(given, [][]byte{kept, other}[class]) },
			func() {
				for i := range kept { // stops at the first that differs
					if kept[i] != given[i] {
						break
					}
				}
			},
		}
		if worst := o.measure(20000); worst < leakage {
			t.Errorf("|t| is %.1f for a comparison that stops early: the test is blind here", worst)
		}
	}})
	slices.SortFunc(cases, func(a, b longtest.Case) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	longtest.Run(t, cases)
}

func timedScheme(t *testing.T) (*gbfv.Scheme, *params.Instance) {
	t.Helper()
	s := schemeOf(t, "insecure-8", "p128")
	i, err := params.Resolve(s.Set, "p128", params.Use{Parties: 2, Dim: 1, U: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s, i
}

// ternary returns secrets of all zeros, or of random values, with equally many of each class so
// that memory use is the same.
func ternary(n int) (pool [2][64][]int64) {
	for class := range pool {
		for i := range pool[class] {
			pool[class][i] = make([]int64, n)
			if class == 1 {
				sample.Ternary(pool[class][i], seed("timing", 0).Stream("secret", uint64(i)))
			}
		}
	}
	return pool
}

func timedLift(t *testing.T) timed {
	s, _ := timedScheme(t)
	pool, now, at := ternary(s.N()), make([]int64, s.N()), 0
	return timed{
		func(class int) { at++; copy(now, pool[class][at%64]) },
		func() { keygen.Lift(s, now) },
	}
}

func timedShare(t *testing.T) timed {
	s, i := timedScheme(t)
	keys, now, at := [2][64]ring.NTT{}, s.Q.NewNTT(), 0
	for class, list := range ternary(s.N()) {
		for k, v := range list {
			keys[class][k] = keygen.Lift(s, v)
		}
	}
	ct := &gbfv.Ciphertext{C0: s.Q.NewPoly(), C1: s.Q.NewPoly()}
	for k, residues := range ct.C1.C {
		for j := range residues {
			residues[j] = uint64(k+j) * 0x9e3779b97f4a7c15 % s.Q.Primes()[k]
		}
	}
	return timed{
		func(class int) {
			at++
			for k, residues := range keys[class][at%64].C {
				copy(now.C[k], residues)
			}
		},
		func() { ddec.ClientShare(s, i, ct, now, seed("flood", 0)) }, // the same flooding, as its sampler rejects
	}
}

// compared keeps comparisons whose result nobody wants from being left out.
var compared bool

func timedVectors(t *testing.T) timed {
	s, _ := timedScheme(t)
	f := s.Field
	kept, given := f.NewVec(256), f.NewVec(256)
	pool := [2]field.Vec{f.NewVec(256), f.NewVec(256)} // equal, and random
	for i, v := range []field.Vec{kept, pool[1]} {
		if err := f.Random(v, seed("compared", 0).Stream("vector", uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	copy(pool[0].W, kept.W)
	return timed{
		func(class int) { copy(given.W, pool[class].W) },
		func() { compared = f.EqualVec(kept, given) },
	}
}

func timedBytes(*testing.T) timed {
	kept, given := bytes.Repeat([]byte{1}, 1<<10), make([]byte, 1<<10)
	held, other := secret.NewBytes(bytes.Clone(kept)), make([]byte, 1<<10)
	return timed{
		func(class int) { copy(given, [][]byte{kept, other}[class]) },
		func() { compared = held.Equal(given) },
	}
}
