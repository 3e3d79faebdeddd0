package params

import (
	"bufio"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestFixedPoint(t *testing.T) {
	near := func(what string, got fixed, want float64) {
		t.Helper()
		if g := math.Exp2(got.log2()); math.Abs(g-want) > 1e-12*want {
			t.Errorf("%s = %v, want %v", what, g, want)
		}
	}
	near("2/3", ratio(2, 3), 2.0/3)
	near("sqrt 2", fixedOf(2).sqrt(), math.Sqrt2)
	near("1/pi", fixedOf(1).overPi(), 1/math.Pi)
	near("ln 2", fixed{ln2Ceil}, math.Ln2)
	near("7*5/3", fixedOf(7).times(ratio(5, 3)), 35.0/3)
	near("width", fixedWidth(7.99), 7.99)
	near("shift", fixedOf(3).shift(100), math.Ldexp(3, 100))

	// Everything rounds up, exact values stay.
	if got := ratio(1, 3).timesInt(3).ceil(); got.Cmp(big.NewInt(2)) != 0 {
		t.Errorf("ceil(3*up(1/3)) = %v, want 2", got)
	}
	if got := fixedOf(9).sqrt().ceil(); got.Cmp(big.NewInt(3)) != 0 {
		t.Errorf("sqrt 9 = %v", got)
	}
	if got := fixedOf(5).times(fixedOf(5)).ceil(); got.Cmp(big.NewInt(25)) != 0 {
		t.Errorf("5*5 = %v", got)
	}
	if w := ratio(1, 3).plus(fixedOf(1)).width(); w <= 4.0/3-1e-15 || w < 1.3333333333333333 {
		t.Errorf("width rounds down: %v", w)
	}
}

func TestInverseGap(t *testing.T) {
	for c := 4; c <= 1<<16; c *= 2 {
		want := 1 / math.Sin(math.Pi/float64(c))
		got := math.Exp2(inverseGap(c).log2())
		if got < want*(1-1e-12) || got > want*1.005 {
			t.Errorf("inverseGap(%d) = %v, want %v", c, got, want)
		}
	}
}

// Compares every term with the values of an independent floating-point program for the same model.
// The program takes digits of 42.8 bits and nominal widths; half a percent of a bit covers that.
// Where it bounds sums more loosely than it could, so does this package.
func TestNoiseAgreesWithReferenceModel(t *testing.T) {
	file, err := os.Open("testdata/noise.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows := 0
	for scan := bufio.NewScanner(file); scan.Scan(); {
		if strings.HasPrefix(scan.Text(), "#") {
			continue
		}
		rows++
		var set, field string
		var u Use
		var challenges int
		var need, qq, fresh, mu, tensor, mm, relin, rotate, s, e float64
		if _, err := fmt.Sscan(scan.Text(), &set, &field, &u.Parties, &u.U, &u.Dim, &challenges, &need, &qq, &fresh, &mu,
			&tensor, &mm, &relin, &rotate, &s, &e); err != nil {
			t.Fatal(err)
		}
		checkNoiseRow(t, set, field, u, challenges, []float64{need, fresh, mu, tensor, mm, relin, rotate, s, e}, qq)
	}
	if rows != 88 {
		t.Errorf("%d rows, want 88", rows)
	}
}

func checkNoiseRow(t *testing.T, set, field string, u Use, challenges int, want []float64, qq float64) {
	t.Helper()
	sp := lookup(t, set)
	f, err := sp.Field(field)
	if err != nil {
		t.Fatal(err)
	}
	if u, err = u.complete(); err != nil {
		t.Fatal(err)
	}
	k := honestKeys(sp, u.Parties)
	if challenges > 0 {
		k = provedKeys(sp, u.Parties, challenges)
	}
	v := newNoise(sp, f, u, newProof(sp, f, u.U, false), newProof(sp, f, 1, true), k)
	got := []fixed{v.need, v.fresh, v.deltaMu, v.tensor, v.ksMatMul, v.ksRelin, v.ksRotate, k.s, k.e}
	for i, name := range []string{"need", "fresh", "delta.mu", "tensor", "ks.matmul", "ks.relin", "ks.rotate", "s", "e"} {
		if d := got[i].log2() - want[i]; math.Abs(d) > 0.005 {
			t.Errorf("%s %s %+v, %d challenges: %s = %.3f, reference %.3f", set, field, u, challenges, name, got[i].log2(), want[i])
		}
	}
	// The reference gives the modulus that the rounding of the switch alone needs.
	if challenges > 0 || v.need.log2() > log2Int(sp.Modulus()) {
		return
	}
	inst, miss := fit(sp, f, u)
	if miss != nil {
		t.Fatalf("%s %s %+v: %v", set, field, u, miss)
	}
	if have := log2Int(product(sp.Q[:inst.DDecPrimes])); have < qq {
		t.Errorf("%s %s %+v: q' has %.1f bits, reference %.1f", set, field, u, have, qq)
	}
}

func TestProof(t *testing.T) {
	for _, tt := range []struct {
		set, field string
		v, vDiag   int
	}{
		{"S14-32", "p128", 9, 44}, {"S14-32", "p64", 9, 65}, {"S14-64", "p2048", 9, 22}, {"S13-16", "p128", 10, 33},
		{"S13-16", "p4096", 10, 15}, {"S13-8", "p64", 10, 33}, {"S15-128", "p256", 9, 65}, {"insecure-8", "p128", 15, 44},
	} {
		i, err := Resolve(lookup(t, tt.set), tt.field, Use{Parties: 2, Dim: 1, U: 256})
		if err != nil {
			t.Fatal(err)
		}
		if i.V != tt.v || i.VDiag != tt.vDiag || i.MACKey.V != tt.vDiag {
			t.Errorf("%s %s: V = %d and %d, want %d and %d", tt.set, tt.field, i.V, i.VDiag, tt.v, tt.vDiag)
		}
		if i.Diag || !i.MACKey.Diag || i.U != 256 || i.MACKey.U != 1 {
			t.Errorf("%s %s: proofs of the wrong kind: %+v %+v", tt.set, tt.field, i.Proof, i.MACKey)
		}
		for _, p := range []Proof{i.Proof, i.MACKey} {
			checkProof(t, i, p)
		}
	}
}

// checkProof repeats the formulas in floating point.
func checkProof(t *testing.T, i *Instance, p Proof) {
	t.Helper()
	u, v := float64(p.U), float64(p.V)
	beta := math.Sqrt(math.Log(2*float64(i.Set.N())*(1+math.Exp2(128))) / math.Pi)
	s1, s2 := math.Sqrt2*beta, math.Sqrt(2*v)*beta
	b, _ := i.Field.B.Float64()
	response := 6 * math.Sqrt(u*s1*s1+(u+1)*s2*s2)
	b1, _ := p.B1.Float64()
	bt1, _ := p.Bt1.Float64()
	got := []float64{p.WidthX, p.WidthY, p.WidthR, p.WidthS, b1, bt1}
	want := []float64{s1, math.Sqrt(u+1) * s2, 2 * s1, 2 * math.Sqrt(u+1) * s2, math.Ceil((b + 1) * response), math.Ceil(2 * response)}
	for k := range got {
		if math.Abs(got[k]-want[k]) > 1e-9*want[k] {
			t.Errorf("%s %s: proof value %d is %v, want %v", i.Set.Name, i.Field.Name, k, got[k], want[k])
		}
	}
	// The reduction to RLWE needs standard deviation 3.17 at N = 2^14 from every honest witness.
	if std := p.WidthX / math.Sqrt(2*math.Pi); i.Set.LogN == 14 && (std < 3.169 || std > 3.17) {
		t.Errorf("%s: witness has standard deviation %v", i.Set.Name, std)
	}
}

// The extraction bounds hold in a small ring: with w and w' any two challenges, |2(z-z')/(w-w')|
// over all embeddings, for z of extreme coefficients, is at most what Proof says.
func TestExtractionBound(t *testing.T) {
	s := lookup(t, "insecure-6")
	f, err := s.Field("p128")
	if err != nil {
		t.Fatal(err)
	}
	n, d := s.N(), s.Slots(f)
	for _, p := range []Proof{newProof(s, f, 4, false), newProof(s, f, 1, true)} {
		mu2, r2 := p.extracted(s, f, 1)
		step := 1
		if p.Diag {
			step = d
		}
		gap := math.Inf(1) // smallest |w-w'| of any pair of challenges in any embedding
		for k := step; k < 2*n; k += step {
			for j := 1; j < 2*n; j += 2 {
				gap = min(gap, 2*math.Abs(math.Sin(math.Pi*float64(k*j%(2*n))/float64(2*n))))
			}
		}
		muTerms := n / step // coefficients of mu that may differ from zero
		for _, c := range []struct {
			bound fixed
			terms int
			b     *big.Int
		}{{mu2, muTerms, p.B1}, {r2, n, p.Bt1}} {
			b, _ := c.b.Float64()
			worst := 2 / gap * 2 * float64(c.terms) * b
			if got := math.Exp2(c.bound.log2()); got < worst*(1-1e-9) || got > worst*1.01 {
				t.Errorf("diag %v: bound %v, worst case %v", p.Diag, got, worst)
			}
		}
	}
}

func TestTermsAreExported(t *testing.T) {
	i, err := Resolve(lookup(t, Default), "p128", Use{Parties: 3, Dim: 128})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, term := range i.Noise {
		names = append(names, term.Name)
		if term.Meaning == "" || term.Bound.Sign() <= 0 || math.Abs(term.Log2-log2Int(term.Bound)) > 0.01 {
			t.Errorf("term %+v", term)
		}
	}
	want := []string{"s", "e", "delta.mu", "r.key", "fresh", "alpha", "wrap", "wrap.coeff", "tensor", "ks.rotate", "ks.relin",
		"ks.matmul", "rounding", "product", "mac.a", "mac.c", "switch", "need"}
	if !slices.Equal(names, want) {
		t.Errorf("terms %v, want %v", names, want)
	}
	if term, ok := i.Term("need"); !ok || math.Abs(term.Log2-i.NeedLog2) > 1e-9 {
		t.Errorf("Term(need) = %+v, %v", term, ok)
	}
	if _, ok := i.Term("nothing"); ok {
		t.Error("found a term that does not exist")
	}
}

// The default set keeps its room for proofs of keys, for every field, 16 parties and every size of
// challenge set.
func TestDefaultSetHoldsProvedKeys(t *testing.T) {
	s := lookup(t, Default)
	for _, f := range s.Fields {
		i, err := Resolve(s, f.Name, Use{Parties: 16, Dim: 128})
		if err != nil {
			t.Fatal(err)
		}
		for _, challenges := range []int{32, 256} {
			if need := i.NeedWithProvedKeys(challenges); need > i.HaveLog2 {
				t.Errorf("%s, %d challenges: needs %.1f bits", f.Name, challenges, need)
			}
		}
	}
	i, err := Resolve(lookup(t, "S14-64"), "p128", Use{Parties: 2, Dim: 128})
	if err != nil {
		t.Fatal(err)
	}
	if need := i.NeedWithProvedKeys(256); need < i.HaveLog2 {
		t.Errorf("S14-64 is listed as unproved and would hold proofs: %.1f bits", need)
	}
	if !math.IsInf(i.NeedWithProvedKeys(2), 1) || !math.IsInf(i.NeedWithProvedKeys(48), 1) {
		t.Error("challenge sets that prove nothing have a finite need")
	}
}
