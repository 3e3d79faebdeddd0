package multikey

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

// Sets for new keys have 128 bits by the model of package hardness and gates that fail with
// probability at most 2^-128. Legacy sets miss one of these goals and name a set that reaches both.
// The paper's sets keep their estimates.
func TestSecurity(t *testing.T) {
	shipped, old, weak := 0, 0, 0
	for _, s := range Sets() {
		if s.LogN < 11 {
			continue
		}
		security := s.Security()
		least := security.Least()
		t.Logf("%s: ring %v, LWE %v, fails with 2^%.1f", s.Name, security.Ring, security.LWE, s.LogFailure())
		switch {
		case s.Insecure:
			weak++
			if least.Classical > 115 {
				t.Errorf("%s has %v", s.Name, security)
			}
		case s.Legacy():
			old++
			if least.Classical >= 128 && s.LogFailure() <= -128 {
				t.Errorf("%s is legacy, with %v and failures of 2^%.1f", s.Name, security, s.LogFailure())
			}
		default:
			shipped++
			if least.Classical < 128 || s.LogFailure() > -128 {
				t.Errorf("%s has %v and failures of 2^%.1f", s.Name, security, s.LogFailure())
			}
		}
		if !s.Insecure && !s.Legacy() && (least.Quantum < 105 || least.Quantum >= least.Classical) {
			t.Errorf("%s: %v against quantum computers", s.Name, security)
		}
	}
	if shipped != 5 || old != 5 || weak != 5 {
		t.Errorf("%d sets for new keys, %d legacy ones and %d of the paper, want 5 of each", shipped, old, weak)
	}
}

// Legacy sets generate no keys, and name the set to use instead.
func TestLegacyMakesNoKeys(t *testing.T) {
	for _, s := range Sets() {
		var legacy *hardness.LegacyError
		err := s.CheckNewKeys()
		if errors.As(err, &legacy) != s.Legacy() || (err == nil) == s.Legacy() {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if err == nil {
			continue
		}
		next, err := Lookup(legacy.Successor)
		if err != nil || next.CheckNewKeys() != nil || next.Parties != s.Parties || legacy.Reason == "" {
			t.Errorf("%s: the successor %+v: %v", s.Name, legacy, err)
		}
		if slices.Contains(Names(), s.Name) {
			t.Errorf("%s is listed for new keys", s.Name)
		}
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
	}
	if !names[Default] || strings.HasPrefix(Default, InsecurePrefix) {
		t.Error("the default set is missing, or insecure")
	}
	if got := strings.Join(Names(), " "); got != "M11-2-128 M11-4-128 M11-8-128 M11-16-128 M11-32-128" {
		t.Errorf("names are %q", got)
	}
	for parties, want := range map[int]string{
		1: "M11-2-128", 2: "M11-2-128", 3: "M11-4-128", 9: "M11-16-128", 17: "M11-32-128", 32: "M11-32-128",
	} {
		if s, err := For(parties); err != nil || s.Name != want {
			t.Errorf("%d parties: %v, %v", parties, s, err)
		}
	}
	for _, parties := range []int{-1, 0, 33} {
		if _, err := For(parties); !errors.Is(err, ErrParties) {
			t.Errorf("%d parties: %v", parties, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	for name, change := range map[string]func(s *Set){
		"insecure, name hides":  func(s *Set) { s.Insecure = true },
		"secure, name does not": func(s *Set) { s.Name = InsecurePrefix + s.Name },
		"below 128 bits":        func(s *Set) { s.LWE /= 1.2 },
		"narrow ring":           func(s *Set) { s.Ring, s.Drop = 0x1p-52, 6 },
		"fails too often":       func(s *Set) { s.LWE *= 2 },
		"mean left out":         func(s *Set) { s.Parties, s.Centred = 12, false },
		"legacy without reason": func(s *Set) { s.Successor = "M11-8-128" },
		"legacy and current":    func(s *Set) { s.Name, s.Dim, s.Centred = "M11-4-127", 684, true },
		"no parties":            func(s *Set) { s.Parties = 0 },
		"many parties":          func(s *Set) { s.Parties = 33 },
		"small degree":          func(s *Set) { s.LogN = 3 },
		"large degree":          func(s *Set) { s.LogN = 13 },
		"no blocks":             func(s *Set) { s.Block = 0 },
		"long blocks":           func(s *Set) { s.Block = 13 },
		"no dimension":          func(s *Set) { s.Dim = 0 },
		"large dimension":       func(s *Set) { s.Dim = s.N() },
		"half a block":          func(s *Set) { s.Dim, s.Block = 700, 8 },
		"odd dimension":         func(s *Set) { s.Dim, s.Block = 715, 1 },
		"narrow LWE errors":     func(s *Set) { s.LWE = 0x1p-31 },
		"wide LWE errors":       func(s *Set) { s.LWE = 0x1p-8 },
		"narrow ring errors":    func(s *Set) { s.Ring = 0x1p-63 },
		"wide ring errors":      func(s *Set) { s.Ring = math.Inf(1) },
		"errors that are none":  func(s *Set) { s.Ring = math.NaN() },
		"much is dropped":       func(s *Set) { s.Drop = 13 },
		"negative drop":         func(s *Set) { s.Drop = -1 },
		"no digits":             func(s *Set) { s.Rotation.Digits = 0 },
		"no base":               func(s *Set) { s.Lev.LogBase = 0 },
		"large base":            func(s *Set) { s.Uni = Gadget{21, 1} },
		"long gadget":           func(s *Set) { s.Uni = Gadget{10, 5} },
		"long switching gadget": func(s *Set) { s.Switch = Gadget{3, 11} },
	} {
		s, err := Lookup(Default)
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		if s.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := New(s, StandardSeed()); err == nil {
			t.Errorf("%s: prepared", name)
		}
	}
}

func TestUnknownSet(t *testing.T) {
	var unknown *keyset.UnknownError
	_, err := Lookup("M11-3")
	if want := `multikey: unknown set "M11-3" (known: M11-2-128, M11-4-128, M11-8-128, M11-16-128, M11-32-128)`; !errors.As(err, &unknown) || err.Error() != want {
		t.Errorf("unknown set: %v", err)
	}
}

// Keys, rosters and stores contain the hashes of shipped sets, so the hashes never change.
func TestHashesStay(t *testing.T) {
	for name, want := range map[string]string{
		"M11-2": "90f2b7f85d8ff168", "M11-4": "04c5f731333e7022", "M11-8": "212dadbe946c405d", "M11-16": "f4ff3e2b5d282122",
		"M11-32": "c7bacd606bf87c27",
	} {
		s, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		h := s.Hash()
		s.Successor = ""
		if got := hex.EncodeToString(h[:8]); got != want || s.Hash() != h {
			t.Errorf("%s has the hash %s", name, got)
		}
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
		"Name": func(s *Set) { s.Name = "x" }, "Parties": func(s *Set) { s.Parties++ }, "LogN": func(s *Set) { s.LogN++ },
		"Dim": func(s *Set) { s.Dim++ }, "Block": func(s *Set) { s.Block++ }, "LWE": func(s *Set) { s.LWE *= 2 },
		"Ring":             func(s *Set) { s.Ring *= 2 },
		"Rotation.LogBase": func(s *Set) { s.Rotation.LogBase++ }, "Rotation.Digits": func(s *Set) { s.Rotation.Digits++ },
		"Lev.LogBase": func(s *Set) { s.Lev.LogBase++ }, "Lev.Digits": func(s *Set) { s.Lev.Digits++ },
		"Uni.LogBase": func(s *Set) { s.Uni.LogBase++ }, "Uni.Digits": func(s *Set) { s.Uni.Digits++ },
		"Switch.LogBase": func(s *Set) { s.Switch.LogBase++ }, "Switch.Digits": func(s *Set) { s.Switch.Digits++ },
		"Drop": func(s *Set) { s.Drop++ }, "Insecure": func(s *Set) { s.Insecure = !s.Insecure },
		"Centred": func(s *Set) { s.Centred = !s.Centred },
	} {
		s, _ := Lookup(Default)
		change(s)
		add(name, s)
	}
	if s, _ := Lookup(Default); s.Validate() != nil {
		t.Error("a caller changed the registry")
	}
}
