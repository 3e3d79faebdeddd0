package multikey

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/primaltest"
)

// estimate returns the estimates for the ring samples and the LWE samples of a set, by the model of
// lwe's sets. A coordinate of z is 1 with probability 1/(Block+1), and one of s with probability
// about 1/2.
func estimate(s *Set) Security {
	p := 1 / float64(s.Block+1)
	all, _ := s.ones()
	q := all / float64(s.N())
	deviation := func(p float64) float64 { return math.Sqrt(p * (1 - p)) }
	return Security{
		Ring: primaltest.Cost(s.N(), 0x1p64, s.Ring*0x1p64, deviation(q)),
		LWE:  primaltest.Cost(s.Dim, 0x1p32, s.LWE*0x1p32, deviation(p)),
	}
}

// The table of estimates matches the model. Shipped sets have 128 bits and a margin for the model's
// inaccuracy; the paper's sets are insecure, as their names say.
func TestSecurity(t *testing.T) {
	shipped, weak := 0, 0
	for _, s := range Sets() {
		if s.LogN < 11 {
			continue
		}
		got, want := estimate(s), s.Security()
		for _, f := range [][2]float64{{got.Ring, want.Ring}, {got.LWE, want.LWE}} {
			if math.Floor(10*f[0]+1e-6)/10 != f[1] {
				t.Errorf("%s: the model yields %.2f, the table has %v", s.Name, got, want)
			}
		}
		if least := min(got.Ring, got.LWE); s.Insecure {
			weak++
			if least < 110 || least > 116 {
				t.Errorf("%s has %v", s.Name, got)
			}
		} else if shipped++; got.Ring < leastRing || got.LWE < leastLWE || leastRing < 128 || leastLWE < 128 {
			t.Errorf("%s has %v", s.Name, got)
		}
	}
	if shipped != 5 || weak != 5 {
		t.Errorf("%d sets are shipped and %d are the paper's, want 5 of each", shipped, weak)
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
	if got := strings.Join(Names(), " "); got != "M11-2 M11-4 M11-8 M11-16 M11-32" {
		t.Errorf("names are %q", got)
	}
	for parties, want := range map[int]string{1: "M11-2", 2: "M11-2", 3: "M11-4", 9: "M11-16", 17: "M11-32", 32: "M11-32"} {
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
		"no estimate":           func(s *Set) { s.Name = "M11-3" },
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
	var unknown *UnknownError
	_, err := Lookup("M11-3")
	if want := `multikey: unknown set "M11-3" (known: M11-2, M11-4, M11-8, M11-16, M11-32)`; !errors.As(err, &unknown) || err.Error() != want {
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
		"Name": func(s *Set) { s.Name = "x" }, "Parties": func(s *Set) { s.Parties++ }, "LogN": func(s *Set) { s.LogN++ },
		"Dim": func(s *Set) { s.Dim++ }, "Block": func(s *Set) { s.Block++ }, "LWE": func(s *Set) { s.LWE *= 2 },
		"Ring":             func(s *Set) { s.Ring *= 2 },
		"Rotation.LogBase": func(s *Set) { s.Rotation.LogBase++ }, "Rotation.Digits": func(s *Set) { s.Rotation.Digits++ },
		"Lev.LogBase": func(s *Set) { s.Lev.LogBase++ }, "Lev.Digits": func(s *Set) { s.Lev.Digits++ },
		"Uni.LogBase": func(s *Set) { s.Uni.LogBase++ }, "Uni.Digits": func(s *Set) { s.Uni.Digits++ },
		"Switch.LogBase": func(s *Set) { s.Switch.LogBase++ }, "Switch.Digits": func(s *Set) { s.Switch.Digits++ },
		"Drop": func(s *Set) { s.Drop++ }, "Insecure": func(s *Set) { s.Insecure = !s.Insecure },
	} {
		s, _ := Lookup(Default)
		change(s)
		add(name, s)
	}
	if s, _ := Lookup(Default); s.Validate() != nil {
		t.Error("a caller changed the registry")
	}
}
