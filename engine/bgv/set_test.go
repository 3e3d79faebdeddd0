package bgv

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/keyset"
)

func TestSetsAreValid(t *testing.T) {
	names, shipped := map[string]bool{}, 0
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
		if s.Insecure {
			continue
		}
		shipped++
		// The table: ternary secrets, deviation 3.19, 128 bits against classical attacks.
		limit := map[int]float64{12: 106, 13: 214, 14: 430}[s.LogN]
		if s.LogQP() > limit || s.Variance < 3.19*3.19 {
			t.Errorf("%s: log2 Q P = %.3f, limit %g; variance %g", s.Name, s.LogQP(), limit, s.Variance)
		}
	}
	if !names[Default] || shipped != 3 {
		t.Errorf("%d shipped sets, which contain the default: %v", shipped, names[Default])
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, change := range map[string]func(s *Set){
		"insecure, name hides":  func(s *Set) { s.Insecure = true },
		"secure, name does not": func(s *Set) { s.Name = InsecurePrefix + s.Name },
		"degree":                func(s *Set) { s.LogN = 15 },
		"no primes":             func(s *Set) { s.Q = nil },
		"no special primes":     func(s *Set) { s.P = nil },
		"composite":             func(s *Set) { s.Q[1] = 1<<49 + 1 },
		"congruence":            func(s *Set) { s.Q[2] = 1<<49 - 81 },
		"small prime":           func(s *Set) { s.Q[0] = 2130706433 },
		"a prime twice":         func(s *Set) { s.Q[1] = s.Q[0] },
		"composite T":           func(s *Set) { s.T = 1<<16 - 1 },
		"T for half the slots":  func(s *Set) { s.T = 7681 },
		"large T":               func(s *Set) { s.T = q35a },
		"floods above":          func(s *Set) { s.FloodLevel = 3 },
		"floods below":          func(s *Set) { s.FloodLevel = -2 },
		"narrow errors":         func(s *Set) { s.Variance = 9 },
		"no errors":             func(s *Set) { s.Variance = math.NaN() },
		"little noise":          func(s *Set) { s.LogNoise = 16 },
		"much noise":            func(s *Set) { s.LogNoise = 31 },
		"many decryptions":      func(s *Set) { s.LogDecryptions = 41 },
		"not secure":            func(s *Set) { s.Q[2] = q53a },
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
			t.Errorf("%s: New accepted it", name)
		}
	}
}

func TestUnknownSet(t *testing.T) {
	var unknown *keyset.UnknownError
	_, err := Lookup("B11-17")
	const want = `bgv: unknown set "B11-17" (known: B12-17, B13-17, B14-31)`
	if !errors.As(err, &unknown) || err.Error() != want {
		t.Errorf("unknown set: %v", err)
	}
	if got := strings.Join(Names(), " "); got != "B12-17 B13-17 B14-31" {
		t.Errorf("names are %q", got)
	}
}

// The hash depends on every field, and a caller's changes to a set do not affect others.
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
		"P": func(s *Set) { s.P[0]++ }, "T": func(s *Set) { s.T++ }, "Variance": func(s *Set) { s.Variance++ },
		"LogNoise": func(s *Set) { s.LogNoise++ }, "FloodLevel": func(s *Set) { s.FloodLevel++ },
		"LogDecryptions": func(s *Set) { s.LogDecryptions++ }, "Insecure": func(s *Set) { s.Insecure = !s.Insecure },
		"split": func(s *Set) { s.Q, s.P = s.Q[:2], []uint64{s.Q[2], s.P[0]} },
	} {
		s, _ := Lookup(Default)
		change(s)
		add(name, s)
	}
	if s, _ := Lookup(Default); s.Validate() != nil {
		t.Error("a caller changed the registry")
	}
}
