package hardness

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
)

// row is an output of the lattice-estimator.
type row struct {
	name, secret string
	samples      Samples
	least        float64
	exact        bool // the estimator costs the attacks of this package for such a secret
}

// table reads testdata/estimates.csv.
func table(t *testing.T) (rows []row) {
	t.Helper()
	f, err := os.Open("testdata/estimates.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.Comment = ';', '#'
	records, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) float64 {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	third := Secret{2. / 9, -math.Log2(1./3)/3 - 2*math.Log2(2./3)/3}
	secrets := map[string]Secret{
		"binary": Binary, "ternary": Ternary, "difference": Difference, "gaussian": Gaussian(3.17), "third": third,
	}
	for _, x := range records[1:] {
		secret, ok := secrets[x[3]]
		if !ok {
			t.Fatalf("secret %q", x[3])
		}
		least := number(x[5])
		if x[6] != "" {
			least = min(least, number(x[6]))
		}
		s := Samples{Dim: int(number(x[1])), LogQ: number(x[2]), Deviation: math.Exp2(number(x[4])), Secret: secret}
		rows = append(rows, row{fmt.Sprintf("%s, n=%s", x[0], x[1]), x[3], s, least, x[3] != "third"})
	}
	return rows
}

// The model is never above the lattice-estimator, and at most half a bit below it, but for secrets
// with a fixed number of ones: the estimator's dual attack guesses those with their number, and the
// model without it.
func TestTable(t *testing.T) {
	rows := table(t)
	if len(rows) < 145 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	closest, furthest := math.Inf(1), 0.0
	for _, r := range rows {
		got := r.samples.Estimate().Classical
		if got > r.least-0.05 {
			t.Errorf("%s, log2 q = %v, log2 sigma = %.3f, %s: the model gives %.1f bits and the estimator %.1f", r.name,
				r.samples.LogQ, math.Log2(r.samples.Deviation), r.secret, got, r.least)
		}
		if r.exact && got < r.least-0.5 || got < r.least-6 {
			t.Errorf("%s: the model gives %.1f bits and the estimator %.1f, so it rejects secure samples", r.name, got, r.least)
		}
		closest = min(closest, r.least-got)
		if r.exact {
			furthest = max(furthest, r.least-got)
		}
	}
	t.Logf("%d rows: between %.2f and %.2f bits below the estimator", len(rows), closest, furthest)
}

// Figures move as they should: more dimensions and wider errors are harder, larger moduli and
// secrets with fewer candidates are easier, and a quantum computer does not make anything harder.
func TestMonotony(t *testing.T) {
	base := Samples{Dim: 928, LogQ: 50, Deviation: math.Exp2(28.5), Secret: Binary}
	bits := base.Estimate()
	if bits.Classical < Least || bits.Classical > 130 || bits.Quantum < 110 || bits.Quantum >= bits.Classical {
		t.Errorf("the samples of T11-4 have %v", bits)
	}
	for name, harder := range map[string]func(s *Samples){
		"dimension": func(s *Samples) { s.Dim += 16 },
		"errors":    func(s *Samples) { s.Deviation *= 2 },
		"modulus":   func(s *Samples) { s.LogQ-- },
		"secret":    func(s *Samples) { s.Secret = Ternary },
	} {
		s := base
		harder(&s)
		if got := s.Estimate(); got.Classical <= bits.Classical || got.Quantum <= bits.Quantum {
			t.Errorf("%s: %v after %v", name, got, bits)
		}
	}
	s := base
	s.Secret = Blocks(2)
	if got := s.Estimate(); got.Classical > bits.Classical-2 {
		t.Errorf("blocks of two have %v, independent bits %v", got, bits)
	}
	if got := Blocks(1); got != Binary {
		t.Errorf("blocks of one are %v", got)
	}
}

// Samples that nobody should use have an estimate too: a low one.
func TestNothingToEstimate(t *testing.T) {
	for name, s := range map[string]Samples{
		"zero":          {},
		"no secret":     {Dim: 1024, LogQ: 30, Deviation: 3.2},
		"no errors":     {Dim: 1024, LogQ: 30, Secret: Binary},
		"not a number":  {Dim: 1024, LogQ: math.NaN(), Deviation: 3.2, Secret: Binary},
		"no modulus":    {Dim: 1024, LogQ: -3, Deviation: 3.2, Secret: Binary},
		"tiny":          {Dim: 16, LogQ: 50, Deviation: 3.6, Secret: Binary},
		"large modulus": {Dim: 256, LogQ: 60, Deviation: 3.6, Secret: Ternary},
	} {
		if b := s.Estimate(); !(b.Classical >= 0 && b.Classical < 64 && b.Quantum >= 0 && b.Quantum < 64) {
			t.Errorf("%s: %v", name, b)
		}
	}
}

func BenchmarkEstimate(b *testing.B) {
	for i := range b.N {
		s := Samples{Dim: 16384, LogQ: 428, Deviation: 3.19 + float64(i)*1e-9, Secret: Ternary}
		if s.Estimate().Classical < 100 {
			b.Fatal("wrong")
		}
	}
}
