package ddec

import (
	"bytes"
	"fmt"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

var seed = bytes.Repeat([]byte{9}, 32)

// extreme returns a polynomial with coefficients of absolute value bound and signs that alternate
// by column of P = X^D-b: P times it has the largest possible coefficients.
func extreme(s *gbfv.Scheme, bound *big.Int) intpoly.Poly {
	e := intpoly.New(s.N(), (bound.BitLen()+1+64)/64)
	for k := range s.N() {
		v := new(big.Int).Set(bound)
		if k/s.Slots()%2 == 1 {
			v.Neg(v)
		}
		e.SetBig(k, v)
	}
	return e
}

// TestSharesAtTheLimits runs the protocol on ciphertexts whose phase error is the bound in every
// coefficient while all parties flood with +-E: the shares sum to the messages. With three more
// than E they do not.
func TestSharesAtTheLimits(t *testing.T) {
	for _, c := range []struct {
		set, field string
		parties    int
	}{
		{"insecure-6", "p512", 2}, {"insecure-8", "p128", 3}, {"insecure-8-64", "p256", 5}, {"insecure-8-16", "p128", 2},
		{"insecure-8", "p64", 16}, {params.Default, "p128", 3},
	} {
		t.Run(fmt.Sprintf("%s/%s/n=%d", c.set, c.field, c.parties), func(t *testing.T) {
			set, err := params.Lookup(c.set)
			if err != nil {
				t.Fatal(err)
			}
			inst, err := params.Resolve(set, c.field, params.Use{Parties: c.parties, Dim: 1})
			if err != nil {
				t.Fatal(err)
			}
			s, err := gbfv.New(set, inst.Field)
			if err != nil {
				t.Fatal(err)
			}
			l := limits{s, inst, gbfvtest.New(s, c.parties, 1, seed)}
			if wrong := l.wrong(t, inst.FloodBound); wrong != 0 {
				t.Errorf("%d of the messages are wrong at the limit", wrong)
			}
			over := new(big.Int).Add(inst.FloodBound, big.NewInt(3))
			if wrong := l.wrong(t, over); wrong != messages {
				t.Errorf("%d of %d messages are wrong beyond the limit", wrong, messages)
			}
		})
	}
}

const messages = 2

type limits struct {
	*gbfv.Scheme
	inst *params.Instance
	key  *gbfvtest.Key
}

// wrong counts the ciphertexts that decrypt incorrectly if every party floods with flood.
func (l limits) wrong(t *testing.T, flood *big.Int) (wrong int) {
	s, f, primes := l.Scheme, l.Field, l.inst.DDecPrimes
	b := s.Prefix(primes)
	list := make([]*gbfv.Ciphertext, messages)
	for i := range list {
		list[i] = l.ciphertext(uint64(i))
	}
	source := func(p round.Party) *sample.Source { return sample.NewSource(seed).Sub("party", uint64(p)) }
	var hooks []roundtest.Option
	for p := range round.Party(l.inst.Use.Parties) {
		h := byzantine.On(byzantine.New(), "test/share", func(shares []ring.Poly) {
			own, e := intpoly.New(s.N(), (l.inst.FloodBound.BitLen()+1+64)/64), b.NewPoly()
			for k := range shares { // instead of the party's flood
				sample.Flood(own, l.inst.FloodBound, source(p).Stream("flood", uint64(k)))
				b.FromInt(e, own)
				b.Sub(shares[k], shares[k], e)
				b.FromInt(e, extreme(s, flood))
				b.Add(shares[k], shares[k], e)
			}
		})
		hooks = append(hooks, roundtest.Watch(p, h))
	}
	out := roundtest.Lockstep(l.inst.Use.Parties, func(session round.Session) (round.Transition[Shares], error) {
		return Start(Config{
			Session: session, Step: "test", Scheme: s, Instance: l.inst, Ciphertexts: list,
			Secret: l.key.Shares[session.Self], Source: source(session.Self), Workers: 2,
		})
	}, hooks...)
	for p, err := range out.Errors {
		if err != nil {
			t.Fatalf("party %d: %v", p, err)
		}
	}
	for i := range list {
		sum := f.NewVec(s.Slots())
		for _, shares := range out.Results {
			f.AddVec(sum, sum, shares[i])
		}
		if !f.EqualVec(sum, l.key.Random(uint64(i))) {
			wrong++
		}
	}
	return wrong
}

// ciphertext encrypts a message after the switch to the small modulus, and replaces the phase error
// by the largest one.
func (l limits) ciphertext(i uint64) *gbfv.Ciphertext {
	s, primes := l.Scheme, l.inst.DDecPrimes
	b := s.Prefix(primes)
	message := l.key.Random(i)
	ct := s.SwitchModulus(l.key.Encrypt(message, i), primes)
	coeffs, phase, t := s.Field.NewVec(s.Slots()), b.NewPoly(), b.NewPoly()
	s.Pack.Pack(coeffs, message)
	s.Phase(phase, ct, l.key.Secret, primes)
	b.Sub(ct.C0, ct.C0, phase)
	s.ScalePlain(t, coeffs, primes)
	b.Add(ct.C0, ct.C0, t)
	b.FromInt(t, extreme(s, l.inst.PhaseBound))
	b.Add(ct.C0, ct.C0, t)
	return ct
}
