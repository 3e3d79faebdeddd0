package lwe

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/primaltest"
)

// The model of the table of estimates is that of package primaltest.
func estimate(s *Set) Security {
	q := float64(s.Q)
	return Security{
		Ring:   primaltest.Cost(s.N(), q, math.Sqrt(s.Variance), math.Sqrt(varianceZ)),
		Switch: primaltest.Cost(s.Dim, q, math.Sqrt(s.SwitchVariance), 0.5),
	}
}

func TestSecurity(t *testing.T) {
	shipped := 0
	for _, s := range Sets() {
		if s.Insecure {
			continue
		}
		shipped++
		got, want := estimate(s), s.Security()
		for _, f := range [][2]float64{{got.Ring, want.Ring}, {got.Switch, want.Switch}} {
			if math.Floor(10*f[0]+1e-6)/10 != f[1] || f[0] < 128 {
				t.Errorf("%s: the model gives %v, the table has %v", s.Name, got, want)
			}
		}
		// Any number of parties: what is not known to the adversary is at least as wide.
		for _, n := range []int{2, 3, 5, 21, 101} {
			threshold := (n - 1) / 2
			honest := float64(n - threshold)
			if PartyVariance(s.Variance, n, threshold)*honest < s.Variance*(1-1e-12) ||
				PartyVariance(s.SwitchVariance, n, threshold)*honest < s.SwitchVariance*(1-1e-12) {
				t.Errorf("%s: the honest of %d parties have narrower errors", s.Name, n)
			}
		}
	}
	if shipped != 2 {
		t.Errorf("%d sets are shipped, want 2", shipped)
	}
}

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
		if !new(big.Int).SetUint64(s.Q).ProbablyPrime(0) { // exact under 2^64
			t.Errorf("%s: %d is not prime", s.Name, s.Q)
		}
		if _, err := New(s); err != nil {
			t.Error(err)
		}
	}
	if !names[Default] {
		t.Error("the default set is missing")
	}
	for q := uint64(q50 + 1<<12); q < 1<<50; q += 1 << 12 {
		if new(big.Int).SetUint64(q).ProbablyPrime(0) {
			t.Errorf("%d is a larger prime under 2^50", q)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, change := range map[string]func(s *Set){
		"insecure, name hides":  func(s *Set) { s.Insecure = true },
		"secure, name does not": func(s *Set) { s.Name = InsecurePrefix + s.Name },
		"no estimate":           func(s *Set) { s.Name = "L11-51" },
		"degree":                func(s *Set) { s.LogN = 14 },
		"congruence":            func(s *Set) { s.Q += 2 },
		"large modulus":         func(s *Set) { s.Q += 1 << 55 },
		"p of 4":                func(s *Set) { s.P = 4 },
		"p of 12":               func(s *Set) { s.P = 12 },
		"p over N/4":            func(s *Set) { s.P = 1024 },
		"no dimension":          func(s *Set) { s.Dim = 0 },
		"large dimension":       func(s *Set) { s.Dim = s.N() + 1 },
		"narrow errors":         func(s *Set) { s.Variance = 4 },
		"narrow switch":         func(s *Set) { s.SwitchVariance = math.NaN() },
		"gadget too long":       func(s *Set) { s.Rotation.Digits = 3 },
		"no digits":             func(s *Set) { s.Switch.Digits = 0 },
		"no base":               func(s *Set) { s.Switch.LogBase = 0 },
	} {
		s, err := Lookup(Default)
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
	s, _ := Lookup(Default)
	s.Q = 1<<50 - 16383 - 1<<12 // 1 mod 2N and composite
	if _, err := New(s); err == nil {
		t.Error("a composite modulus is prepared")
	}
}

func TestUnknownSet(t *testing.T) {
	var unknown *UnknownError
	_, err := Lookup("L11-52")
	if want := `lwe: unknown set "L11-52" (known: L11-50, L11-53)`; !errors.As(err, &unknown) || err.Error() != want {
		t.Errorf("unknown set: %v", err)
	}
	if got := strings.Join(Names(), " "); got != "L11-50 L11-53" {
		t.Errorf("names are %q", got)
	}
}

// Every field is in the hash, and what a caller does to a set stays with the caller.
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
		"Name": func(s *Set) { s.Name = "x" }, "LogN": func(s *Set) { s.LogN++ }, "Q": func(s *Set) { s.Q++ },
		"P": func(s *Set) { s.P++ }, "Dim": func(s *Set) { s.Dim++ }, "Variance": func(s *Set) { s.Variance++ },
		"SwitchVariance":   func(s *Set) { s.SwitchVariance *= 2 },
		"Rotation.LogBase": func(s *Set) { s.Rotation.LogBase++ }, "Rotation.Digits": func(s *Set) { s.Rotation.Digits++ },
		"Switch.LogBase": func(s *Set) { s.Switch.LogBase++ }, "Switch.Digits": func(s *Set) { s.Switch.Digits++ },
		"Insecure": func(s *Set) { s.Insecure = !s.Insecure },
	} {
		s, _ := Lookup(Default)
		change(s)
		add(name, s)
	}
	if s, _ := Lookup(Default); s.Validate() != nil {
		t.Error("a caller changed the registry")
	}
}
