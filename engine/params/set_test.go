package params

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/keyset"
)

func lookup(t *testing.T, name string) *Set {
	t.Helper()
	s, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetsAreValid(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Sets() {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		if names[s.Name] {
			t.Errorf("%s: listed twice", s.Name)
		}
		names[s.Name] = true
	}
	if !names[Default] {
		t.Errorf("default set %s is missing", Default)
	}
}

// Shipped sets have 128 bits by the model of package hardness. Their moduli are also within the
// table of Bossuat et al., Security Guidelines for Implementing Homomorphic Encryption, Table 5.2,
// which other authors computed.
func TestSecurityTable(t *testing.T) {
	limits := map[int]*big.Int{}
	for logN, bits := range map[int]uint{12: 106, 13: 214, 14: 430, 15: 868} {
		limits[logN] = new(big.Int).Lsh(big.NewInt(1), bits)
	}
	shipped := 0
	for _, s := range Sets() {
		if s.Insecure {
			continue
		}
		shipped++
		bits := s.Security()
		t.Logf("%s: %v", s.Name, bits)
		if bits.Classical < 128 || bits.Quantum < 105 || bits.Quantum >= bits.Classical {
			t.Errorf("%s has %v", s.Name, bits)
		}
		limit, ok := limits[s.LogN]
		if !ok || s.Modulus().Cmp(limit) > 0 {
			t.Errorf("%s: no 128-bit security at N = 2^%d with %d bits", s.Name, s.LogN, s.Modulus().BitLen())
		}
	}
	if shipped != 5 {
		t.Errorf("%d shipped sets, want 5", shipped)
	}
}

// A set below 128 bits is refused wherever it turns up.
func TestSecurityTableRefuses(t *testing.T) {
	tests := map[string]func(s *Set){
		"one more prime":       func(s *Set) { s.Q, s.Aux = append(s.Q, q47[0]), append(s.Aux, aux47[0]) },
		"half the degree":      func(s *Set) { s.LogN-- },
		"unknown degree":       func(s *Set) { s.LogN = 11 },
		"errors below 3.19":    func(s *Set) { s.ErrorWidth = 7.98 },
		"narrow errors":        func(s *Set) { s.ErrorWidth = 3 },
		"insecure, name hides": func(s *Set) { s.Insecure = true },
		"narrow secret":        func(s *Set) { s.Secret, s.SecretWidth = Gaussian, 1 },
	}
	for name, change := range tests {
		s := lookup(t, "S13-16")
		change(s)
		if err := s.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := Resolve(s, "p128", Use{Parties: 2, Dim: 1}); err == nil {
			t.Errorf("%s: resolved", name)
		}
	}
	s := lookup(t, "S13-16")
	s.Name, s.Insecure = InsecurePrefix+"x", true
	s.Q, s.Aux = append(s.Q, q42[0]), append(s.Aux, aux42[0])
	if err := s.Validate(); err != nil {
		t.Errorf("insecure set over the limit: %v", err)
	}
}

func TestValidateRefuses(t *testing.T) {
	bare := func(s *Set) { s.Name, s.Insecure, s.Fields = InsecurePrefix+"x", true, nil }
	tests := map[string]func(s *Set){
		"N = 2":               func(s *Set) { bare(s); s.LogN = 1 },
		"secrets of no kind":  func(s *Set) { s.Secret, s.Keys = 3, KeysUnproved },
		"repeated prime":      func(s *Set) { s.Q[1] = s.Q[0] },
		"prime in both bases": func(s *Set) { s.Aux[1] = s.Q[0] },
		"wrong congruence":    func(s *Set) { s.Q[0] += 2 },
		"small auxiliary":     func(s *Set) { s.Q, s.Aux = s.Aux, s.Q },
		"short auxiliary":     func(s *Set) { s.Aux = s.Aux[1:] },
		"no digits":           func(s *Set) { s.DigitPrimes = 0 },
		"lambdaSim":           func(s *Set) { s.LambdaSim = 80 },
		"keys":                func(s *Set) { s.Keys = "" },
		"proved ternary":      func(s *Set) { s.Secret, s.SecretWidth = Ternary, 0 },
		"ternary with width":  func(s *Set) { s.Secret, s.Keys = Ternary, KeysUnproved },
		"M = 1":               func(s *Set) { s.Fields[0].M = 1 },
		"M = 6":               func(s *Set) { s.Fields[0].M = 6 },
		"b of another size":   func(s *Set) { s.Fields[0].B = big.NewInt(1 << 20) },
		"b of 2":              func(s *Set) { s.LogB, s.Fields = 2, []FieldSpec{{Name: "p", B: big.NewInt(2), M: 4096}} },
		"b too odd":           func(s *Set) { s.Fields[0].B.Add(s.Fields[0].B, big.NewInt(2)) },
	}
	for name, change := range tests {
		s := lookup(t, Default)
		change(s)
		if s.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The moduli and auxiliary primes of a set are consecutive primes of the progression 1 mod 2N, the
// auxiliary ones on top, which are the largest under their power of two (S13-16: around 2^42.8).
func TestPrimesAreTheOnesDescribed(t *testing.T) {
	bitsOf := map[string]int{"S14-32": 49, "S14-64": 47, "S13-8": 42, "S13-16": 43, "S15-128": 55}
	for _, s := range Sets() {
		bits, shipped := bitsOf[s.Name]
		if s.LogN <= 14 && slices.Max(s.Aux) >= 1<<50 {
			t.Errorf("%s: primes over 50 bits", s.Name)
		}
		all := slices.Sorted(slices.Values(slices.Concat(s.Q, s.Aux)))
		for _, q := range all {
			// Exact under 2^64.
			if !new(big.Int).SetUint64(q).ProbablyPrime(0) {
				t.Errorf("%s: %d is not prime", s.Name, q)
			}
		}
		if !shipped {
			continue
		}
		if slices.Max(s.Q) >= slices.Min(s.Aux) {
			t.Errorf("%s: auxiliary primes are not on top", s.Name)
		}
		step, top := uint64(2*s.N()), uint64(1)<<bits
		if s.Name == "S13-16" {
			top = slices.Max(all) + step
		}
		var want []uint64
		for q := (top-1)/step*step + 1; q >= all[0]; q -= step {
			if q < top && new(big.Int).SetUint64(q).ProbablyPrime(0) {
				want = append(want, q)
			}
		}
		slices.Reverse(want)
		if !slices.Equal(all, want) {
			t.Errorf("%s: primes leave gaps", s.Name)
		}
	}
}

// Every p = b^M+1 is prime and b is the largest choice under 2^LogB.
func TestFieldPrimes(t *testing.T) {
	known := map[string]bool{}
	for _, s := range Sets() {
		if s.Insecure {
			continue // the same fields
		}
		for _, f := range s.Fields {
			p := f.P()
			if n := p.BitLen(); "p"+big.NewInt(int64(n)).String() != f.Name && !(s.Name == "S13-16" && f.Name == "p4096" && n == 4095) {
				t.Errorf("%s %s: p has %d bits", s.Name, f.Name, n)
			}
			if testing.Short() && p.BitLen() > 1024 || known[p.String()] {
				continue
			}
			known[p.String()] = true
			if !p.ProbablyPrime(1) {
				t.Errorf("%s %s: p is not prime", s.Name, f.Name)
			}
			if p.BitLen() > 512 {
				continue
			}
			step := big.NewInt(1 << ((s.LogN + f.M) / f.M)) // 2^ceil(log2(2N)/M)
			top := new(big.Int).Lsh(big.NewInt(1), uint(s.LogB))
			for b := new(big.Int).Add(f.B, step); b.Cmp(top) < 0; b.Add(b, step) {
				if (FieldSpec{B: b, M: f.M}).P().ProbablyPrime(0) {
					t.Errorf("%s %s: b = %v would do", s.Name, f.Name, b)
				}
			}
		}
	}
}

func TestWidthsOfProvedKeys(t *testing.T) {
	for _, s := range Sets() {
		if s.Keys != KeysProved {
			continue
		}
		want := betaSquared(s).timesInt(8).sqrt().width()
		if s.SecretWidth != want || s.ErrorWidth != want {
			t.Errorf("%s: widths %v and %v, want %v", s.Name, s.SecretWidth, s.ErrorWidth, want)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	var unknown *keyset.UnknownError
	if _, err := Lookup("S14-33"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "S14-32, S14-64") {
		t.Errorf("unknown set: %v", err)
	} else if strings.Contains(err.Error(), InsecurePrefix) {
		t.Errorf("insecure sets are advertised: %v", err)
	}
	if _, err := Resolve(lookup(t, "S14-64"), "p64", Use{Parties: 2, Dim: 1}); !errors.As(err, &unknown) {
		t.Errorf("unknown field: %v", err)
	}
}

func TestSetsAreIndependent(t *testing.T) {
	a := lookup(t, Default)
	a.Q[0], a.Fields[0].M = 1, 1
	a.Fields[0].B.SetInt64(1)
	if err := lookup(t, Default).Validate(); err != nil {
		t.Errorf("a caller changed the registry: %v", err)
	}
}

// One bit of flooding less than S13-16 has leaves 39 bits, which is refused outside tests.
func TestTooLittleStatisticalSecurityIsRefused(t *testing.T) {
	for _, s := range Sets() {
		if err := s.CheckStatSecurity(); err != nil {
			t.Error(err)
		}
	}
	s, err := Lookup("S13-16")
	if err != nil {
		t.Fatal(err)
	}
	s.LambdaDDec--
	if s.CheckStatSecurity() == nil {
		t.Error("39 bits are served")
	}
	if s.Insecure = true; s.CheckStatSecurity() != nil {
		t.Error("tests are refused their sets")
	}
}
