package popk

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// The joint equation failed. It is the sum of the parties' equations, so at least one of those fails: each
// party's messages are replayed from the spool and checked alone, in the order of the roster.

// blameFrom starts with party p or the first one after it that is not this one.
func blameFrom(c Config, w sigma.Challenge, p round.Party) round.Transition[Result] {
	if p == c.Session.Self {
		p++
	}
	if int(p) >= c.Session.Parties {
		return round.Next(round.Local(func(context.Context) (round.Transition[Result], error) {
			return round.Transition[Result]{}, &round.Abort{
				Check:    CheckEquation,
				Reason:   "the joint equation fails and every other party's holds",
				Suspects: []round.Party{c.Session.Self},
			}
		}))
	}
	s := c.Scheme
	b := &blame{Config: c, challenge: w, party: p, buffer: s.Q.NewPoly(), answer: newResponse(s.N(), c.sizes())}
	for range w.Repetitions() {
		b.left = append(b.left, s.NewCiphertext())
		b.right = append(b.right, s.NewCiphertext())
	}
	return round.Next(round.Round[Result](b))
}

// blame checks one party's equations.
type blame struct {
	Config
	challenge   sigma.Challenge
	party       round.Party
	left, right []*gbfv.Ciphertext // Enc(z_j; t_j) and comm_j + sum_i w_ij ct_i
	buffer      ring.Poly
	answer      response
}

func (b *blame) Wants() []round.Want {
	response := b.responseWant()
	response.From, response.Broadcast, response.Spool, response.Replay = b.party, false, false, true
	return []round.Want{round.Replayed(b.statementName(), b.party, b.statementLimit()), response}
}

func (b *blame) Frame(_ context.Context, from round.Party, name string, index int, _ bool, frame []byte) error {
	if name == b.responseName() {
		if err := b.answer.decode(b.sizes(), frame); err != nil {
			return round.Malformed(from, err)
		}
		b.left[index] = encryption(b.Scheme, b.Key, b.answer.z, b.answer.t)
		return nil
	}
	if index == 0 {
		return nil // the nonce of the commitment
	}
	index--
	if err := codec.DecodePoly(b.buffer.C, b.Scheme.Q.Primes(), frame); err != nil {
		return round.Malformed(from, err)
	}
	u := b.challenge.Witnesses()
	i := index / 2
	for j, ct := range b.right {
		p := ring.Poly{C: part([]*gbfv.Ciphertext{ct}, index%2)}
		switch {
		case i < u:
			b.Scheme.Q.AddMonomial(p, b.buffer, b.challenge.At(j, i))
		case i-u == j:
			b.Scheme.Q.Add(p, p, b.buffer)
		}
	}
	return nil
}

func (b *blame) Step(context.Context, round.Inbox) (round.Transition[Result], error) {
	for j := range b.left {
		if !b.left[j].Equal(b.right[j]) {
			return round.Transition[Result]{}, &round.Blame{
				Party: b.party, Check: CheckEquation, Reason: "responses do not open the combination of ciphertexts and masks",
			}
		}
	}
	return blameFrom(b.Config, b.challenge, b.party+1), nil
}
