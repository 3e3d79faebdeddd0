package keygen

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The last party waits for the others' shares and opens its chosen public key minus their sum.
func rogue(s *gbfv.Scheme, n int, own ring.Poly) (byzantine.Hooks, *roundtest.View) {
	v := &roundtest.View{}
	h := byzantine.On(byzantine.New(), stepFirst+"/open", func(b *round.Body) {
		list := make([][]byte, (*b).Frames())
		for i := range list {
			list[i], _ = (*b).Frame(i)
		}
		list[0] = codec.AppendPoly(nil, minusOthers(s, v, round.Party(n-1), 0, own).C, s.Q.Primes())
		*b = round.Frames(len(list), func(i int) ([]byte, error) { return list[i], nil })
	})
	return h, v
}

func TestARogueKeyShareIsRefused(t *testing.T) {
	s := testScheme(t, "insecure-6")
	own := s.Q.NewPoly()
	sample.Expand(own.C, s.Q.Primes(), bytes.Repeat([]byte{9}, 32), "a key of the last party's own")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		h, v := rogue(s, n, own)
		run(s, n, 1, roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v)).Blamed(t, culprit, round.CheckCommitment)

		// Without the commitment the attack succeeds: the last party chooses the joint public key.
		// (The culprit of this test computes its own keys from its honest share, so the test also
		// disables the comparison of keys.)
		h, v = rogue(s, n, own)
		options := []roundtest.Option{roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v)}
		for p := range culprit {
			options = append(options, roundtest.Watch(p, byzantine.New().Skip(round.CheckCommitment).Skip(CheckAgree)))
		}
		out := run(s, n, 1, options...)
		got := s.Q.NewPoly()
		if out.Errors[0] != nil {
			t.Fatal(out.Errors[0])
		}
		if s.Q.Inverse(got, out.Results[0].Keys.Public.P0); !got.Equal(own) {
			t.Errorf("%d parties: the experiment without commitments does not fix the key", n)
		}
	}
}

// The attack on the first part of the relinearisation key: the last party waits for the others' h0
// and h1. For every digit it makes the sum of all h0 a constant K and the sum of all h1 zero. The
// second part of an honest party, s H0 + (u-s) H1 + e, is then K s + e. Sending the sum of the two
// terms does not help, because H1 = 0 removes u. Rounding K s + e by K reveals s. The commitment
// prevents this attack.
func TestARushingPeerInTheRelinearisationKeyIsRefused(t *testing.T) {
	s := testScheme(t, "insecure-6")
	digits := s.GadgetDigits()
	k := new(big.Int).Rsh(s.Q.Modulus(), 30) // larger than the errors, and K s does not wrap
	constant := s.Q.NewPoly()
	coefficients := make([]*big.Int, s.N())
	for i := range coefficients {
		coefficients[i] = new(big.Int)
	}
	coefficients[0].Set(k)
	s.Q.FromBig(constant, coefficients)
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		attack := func() (byzantine.Hooks, *roundtest.View) {
			v := &roundtest.View{}
			return byzantine.On(byzantine.New(), stepFirst+"/open", func(b *round.Body) {
				list := make([][]byte, (*b).Frames())
				for i := range list {
					list[i], _ = (*b).Frame(i)
					target := s.Q.NewPoly()
					switch {
					case i < 1: // the public key; without rotation keys, h0 and h1 follow
						continue
					case i < 1+digits:
						target = constant.Clone()
					}
					list[i] = codec.AppendPoly(nil, minusOthers(s, v, culprit, i, target).C, s.Q.Primes())
				}
				*b = round.Frames(len(list), func(i int) ([]byte, error) { return list[i], nil })
			}), v
		}
		h, v := attack()
		run(s, n, 1, roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v)).Blamed(t, culprit, round.CheckCommitment)

		h, v = attack()
		secrets := make([][]int64, culprit)
		options := []roundtest.Option{roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v), roundtest.Record()}
		for p := range culprit {
			watch := byzantine.New().Skip(round.CheckCommitment)
			options = append(options, roundtest.Watch(p, byzantine.On(watch, "keygen/party", func(x *party) { secrets[p] = slices.Clone(x.secret) })))
		}
		out := run(s, n, 1, options...)
		for p, secret := range secrets {
			second := out.Recording.Frames(round.Party(p), culprit, stepSecond+"/open")
			for j := range digits {
				share := s.Q.NewPoly()
				if err := codec.DecodePoly(share.C, s.Q.Primes(), second[1+j]); err != nil {
					t.Fatal(err)
				}
				half := new(big.Int).Rsh(k, 1)
				for i, c := range s.Q.ToBig(share) {
					c.Add(c, half)
					if got := c.Div(c, k).Int64(); got != secret[i] {
						t.Fatalf("%d parties: coefficient %d of the secret of %d is %d, the experiment without commitments finds %d", n, i, p, secret[i], got)
					}
				}
			}
		}
	}
}

// minusOthers returns target minus the others' polynomials at place i of their openings in the
// first round.
func minusOthers(s *gbfv.Scheme, v *roundtest.View, self round.Party, i int, target ring.Poly) ring.Poly {
	sum, p := target.Clone(), s.Q.NewPoly()
	for from := range self {
		if err := codec.DecodePoly(p.C, s.Q.Primes(), v.Frames(from, self, stepFirst+"/open")[1+i]); err != nil {
			panic(err)
		}
		s.Q.Sub(sum, sum, p)
	}
	return sum
}
