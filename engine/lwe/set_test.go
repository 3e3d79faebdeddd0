package lwe

import (
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/share"
)

// Sets for new keys have 128 bits by the model of package hardness. A legacy set falls short of
// that or of the bound on failures, and names a set that does not.
func TestSecurity(t *testing.T) {
	want := map[string]string{"T11-4": "", "T11-53": "", "L11-50": "T11-4", "L11-53": "T11-53"}
	for _, s := range Sets() {
		if s.Insecure {
			continue
		}
		successor, ok := want[s.Name]
		if !ok || s.Successor != successor {
			t.Errorf("%s has the successor %q", s.Name, s.Successor)
		}
		delete(want, s.Name)
		security := s.Security()
		t.Logf("%s: ring %v, switch %v, lookups fail with 2^%.1f", s.Name, security.Ring, security.Switch, s.LookupFailure())
		good := security.Least().Classical >= 128 && s.LookupFailure() <= -128
		if good == s.Legacy() {
			t.Errorf("%s has %v and failures of 2^%.1f, and is legacy: %v", s.Name, security, s.LookupFailure(), s.Legacy())
		}
		if q := security.Least().Quantum; q < 105 || q >= security.Least().Classical {
			t.Errorf("%s: %.1f bits against quantum computers", s.Name, q)
		}
		// For any number of parties, the error that the adversary does not know is at least as
		// wide.
		for _, n := range []int{2, 3, 5, 21, 64} {
			threshold := (n - 1) / 2
			honest := float64(n - threshold)
			if PartyVariance(s.Variance, n, threshold)*honest < s.Variance*(1-1e-12) ||
				PartyVariance(s.SwitchVariance, n, threshold)*honest < s.SwitchVariance*(1-1e-12) {
				t.Errorf("%s: the honest of %d parties have narrower errors", s.Name, n)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if maxHolders != share.MaxParties {
		t.Errorf("failures are those of %d holders, and keys have up to %d", maxHolders, share.MaxParties)
	}
}

// Legacy sets make no keys, and say which set does.
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
		if err != nil || next.CheckNewKeys() != nil || next.Q != s.Q || next.N() != s.N() || legacy.Reason == "" {
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
		"below 128 bits":        func(s *Set) { s.SwitchVariance /= 2 },
		"narrow ring":           func(s *Set) { s.LogN, s.Dim = 10, 928 },
		"fails too often":       func(s *Set) { s.SwitchVariance *= 64 },
		"legacy without reason": func(s *Set) { s.Successor = "T11-53" },
		"legacy and current":    func(s *Set) { s.Name, s.Dim, s.SwitchVariance = "L11-51", 1024, 11.56*(1<<49) },
		"sum of errors":         func(s *Set) { s.Q, s.Dim = q53, 1024 },
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
	var unknown *keyset.UnknownError
	_, err := Lookup("L11-52")
	if want := `lwe: unknown set "L11-52" (known: T11-4, T11-53)`; !errors.As(err, &unknown) || err.Error() != want {
		t.Errorf("unknown set: %v", err)
	}
	if got := strings.Join(Names(), " "); got != "T11-4 T11-53" {
		t.Errorf("names are %q", got)
	}
}

// Keys, rosters and stores hold the hashes of sets that shipped. They never change.
func TestHashesStay(t *testing.T) {
	for name, want := range map[string]string{
		"L11-50": "5c2ddf242ab0c4bcab029224e9a351369c7f150bd38ddf3d927efbc0bb885c18",
		"L11-53": "059e93ac0c25f3039932518de69864320bc5eaffb295bc784a297b299f357a44",
	} {
		s := must(Lookup(name))
		h := s.Hash()
		s.Successor = ""
		if got := hex.EncodeToString(h[:]); got != want || s.Hash() != h {
			t.Errorf("%s has the hash %s", name, got)
		}
	}
}

// Every field is in the hash, and changes by a caller do not affect other callers.
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
		"Insecure": func(s *Set) { s.Insecure = !s.Insecure }, "Centred": func(s *Set) { s.Centred = !s.Centred },
	} {
		s, _ := Lookup(Default)
		change(s)
		add(name, s)
	}
	if s, _ := Lookup(Default); s.Validate() != nil {
		t.Error("a caller changed the registry")
	}
}
