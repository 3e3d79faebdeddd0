package gbfv_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/params"
)

// margins bounds, for every subject, how far the largest measurement of a term lies below its
// bound, in bits: at least from and at most to. A larger margin would mean that the study does not
// exercise the term, or that the term has become too loose.
var margins = map[string]struct{ from, to float64 }{
	"s":          {0.5, 2},
	"e":          {0.5, 2},
	"delta.mu":   {0.8, 7}, // M = 2 roundings of Delta may both be small
	"r.key":      {0.7, 2.2},
	"fresh":      {0.8, 7},
	"alpha":      {5, 35}, // the term is at least fresh, which is much larger
	"alpha.own":  {0.8, 7},
	"wrap":       {1.8, 4},
	"wrap.coeff": {0.1, 1.5},
	"tensor":     {2.5, 7},
	"ks.rotate":  {2.5, 4.5},
	"ks.relin":   {5, 8},
	"ks.matmul":  {5, 8},
	"rounding":   {5, 9},
	"product":    {2.5, 9},
	"mac.a":      {5, 9},
	"mac.c":      {0.2, 1.5},
	"switch":     {0.1, 1.5},
	"phase":      {0.1, 1.5},
	// The bounds for products of matrices.
	"sacrifice.h":   {2.5, 20},
	"sacrifice.mac": {0.2, 20},
}

// marginsProved holds the margins that differ for keys at the bounds of their proofs: these are
// bounds without deviations.
var marginsProved = map[string]struct{ from, to float64 }{
	"s":           {0, 0.1},
	"e":           {0, 0.1},
	"r.key":       {0, 0.5},
	"alpha.own":   {0, 7},
	"wrap":        {0.5, 2},
	"tensor":      {1, 4},
	"ks.rotate":   {1, 3},
	"ks.relin":    {1, 3},
	"ks.matmul":   {1, 4},
	"rounding":    {2.5, 5},
	"product":     {1, 9},
	"mac.a":       {0.5, 9},
	"sacrifice.h": {1, 20},
}

// honestDepthTwo is the minimal distance in bits between alpha·c of honest batches and its bound,
// by set. The bound too counts the error of the relinearisation key as honest; if that error is the
// largest term, the distance is small.
var honestDepthTwo = map[string]float64{"S14-32": 8, "S14-64": 20, "S13-8": 12, "S13-16": 20, "S15-128": 20}

// fieldsToStudy returns the smallest field of a set, p128, and the largest.
func fieldsToStudy(s *params.Set) (names []string) {
	for i, f := range s.Fields {
		if i == 0 || f.Name == "p128" || i == len(s.Fields)-1 {
			names = append(names, f.Name)
		}
	}
	return names
}

// mostParties returns the largest number of parties, up to 16, that an instance supports.
func mostParties(t testing.TB, s *params.Set, field string, dim int) int {
	for n := 16; n >= 2; n-- {
		if _, err := params.Resolve(s, field, params.Use{Parties: n, Dim: dim}); err == nil {
			return n
		}
	}
	t.Fatalf("%s does not support %s, d = %d", s.Name, field, dim)
	return 0
}

// subjects lists the instances to study. everyday marks those that always run: small rings and the
// largest number of parties.
func subjects(t testing.TB) (list []subject, everyday map[subject]bool) {
	everyday = map[subject]bool{}
	for _, s := range params.Sets() {
		small := s.LogN <= 8
		fields := fieldsToStudy(s)
		for _, f := range fields {
			c := subject{s.Name, f, mostParties(t, s, f, 1), 1, false}
			if c.parties > 2 {
				list = append(list, subject{s.Name, f, 2, 1, false})
			}
			list, everyday[c] = append(list, c), small
		}
		c := subject{s.Name, fields[min(1, len(fields)-2)], 2, 4, false} // p128, or the smallest
		if !s.Insecure {
			c.dim = 16
		}
		list, everyday[c] = append(list, c), small
		if s.Keys == params.KeysProved {
			f := c.field
			for _, n := range slices.Compact([]int{2, mostParties(t, s.Proved(), f, 1)}) {
				scalars := subject{s.Name, f, n, 1, true}
				list, everyday[scalars] = append(list, scalars), small
			}
			c.proved = true
			list, everyday[c] = append(list, c), small
			c.proved = false
		}
		if s.Name == params.Default {
			list = append(list, subject{s.Name, c.field, 3, 128, false})
		}
	}
	return list, everyday
}

// TestNoiseStudy compares every measurement with the registry's term, with margins on both sides.
func TestNoiseStudy(t *testing.T) {
	var results []result
	var cases []longtest.Case
	reached := map[string]bool{}
	list, everyday := subjects(t)
	for _, c := range list {
		cases = append(cases, longtest.Case{Name: c.String(), Everyday: everyday[c], Run: func(t *testing.T) {
			r := c.hold(t)
			for term := range r.rows {
				reached[term] = true
			}
			results = append(results, r)
		}})
	}
	longtest.Run(t, cases)
	for _, term := range terms(t) {
		if !reached[term] && term != "need" { // need is computed from mac.c
			t.Errorf("no measurement of term %s", term)
		}
	}
	if *write != "" && !t.Failed() {
		writeTables(t, *write, results)
	}
}

// hold measures a subject and compares the figures with the bounds.
func (c subject) hold(t *testing.T) result {
	r := result{subject: c, rows: map[string]row{}}
	st := c.run(t)
	for term, by := range st.found {
		bound, worst := st.bound(term), slices.Max(slices.Collect(maps.Values(by)))
		margin, want := math.Log2(bound/worst), margins[term]
		if other, ok := marginsProved[term]; ok && c.proved {
			want = other
		}
		if !(margin >= want.from && margin <= want.to) {
			t.Errorf("%s: measured 2^%.2f, bound 2^%.2f: a margin of %.2f bits, want %v to %v", term,
				math.Log2(worst), math.Log2(bound), margin, want.from, want.to)
		}
		r.rows[term] = row{bound: math.Log2(bound), margin: margin, by: by}
	}
	if v := st.found["mac.c"][honest]; c.dim <= 16 && v*math.Exp2(honestDepthTwo[c.set]) > st.bound("mac.c") {
		t.Errorf("mac.c: honest 2^%.2f, not %v bits under 2^%.2f", math.Log2(v), honestDepthTwo[c.set], math.Log2(st.bound("mac.c")))
	}
	return r
}

// terms lists the registry's terms, and the study's own.
func terms(t testing.TB) (names []string) {
	set, err := params.Lookup(params.Default)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := params.Resolve(set, "p128", params.Use{Parties: 2, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, term := range inst.Noise {
		names = append(names, term.Name)
		if term.Name == "alpha" {
			names = append(names, "alpha.own")
		}
	}
	return append(names, "phase", "sacrifice.h", "sacrifice.mac")
}
