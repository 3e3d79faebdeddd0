package verdict_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
)

var digest = round.Hash("a result")

// accept is the chain of a party that is ready at once.
func accept(s round.Session) (round.Transition[round.Digest], error) {
	return verdict.Accept(s, digest, func(context.Context) error { return nil }), nil
}

func TestAllAccept(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for p, r := range roundtest.Lockstep(n, accept).OK(t).Results {
			if r != digest {
				t.Errorf("party %d of %d: %x", p, n, r)
			}
		}
	}
}

func TestAnotherResultIsBlamed(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		hooks := byzantine.On(byzantine.New(), verdict.Name, func(d *round.Digest) { d[0] ^= 1 })
		roundtest.Lockstep(n, accept, roundtest.Cheat(1, hooks)).Blamed(t, 1, verdict.Check)
	}
}

// A party that is not ready has said nothing, and nobody has a result.
func TestNobodyIsReleasedBeforeAllAreReady(t *testing.T) {
	refused := errors.New("not ready")
	for _, n := range []int{2, 3, 5} {
		o := roundtest.Lockstep(n, func(s round.Session) (round.Transition[round.Digest], error) {
			if s.Self != 1 {
				return accept(s)
			}
			return verdict.Accept(s, digest, func(context.Context) error { return refused }), nil
		})
		if !errors.Is(o.Errors[1], refused) || o.Sent[1] > 0 {
			t.Errorf("%d parties: party 1 sent %d bytes and ends with %v", n, o.Sent[1], o.Errors[1])
		}
		for p, err := range o.Errors {
			if err == nil {
				t.Errorf("%d parties: party %d has a result", n, p)
			}
		}
	}
}
