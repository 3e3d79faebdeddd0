package params

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestKeyProof(t *testing.T) {
	for _, c := range []struct {
		set                               string
		parties, dim, challenges, v, bits int
		bound                             int64
	}{
		{"S14-32", 2, 128, 256, 17, 10, 34165},
		{"S14-32", 16, 1, 256, 17, 10, 34165},
		{"S14-32", 3, 1024, 32, 26, 10, 41844},
		{"S14-32", 17, 128, 32, 26, 10, 41844},
		{"S14-32", 17, 4096, 8, 44, 11, 54020},
		{"insecure-6", 2, 1, 128, 19, 10, 2187},
		{"insecure-6", 2, 32, 4, 65, 11, 3972},
		{"insecure-8", 3, 8, 64, 22, 10, 4725},
	} {
		s := lookup(t, c.set)
		p, err := s.KeyProof(c.parties, c.dim)
		if err != nil {
			t.Fatal(err)
		}
		if p.Challenges != c.challenges || p.V != c.v || p.Bits != c.bits || p.Bound != c.bound || p.Stride*p.Challenges != 2*s.N() {
			t.Errorf("%s, %d parties, dimension %d: %+v, want %+v", c.set, c.parties, c.dim, p, c)
		}
		// The formulas again, in floating point.
		beta := math.Sqrt(math.Log(2*float64(s.N())*(1+math.Exp2(128))) / math.Pi)
		mask, response := 2*math.Sqrt(2*float64(p.V))*beta, 2*math.Sqrt2*beta*math.Sqrt(float64(1+p.V))
		if math.Abs(p.MaskWidth/mask-1) > 1e-12 || p.Bound != int64(3.96*math.Sqrt(float64(s.N()))*response) {
			t.Errorf("%s: %+v, want masks of width %v and responses of width %v", c.set, p, mask, response)
		}
		if float64(p.V)*math.Log2(float64(p.Challenges)) < 130 {
			t.Errorf("%s: %d repetitions of %d challenges", c.set, p.V, p.Challenges)
		}
		// Rotations of dimension dim, X -> X^g with g = 5^(iN/(2 dim)), fix the challenges.
		g := 1
		for range s.N() / 2 / c.dim {
			g = g * 5 % (2 * s.N())
		}
		for k := range p.Challenges {
			if e := k * p.Stride; c.dim > 1 && e*g%(2*s.N()) != e {
				t.Errorf("%s: X^%d is not fixed by rotations of dimension %d", c.set, e, c.dim)
			}
		}
	}
	for _, c := range []struct {
		set          string
		parties, dim int
	}{{"S14-64", 2, 128}, {"S14-32", 1, 128}, {"S14-32", MaxParties + 1, 128}, {"S14-32", 2, 0}, {"S14-32", 2, 48}, {"S14-32", 2, 1 << 14}} {
		if p, err := lookup(t, c.set).KeyProof(c.parties, c.dim); err == nil {
			t.Errorf("%+v has a proof: %+v", c, p)
		}
	}
}

// An instance holds for keys of every dimension: a smaller challenge set proves more.
func TestBoundsHoldForEveryDimension(t *testing.T) {
	s := lookup(t, Default)
	for _, n := range []int{2, 16, 17, 64} {
		top := provedKeys(s, n, s.keyChallenges(n))
		for dim := 1; 2*s.N()/dim >= minKeyChallenges; dim *= 2 {
			p, err := s.KeyProof(n, dim)
			if err != nil {
				t.Fatal(err)
			}
			if k := provedKeys(s, n, p.Challenges); k.s.v.Cmp(top.s.v) > 0 || k.erl.v.Cmp(top.erl.v) > 0 {
				t.Errorf("%d parties, dimension %d: |s| = %.2f bits, the instance has %.2f", n, dim, k.s.log2(), top.s.log2())
			}
		}
	}
}

func TestProvedInstances(t *testing.T) {
	s := lookup(t, Default)
	proved := s.Proved()
	if s.IsProved() || !proved.IsProved() || proved.Hash() != s.Hash() {
		t.Error("a set of proved keys is another set")
	}
	for _, f := range s.Fields {
		for _, n := range []int{2, 3, 16, 17, 64} {
			u := Use{Parties: n, Dim: 128}
			got, err := Resolve(proved, f.Name, u)
			if err != nil {
				t.Errorf("%s, %d parties: %v", f.Name, n, err)
				continue
			}
			if want := got.NeedWithProvedKeys(s.keyChallenges(n)); got.NeedLog2 != want {
				t.Errorf("%s, %d parties: needs %v bits, want %v", f.Name, n, got.NeedLog2, want)
			}
			honest, err := Resolve(s, f.Name, u)
			if err != nil {
				t.Fatal(err)
			}
			if got.Hash() == honest.Hash() || got.PhaseBound.Cmp(honest.PhaseBound) <= 0 || got.DDecPrimes < honest.DDecPrimes {
				t.Errorf("%s, %d parties: keys that were proved are bounded as those of honest parties", f.Name, n)
			}
		}
	}
	i, err := Resolve(proved, "p128", Use{Parties: 3, Dim: 128})
	if err != nil {
		t.Fatal(err)
	}
	if h := i.Hash(); hex.EncodeToString(h[:8]) != "e98587b37f98d3bb" {
		t.Errorf("hash %x", h[:8])
	}
	var miss *DoesNotFit
	if _, err := Resolve(lookup(t, "S14-64").Proved(), "p128", Use{Parties: 3, Dim: 128}); !errors.As(err, &miss) || !slices.Equal(miss.Fits, []string{Default}) ||
		!strings.Contains(miss.Reason, "no room for proofs") {
		t.Errorf("a set whose keys cannot be proved: %v", err)
	}
}
