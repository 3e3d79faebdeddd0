package linear

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/keyset"
)

func TestSetsAreValid(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Sets() {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		if names[s.Name] {
			t.Errorf("%s is listed twice", s.Name)
		}
		names[s.Name] = true
		if _, err := New(s); err != nil {
			t.Error(err)
		}
	}
	if !names[DefaultVector] || !names[Unproved] || !names[DefaultProduct] {
		t.Error("a default names an unknown set")
	}
	if got := strings.Join(Names(), " "); got != "V13-32 V13-32-proved P13-17 P13-40" {
		t.Errorf("names are %q", got)
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, change := range map[string]func(s *Set){
		"insecure, name hides":  func(s *Set) { s.Insecure = true },
		"secure, name does not": func(s *Set) { s.Name = InsecurePrefix + s.Name },
		"degree":                func(s *Set) { s.LogN = 16 },
		"one prime":             func(s *Set) { s.Q = s.Q[:1] },
		"composite":             func(s *Set) { s.Q[1] = 1<<49 + 1 },
		"congruence":            func(s *Set) { s.Q[2] = 1<<49 - 81 },
		"small prime":           func(s *Set) { s.Q[1] = 2130706433 },
		"a prime twice":         func(s *Set) { s.Q[1] = s.Q[2] },
		"composite T":           func(s *Set) { s.T = 1<<16 - 1 },
		"T for half the slots":  func(s *Set) { s.T = 7681 },
		"narrow errors":         func(s *Set) { s.ErrorWidth = 7 },
		"no errors":             func(s *Set) { s.ErrorWidth = math.NaN() },
		"no room to round":      func(s *Set) { s.Q[0] = 68718428161 },
		"narrow secrets":        func(s *Set) { s.Proof = &ProofSizes{15.8, 51, 19400} },
		"narrow masks":          func(s *Set) { s.Proof = &ProofSizes{16, 50, 19400} },
		"no masks":              func(s *Set) { s.Proof = &ProofSizes{16, math.NaN(), 19400} },
		"wide masks":            func(s *Set) { s.Proof = &ProofSizes{16, 90, 40000} },
		"a bound too low":       func(s *Set) { s.Proof = &ProofSizes{16, 51, 19000} },
		"not secure":            func(s *Set) { s.Q = append(s.Q, q44a, q44b) },
	} {
		s, err := Lookup(Unproved)
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		if s.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := New(s); err == nil {
			t.Errorf("%s: prepared", name)
		}
	}
}

func TestUnknownSet(t *testing.T) {
	var unknown *keyset.UnknownError
	_, err := Find("V11-17")
	const want = `linear: unknown set "V11-17" (known: V13-32, V13-32-proved, P13-17, P13-40)`
	if !errors.As(err, &unknown) || err.Error() != want {
		t.Errorf("unknown set: %v", err)
	}
}

// The hash covers every field, and a caller's changes to a set do not affect the registry.
func TestHash(t *testing.T) {
	seen := map[[32]byte]string{}
	add := func(name string, s *Set) {
		if other, ok := seen[s.Hash()]; ok {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[s.Hash()] = name
	}
	for _, s := range Sets() {
		add(s.Name, s)
	}
	for name, change := range map[string]func(s *Set){
		"Name": func(s *Set) { s.Name = "x" }, "LogN": func(s *Set) { s.LogN++ }, "Q": func(s *Set) { s.Q[1]++ },
		"T": func(s *Set) { s.T++ }, "ErrorWidth": func(s *Set) { s.ErrorWidth++ },
		"Insecure": func(s *Set) { s.Insecure = !s.Insecure }, "Proof": func(s *Set) { s.Proof = &ProofSizes{16, 51, 19400} },
		"SecretWidth": func(s *Set) { s.Proof = &ProofSizes{17, 51, 19400} }, "MaskWidth": func(s *Set) { s.Proof = &ProofSizes{16, 52, 19400} },
		"Bound": func(s *Set) { s.Proof = &ProofSizes{16, 51, 19401} },
	} {
		s, _ := Lookup(Unproved)
		change(s)
		add(name, s)
	}
	if s, _ := Lookup(Unproved); s.Validate() != nil {
		t.Error("a caller changed the registry")
	}
}
