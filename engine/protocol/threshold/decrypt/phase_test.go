package decrypt

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
)

func rounded(eta int, u, q uint64) uint64 {
	v := new(big.Int).Lsh(new(big.Int).SetUint64(u), uint(eta))
	v.Add(v, new(big.Int).SetUint64(q/2))
	v.Div(v, new(big.Int).SetUint64(q))
	return v.Mod(v, new(big.Int).Lsh(big.NewInt(1), uint(eta))).Uint64()
}

// The switch is exact for all residues of small moduli, and for many residues of large moduli,
// including both ends.
func TestSwitch(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	for _, q := range []uint64{5, 17, 257, 1 << 8, 1 << 10, q20, 1 << 32, q50, 1 << 50, q53, 1<<58 - 27, 1 << 58} {
		top := PaperKind(q, 2).LogEta
		for eta := 3; eta <= top; eta += 1 + top/9 {
			s, err := newSwitcher(Params{Modulus: q, Kind: masks.Kind{LogEta: eta}})
			if err != nil {
				t.Fatal(err)
			}
			test := func(u uint64) {
				if got, want := s.round(u), rounded(eta, u, q); got != want {
					t.Fatalf("%d modulo %d to 2^%d: %d, want %d", u, q, eta, got, want)
				}
			}
			if q < 2000 {
				for u := range q {
					test(u)
				}
				continue
			}
			for i := range uint64(300) {
				test(i)
				test(q - 1 - i)
				test(g.Uint64N(q))
				// near the middle between two values
				test(min(q-1, uint64(float64(q)/math.Exp2(float64(eta))*(float64(g.Uint64N(1<<eta))+0.5))))
			}
		}
	}
}

// Shares of phases are correct for every modulus. A value that is not a residue is rejected in
// every position.
func TestShares(t *testing.T) {
	g := rand.New(rand.NewPCG(2, 2))
	for _, q := range []uint64{5, 1 << 5, q20, q50, 1 << 50, q53, 1 << 61, 1<<61 - 1} {
		for _, n := range []int{1, 7, 40, 2048} {
			k := PaperKind(q, 2)
			s, err := newSwitcher(Params{Modulus: q, Dimension: n, Kind: k})
			if err != nil {
				t.Fatal(err)
			}
			a, secret, sum := make([]uint64, n), make([]uint64, n), new(big.Int)
			for i := range a {
				a[i], secret[i] = g.Uint64N(q), q-1-g.Uint64N(2)
				sum.Sub(sum, new(big.Int).Mul(new(big.Int).SetUint64(a[i]), new(big.Int).SetUint64(secret[i])))
			}
			for first, b := range map[bool]uint64{true: g.Uint64N(q), false: 0} {
				u := new(big.Int).Add(sum, new(big.Int).SetUint64(b))
				u.Mod(u, new(big.Int).SetUint64(q))
				got, err := s.share(a, g.Uint64N(q)*(1-bit(first))+b, secret, first)
				if err != nil || got != rounded(k.LogEta, u.Uint64(), q) {
					t.Fatalf("%d terms modulo %d: %d, %v", n, q, got, err)
				}
			}
			for _, bad := range []uint64{q, q + 1, 1 << 63, 1<<63 + q, math.MaxUint64} {
				at := g.IntN(n)
				good := a[at]
				a[at] = bad
				if _, err := s.share(a, 0, secret, true); !errors.Is(err, ErrCiphertext) {
					t.Errorf("accepted %d modulo %d: %v", bad, q, err)
				}
				a[at] = good
				if _, err := s.share(a, bad, secret, false); !errors.Is(err, ErrCiphertext) {
					t.Errorf("accepted %d modulo %d: %v", bad, q, err)
				}
			}
		}
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func TestParamsAreRefused(t *testing.T) {
	good := Params{Modulus: q50, Dimension: 2048, LogP: 4, Parties: 2, Kind: PaperKind(q50, 4)}
	for name, change := range map[string]func(*Params){
		"no kind":            func(p *Params) { p.Kind = masks.Kind{} },
		"even modulus":       func(p *Params) { p.Modulus = q50 - 1 },
		"modulus 0":          func(p *Params) { p.Modulus = 0 },
		"modulus 1":          func(p *Params) { p.Modulus = 1 },
		"large modulus":      func(p *Params) { p.Modulus = 1 << 62 },
		"no dimension":       func(p *Params) { p.Dimension = 0 },
		"negative dimension": func(p *Params) { p.Dimension = -1 },
		"one party":          func(p *Params) { p.Parties = 1 },
		"other plaintexts":   func(p *Params) { p.LogP = 5 },
		"eta above Q":        func(p *Params) { p.Kind = PaperKind(q53, 4) },
	} {
		p := good
		change(&p)
		if err := p.Check(); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Combine(p, 1, make([][]byte, 2)); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range []Params{good, {Modulus: 1 << 50, Dimension: 1, LogP: 2, Parties: 7, Kind: PaperKind(1<<50, 2)}} {
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
}

// The kinds of the exact form are as expected for our moduli, and no smaller kind suffices.
func TestExactKind(t *testing.T) {
	for _, c := range []struct {
		q       uint64
		parties int
		bound   float64
		logPhi  int
	}{
		{q50, 2, 0, 2}, {q50, 2, math.Exp2(40), 2}, {q50, 2, math.Exp2(44), 3}, {q50, 4, math.Exp2(44), 4},
		{q50, 7, math.Exp2(44), 4},
		{q53, 7, math.Exp2(47), 4}, {q53, 2, math.Exp2(47.9), 5}, {1 << 50, 2, math.Exp2(44), 3}, {q20, 3, 30000, 6},
		{1 << 20, 3, 30000, 6},
	} {
		k, err := ExactKind(c.q, 4, c.parties, c.bound)
		if err != nil || k.LogPhi != c.logPhi || k.LogP() != 4 || k.Form != masks.Exact {
			t.Errorf("%d, %d parties, noise %g: %v, %v", c.q, c.parties, c.bound, k, err)
			continue
		}
		smaller := masks.Kind{Form: masks.Exact, LogEta: k.LogEta - 1, LogPhi: k.LogPhi - 1}
		if MaxNoise(k, c.q, c.parties) < c.bound || k.LogPhi > 1 && MaxNoise(smaller, c.q, c.parties) >= c.bound {
			t.Errorf("%d, %d parties: %v for noise %g", c.q, c.parties, k, c.bound)
		}
	}
	for _, bound := range []float64{float64(q50) / 32, math.Inf(1)} {
		if k, err := ExactKind(q50, 4, 2, bound); !errors.Is(err, ErrParams) {
			t.Errorf("%g: %v, %v", bound, k, err)
		}
	}
}
