package keygen

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// runProved runs key generation with proofs, the default for sets that support them.
func runProved(s *gbfv.Scheme, n, dim int, options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(n, func(rs round.Session) (round.Transition[Result], error) {
		return Start(Config{Session: rs, Scheme: s, Dim: dim, Source: source("run", rs.Self), Workers: 2})
	}, options...)
}

// works fails the test unless keys encrypt, multiply and rotate under the sum of the secrets.
func works(t *testing.T, s *gbfv.Scheme, results []Result, dim int) {
	t.Helper()
	secret, keys, f := joint(s, results), results[0].Keys, s.Field
	for _, r := range results {
		if r.Keys.Digest(s, 2) != keys.Digest(s, 2) {
			t.Fatal("parties have different keys")
		}
	}
	a, b := f.NewVec(s.Slots()), f.NewVec(s.Slots())
	for i, v := range []field.Vec{a, b} {
		if err := f.Random(v, source("slots", 0).Stream("v", uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	cta, ctb := encrypt(t, s, keys.Public, a, "a"), encrypt(t, s, keys.Public, b, "b")
	got, want := f.NewVec(s.Slots()), f.NewVec(s.Slots())
	if s.Decrypt(got, cta, secret); !f.EqualVec(got, a) {
		t.Fatal("the public key does not belong to the secret")
	}
	e := gbfv.NewEvaluator(s, keys.Keys(s))
	f.MulVec(want, a, b)
	if s.Decrypt(got, e.Mul(e.Left(cta), e.Right(ctb)), secret); !f.EqualVec(got, want) {
		t.Error("the relinearisation key is wrong")
	}
	for i := 1; i < dim; i++ {
		rotated, err := e.Rotate(cta, i, dim)
		if err != nil {
			t.Fatal(err)
		}
		for k := range s.Slots() {
			copy(want.At(k), a.At((k+i*s.Slots()/dim)%s.Slots()))
		}
		if s.Decrypt(got, rotated, secret); !f.EqualVec(got, want) {
			t.Errorf("rotation key %d is wrong", i)
		}
	}
}

func TestProvedKeysWork(t *testing.T) {
	for _, c := range []struct {
		set    string
		n, dim int
	}{{"insecure-6", 2, 1}, {"insecure-6", 3, 4}, {"insecure-8", 2, 8}, {"insecure-8", 3, 8}, {"insecure-8", 5, 2}, {"insecure-11", 2, 4}, {"S14-32", 2, 2}} {
		t.Run(fmt.Sprint(c.set, " ", c.n), func(t *testing.T) {
			s := testScheme(t, c.set)
			out := runProved(s, c.n, c.dim).OK(t)
			works(t, s, out.Results, c.dim)
			for _, r := range out.Results {
				if r.Security != Proved {
					t.Errorf("the result has security %q", r.Security)
				}
				for _, x := range r.Secret {
					if x%2 != 0 {
						t.Fatal("a share of the secret is not doubled")
					}
				}
			}
		})
	}
}

// The keys of a run with proofs are the keys of the same run without proofs, doubled as the proofs
// require.
func TestProvedKeysAreDoubled(t *testing.T) {
	const n, dim = 3, 4
	s := testScheme(t, "insecure-8")
	passive, proved := run(s, n, dim).OK(t).Results, runProved(s, n, dim).OK(t).Results
	for p := range passive {
		if passive[p].Security != Passive {
			t.Errorf("the result has security %q", passive[p].Security)
		}
		for i, x := range passive[p].Secret {
			if proved[p].Secret[i] != 2*x {
				t.Fatal("the secrets differ")
			}
		}
	}
	// Both runs sample the same secrets and errors, and have the same seed because session and
	// sources are the same.
	a, b := passive[0].Keys, proved[0].Keys
	if a.Seed != b.Seed {
		t.Fatal("the reference strings differ")
	}
	times := func(factor int, x ring.NTT) ring.NTT {
		sum := s.Q.NewNTT()
		for range factor {
			s.Q.AddNTT(sum, sum, x)
		}
		return sum
	}
	if !b.Public.P0.Equal(times(2, a.Public.P0)) || !b.Public.P1.Equal(a.Public.P1) {
		t.Error("the public key is not (2 p0, a)")
	}
	for g, list := range a.K0 {
		for j := range list {
			if !b.K0[g][j].Equal(times(2, list[j])) {
				t.Errorf("rotation key %d, digit %d, is not (2 k0, a)", g, j)
			}
		}
	}
	for j := range a.Relin.K0 {
		if !b.Relin.K0[j].Equal(times(4, a.Relin.K0[j])) || !b.Relin.K1[j].Equal(times(2, a.Relin.K1[j])) {
			t.Errorf("digit %d of the relinearisation key is not (4 k0, 2 H1)", j)
		}
	}
}

// The test checks the default security of a run, and the options that a set does not support.
func TestSecurityOfARun(t *testing.T) {
	if got := run2(testScheme(t, "insecure-8-64"), "").OK(t).Results[0].Security; got != Passive {
		t.Errorf("a set without proofs of keys has security %q", got)
	}
	if got := run2(testScheme(t, "insecure-6"), "").OK(t).Results[0].Security; got != Proved {
		t.Errorf("a set with proofs of keys has security %q", got)
	}
	for set, security := range map[string]string{"insecure-8-64": Proved, "insecure-6": "active"} {
		s := testScheme(t, set)
		if _, err := Start(Config{Session: round.Session{Parties: 2}, Scheme: s, Dim: 1, Security: security, Source: source("x", 0)}); err == nil {
			t.Errorf("got %s keys of %s", security, set)
		}
	}
}

func run2(s *gbfv.Scheme, security string) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(2, func(rs round.Session) (round.Transition[Result], error) {
		return Start(Config{Session: rs, Scheme: s, Dim: 2, Security: security, Source: source("run", rs.Self), Workers: 2})
	})
}

// Parties with different security settings do not obtain keys.
func TestModesAreNotMixed(t *testing.T) {
	s := testScheme(t, "insecure-6")
	out := roundtest.Lockstep(2, func(rs round.Session) (round.Transition[Result], error) {
		return Start(Config{
			Session: rs, Scheme: s, Dim: 2, Security: []string{Passive, Proved}[rs.Self], Source: source("run", rs.Self), Workers: 2,
		})
	})
	for p, err := range out.Errors {
		if err == nil {
			t.Errorf("party %d has keys", p)
		}
	}
}

// This test makes keys for matrices of 128 x 128 under the default set, at full size: 521
// equations.
func TestProvedKeysOfFullSize(t *testing.T) {
	var cases []longtest.Case
	for _, n := range []int{2, 3} {
		cases = append(cases, longtest.Case{Name: fmt.Sprint(n, " parties"), Run: func(t *testing.T) {
			s := testScheme(t, "S14-32")
			out := runProved(s, n, 128).OK(t)
			if most := int64(1500e6); out.Sent[0] > most {
				t.Errorf("a party sends %d bytes, more than %d", out.Sent[0], most)
			}
			works(t, s, out.Results, 4)
		}})
	}
	longtest.Run(t, cases)
}
