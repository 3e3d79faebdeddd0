package params

import (
	"encoding/hex"
	"errors"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func resolve(t *testing.T, set, field string, u Use) *Instance {
	t.Helper()
	i, err := Resolve(lookup(t, set), field, u)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Every set serves at most these numbers of parties, by field, for scalars and for 128 x 128
// matrices in proofs of 256 ciphertexts. 0 means that a ciphertext has too few slots.
func TestWhatFits(t *testing.T) {
	const all = 16
	tests := map[string]map[string][2]int{
		"S14-32": {"p64": {all, all}, "p128": {all, all}, "p256": {all, all}, "p512": {all, all}, "p1024": {all, all},
			"p2048": {all, all}, "p4096": {all, all}},
		"S14-64": {"p128": {all, all}, "p256": {all, all}, "p512": {all, 15}, "p1024": {all, 12}, "p2048": {all, 9},
			"p4096": {all, 7}},
		"S13-8": {"p64": {all, all}, "p128": {all, all}},
		"S13-16": {"p64": {all, 5}, "p128": {all, 4}, "p256": {all, 3}, "p512": {all, 2}, "p1024": {14, 2},
			"p2048": {11, 0}, "p4096": {9, 0}},
		"S15-128": {"p256": {all, all}, "p512": {all, all}, "p1024": {all, all}, "p2048": {all, all}, "p4096": {all, all}},
	}
	for _, s := range Sets() {
		for _, f := range s.Fields {
			want := [2]int{all, all}
			if !s.Insecure {
				want = tests[s.Name][f.Name]
			}
			for k, u := range []Use{{Dim: 1}, {Dim: min(128, s.Slots(f)), U: 256}} {
				if !s.Insecure && k == 1 {
					u.Dim = 128
				}
				got := 0
				for u.Parties = 2; u.Parties <= all; u.Parties++ {
					if full, err := u.complete(); err != nil {
						t.Fatal(err)
					} else if _, miss := fit(s, f, full); miss == nil {
						got = u.Parties
					}
				}
				if got != want[k] {
					t.Errorf("%s %s, d = %d: fits up to %d parties, want %d", s.Name, f.Name, u.Dim, got, want[k])
				}
			}
		}
	}
}

func TestDoesNotFitSaysWhatWould(t *testing.T) {
	for _, tt := range []struct {
		set, field string
		use        Use
		short      int
		fits       []string
	}{
		{"S13-16", "p128", Use{Parties: 5, Dim: 128, U: 256}, 1, []string{"S14-32", "S14-64", "S13-8"}},
		{"S13-16", "p128", Use{Parties: 16, Dim: 128, U: 256}, 6, []string{"S14-32", "S14-64", "S13-8"}},
		{"S14-64", "p4096", Use{Parties: 8, Dim: 128, U: 256}, 1, []string{"S14-32", "S15-128"}},
		{"S14-64", "p4096", Use{Parties: 3, Dim: 128, Inner: 128 << 6}, 2, []string{"S14-32", "S15-128"}},
		{"S13-16", "p4096", Use{Parties: 2, Dim: 64}, 0, []string{"S14-32", "S14-64", "S15-128"}},
		{"S13-8", "p64", Use{Parties: 2, Dim: 1 << 14}, 0, nil},
	} {
		_, err := Resolve(lookup(t, tt.set), tt.field, tt.use)
		var miss *DoesNotFit
		if !errors.As(err, &miss) {
			t.Errorf("%s %s %+v: %v", tt.set, tt.field, tt.use, err)
			continue
		}
		if miss.Set != tt.set || miss.Field != tt.field || miss.Short != tt.short || !slices.Equal(miss.Fits, tt.fits) {
			t.Errorf("%s %s %+v: %+v", tt.set, tt.field, tt.use, miss)
		}
		if (miss.Short > 0) != strings.Contains(miss.Reason, "too few") {
			t.Errorf("%s %s %+v: %d bits are missing because %q", tt.set, tt.field, tt.use, miss.Short, miss.Reason)
		}
		for _, name := range miss.Fits {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q does not name %s", err, name)
			}
			resolve(t, name, tt.field, tt.use)
		}
	}
}

func TestInvalidUses(t *testing.T) {
	for _, u := range []Use{
		{}, {Parties: 1, Dim: 1}, {Parties: MaxParties + 1, Dim: 1}, {Parties: 2}, {Parties: 2, Dim: 3}, {Parties: 2, Dim: -1},
		{Parties: 2, Dim: 1, U: -1}, {Parties: 2, Dim: 1, U: 1 << 30}, {Parties: 2, Dim: 16, Inner: 24},
		{Parties: 2, Dim: 16, Inner: 8}, {Parties: 2, Dim: 1, Inner: 1 << 40},
	} {
		if _, err := Resolve(lookup(t, Default), "p128", u); !errors.Is(err, ErrUse) {
			t.Errorf("%+v: %v", u, err)
		}
	}
}

func TestUseIsCompleted(t *testing.T) {
	if got, want := resolve(t, Default, "p128", Use{Parties: 2, Dim: 128}).Use, (Use{2, 128, 257, 128}); got != want {
		t.Errorf("matrix use %+v, want %+v", got, want)
	}
	if got, want := resolve(t, Default, "p128", Use{Parties: 2, Dim: 1}).Use, (Use{2, 1, 32, 1}); got != want {
		t.Errorf("scalar use %+v, want %+v", got, want)
	}
}

// E is the largest integer with (b+1)(PhaseBound+n(E+1)) < q'/2, at least 2^lambda*PhaseBound, and
// no shorter q' does.
func TestFlooding(t *testing.T) {
	for _, s := range Sets() {
		for _, f := range s.Fields {
			full, err := Use{Parties: 3, Dim: 16, U: 33}.complete()
			if err != nil {
				t.Fatal(err)
			}
			i, miss := fit(s, f, full)
			if miss != nil {
				if s.Slots(f) >= 16 {
					t.Error(miss)
				}
				continue
			}
			bPlus1 := new(big.Int).Add(f.B, big.NewInt(1))
			fits := func(e, q *big.Int) bool {
				x := new(big.Int).Add(e, big.NewInt(1))
				x.Mul(x, big.NewInt(3)).Add(x, i.PhaseBound).Mul(x, bPlus1).Lsh(x, 1)
				return x.Cmp(q) < 0
			}
			q := product(s.Q[:i.DDecPrimes])
			if !fits(i.FloodBound, q) || fits(new(big.Int).Add(i.FloodBound, big.NewInt(1)), q) {
				t.Errorf("%s %s: E is not the largest", s.Name, f.Name)
			}
			least := new(big.Int).Lsh(i.PhaseBound, uint(s.LambdaDDec))
			if i.FloodBound.Cmp(least) < 0 || i.FloodBits < float64(s.LambdaDDec) {
				t.Errorf("%s %s: flooding of %.1f bits", s.Name, f.Name, i.FloodBits)
			}
			// With one prime less even the rounding of the switch, a lower bound of the phase, has
			// no room.
			round, _ := i.Term("switch")
			least.Lsh(round.Bound, uint(s.LambdaDDec))
			if short := product(s.Q[:i.DDecPrimes-1]); i.DDecPrimes < len(s.Q) && fits(least, short) {
				t.Errorf("%s %s: %d primes would do", s.Name, f.Name, i.DDecPrimes-1)
			}
		}
	}
}

func TestStatisticalSecurity(t *testing.T) {
	for set, want := range map[string]int{"S14-32": 47, "S14-64": 47, "S13-8": 48, "S13-16": 40, "S15-128": 46} {
		got := resolve(t, set, lookup(t, set).Fields[1].Name, Use{Parties: 2, Dim: 1}).StatSecurityBits
		if got != want || got < MinStatSecurity {
			t.Errorf("%s: %d bits, want %d", set, got, want)
		}
	}
}

func TestSetHashes(t *testing.T) {
	want := map[string]string{
		"S14-32":        "c8df574d3630ef48",
		"S14-64":        "e7f348e34e7f8c16",
		"S13-8":         "e7a55d1378a270f8",
		"S13-16":        "c257076eb349adad",
		"S15-128":       "15fbf076a56b44bd",
		"insecure-6":    "1cef206a5bf9b596",
		"insecure-8":    "ffd152e391dc2eea",
		"insecure-8-64": "e7ac92311767e98b",
		"insecure-8-16": "1e9c09e8db0e5d29",
		"insecure-11":   "cd063d7b3b2d7b86",
	}
	for _, s := range Sets() {
		h := s.Hash()
		if got := hex.EncodeToString(h[:8]); got != want[s.Name] {
			t.Errorf("%s: hash %s, pinned %s", s.Name, got, want[s.Name])
		}
	}
}

// Every value that keys depend on changes the hash of the set; fields do not.
func TestSetHashBinds(t *testing.T) {
	base := lookup(t, Default).Hash()
	for name, change := range map[string]func(s *Set){
		"Name": func(s *Set) { s.Name += "x" }, "LogN": func(s *Set) { s.LogN++ }, "LogB": func(s *Set) { s.LogB++ },
		"Q": func(s *Set) { s.Q[6]++ }, "Aux": func(s *Set) { s.Aux[0]++ }, "DigitPrimes": func(s *Set) { s.DigitPrimes++ },
		"Secret": func(s *Set) { s.Secret = Ternary }, "SecretWidth": func(s *Set) { s.SecretWidth++ },
		"ErrorWidth": func(s *Set) { s.ErrorWidth++ }, "Keys": func(s *Set) { s.Keys = KeysUnproved },
		"LambdaDDec": func(s *Set) { s.LambdaDDec++ }, "LambdaSnd": func(s *Set) { s.LambdaSnd++ },
		"LambdaSim": func(s *Set) { s.LambdaSim++ }, "Insecure": func(s *Set) { s.Insecure = true },
	} {
		s := lookup(t, Default)
		change(s)
		if s.Hash() == base {
			t.Errorf("%s does not enter the hash", name)
		}
	}
	s := lookup(t, Default)
	s.Fields = nil
	if s.Hash() != base {
		t.Error("the list of fields enters the hash")
	}
	if n := reflect.TypeOf(Set{}).NumField(); n != 16 { // with what Proved sets, which TestProvedInstances covers
		t.Errorf("Set has %d fields: does the hash cover the new one?", n)
	}
}

func TestInstanceHashes(t *testing.T) {
	want := map[string]string{
		"default scalar":      "8b644bd527e3b512",
		"default matrix":      "d34aac19ac56427a",
		"four parties":        "13437eb98e48de8c",
		"other batch":         "42c40eafe1062852",
		"long inner products": "966efc60569d668b",
		"other field":         "f3fe911c9d7b3e99",
		"other set":           "4d659a9d2c9985a8",
		"tiny":                "0c661ceb5251767a",
	}
	seen := map[[32]byte]bool{}
	for _, tt := range []struct {
		name, set, field string
		use              Use
	}{
		{"default scalar", Default, "p128", Use{Parties: 3, Dim: 1}},
		{"default matrix", Default, "p128", Use{Parties: 3, Dim: 128}},
		{"four parties", Default, "p128", Use{Parties: 4, Dim: 128}},
		{"other batch", Default, "p128", Use{Parties: 3, Dim: 128, U: 258}},
		{"long inner products", Default, "p128", Use{Parties: 3, Dim: 128, Inner: 256}},
		{"other field", Default, "p256", Use{Parties: 3, Dim: 128}},
		{"other set", "S14-64", "p128", Use{Parties: 3, Dim: 128}},
		{"tiny", "insecure-8", "p128", Use{Parties: 3, Dim: 16}},
	} {
		i := resolve(t, tt.set, tt.field, tt.use)
		h := i.Hash()
		if got := hex.EncodeToString(h[:8]); got != want[tt.name] {
			t.Errorf("%s: hash %s, pinned %s", tt.name, got, want[tt.name])
		}
		if seen[h] || h != resolve(t, tt.set, tt.field, tt.use).Hash() {
			t.Errorf("%s: hash is not a function of the instance", tt.name)
		}
		seen[h] = true
	}
}

// Every number that parties share changes the hash of the instance.
func TestInstanceHashBinds(t *testing.T) {
	base := resolve(t, "insecure-8", "p128", Use{Parties: 3, Dim: 16})
	inc := func(v **big.Int) { *v = new(big.Int).Add(*v, big.NewInt(1)) }
	for name, change := range map[string]func(i *Instance){
		"Set": func(i *Instance) { i.Set.LambdaDDec++ }, "field name": func(i *Instance) { i.Field.Name = "p129" },
		"Parties": func(i *Instance) { i.Use.Parties++ }, "Dim": func(i *Instance) { i.Use.Dim++ },
		"Use.U": func(i *Instance) { i.Use.U++ }, "Inner": func(i *Instance) { i.Use.Inner++ },
		"Diag": func(i *Instance) { i.Diag = true }, "U": func(i *Instance) { i.U++ }, "V": func(i *Instance) { i.V++ },
		"WidthX": func(i *Instance) { i.WidthX++ }, "WidthY": func(i *Instance) { i.WidthY++ },
		"WidthR": func(i *Instance) { i.WidthR++ }, "WidthS": func(i *Instance) { i.WidthS++ },
		"B1": func(i *Instance) { inc(&i.B1) }, "Bt1": func(i *Instance) { inc(&i.Bt1) },
		"MACKey.V": func(i *Instance) { i.MACKey.V++ }, "MACKey.B1": func(i *Instance) { inc(&i.MACKey.B1) },
		"MACKey.Bt1": func(i *Instance) { inc(&i.MACKey.Bt1) }, "DDecPrimes": func(i *Instance) { i.DDecPrimes++ },
		"PhaseBound": func(i *Instance) { inc(&i.PhaseBound) }, "FloodBound": func(i *Instance) { inc(&i.FloodBound) },
	} {
		i, set := *base, *base.Set
		i.Set = &set
		change(&i)
		got, err := i.digest()
		if err != nil {
			t.Fatal(err)
		}
		if got == base.Hash() {
			t.Errorf("%s does not enter the hash", name)
		}
	}
}

// Coefficients of t, whatever a frame says, have at most 31 bits with their sign: what encryption
// takes as randomness.
func TestRandomnessIsSmall(t *testing.T) {
	for _, s := range Sets() {
		for _, f := range s.Fields {
			for _, diag := range []bool{false, true} {
				if bits := newProof(s, f, maxU, diag).Bt1.BitLen(); bits > 30 {
					t.Errorf("%s, %s, diagonal %v: bound of %d bits", s.Name, f.Name, diag, bits)
				}
			}
		}
	}
}
