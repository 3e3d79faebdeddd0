package linear

import (
	"math"
	"testing"
)

// chernoff returns -log2 of the bound on P(|r_1 s| > x) that rounding derives, for the moment
// generating function of one product r s computed by numerical integration over r in [-1/2, 1/2].
func (s *Set) chernoff(x float64) float64 {
	v := float64(s.N()) * s.secretVariance() / 12
	t := x / v
	const steps = 1 << 14
	sum := 0.0
	for i := range steps {
		r := (float64(i)+0.5)/steps - 0.5
		if s.HasProof() {
			sum += math.Exp(t * t * r * r * s.secretVariance() / 2)
		} else {
			sum += 1.0/3 + 2.0/3*math.Cosh(t*r)
		}
	}
	return (t*x - float64(s.N())*math.Log(sum/steps) - math.Ln2) / math.Ln2
}

// The bound on rounding errors fails for a coefficient with at most 2^-128 in every set that ships,
// and exceeds the least such bound by only a few percent.
func TestRoundingIsATailOf128Bits(t *testing.T) {
	for _, s := range Sets() {
		if s.Insecure {
			continue
		}
		x := float64(s.rounding()) - 2.5
		if bits := s.chernoff(x); bits < 128 {
			t.Errorf("%s: rounding errors exceed %d with 2^-%.1f", s.Name, s.rounding(), bits)
		}
		if bits := s.chernoff(0.98 * x); bits > 128 {
			t.Errorf("%s: rounding errors exceed %.0f with 2^-%.1f already", s.Name, 0.98*x, bits)
		}
	}
}

// Rounding errors of answers have the variance that the bound is computed from: r_0 + r_1 s
// measured in real switches.
func TestRoundingErrorsHaveTheirVariance(t *testing.T) {
	for _, name := range []string{Unproved, DefaultVector, DefaultProduct} {
		w := newWorld(t, name)
		shrink := math.Exp2(w.LogQ()) / float64(w.Q[0])
		var squares, most float64
		count := 0
		for range 4 {
			c0, c1 := w.public.addZero(w.basis.NewNTT(), w.basis.NewNTT(), w.source())
			before := w.lifted(w.phase(c0, c1))
			after := w.lifted(w.phase(w.reduced(c0), w.reduced(c1)))
			for k := range before {
				exact, _ := before[k].Float64()
				rounded, _ := after[k].Float64()
				e := rounded - exact/shrink
				squares, most, count = squares+e*e, max(most, math.Abs(e)), count+1
			}
		}
		want := (1 + float64(w.N())*w.secretVariance()) / 12
		if got := squares / float64(count); got < 0.9*want || got > 1.1*want {
			t.Errorf("%s: rounding errors have the variance %.1f, want %.1f", name, got, want)
		}
		if most > float64(w.rounding()) || most < float64(w.rounding())/6 {
			t.Errorf("%s: rounding errors up to %.0f, and the bound is %d", name, most, w.rounding())
		}
	}
}
