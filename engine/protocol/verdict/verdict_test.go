package verdict_test

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
)

var digest = round.Hash("a result")

// accept starts a party that is ready at once.
func accept(s round.Session) (round.Transition[round.Digest], error) {
	return verdict.Accept(s, digest), nil
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
		hooks := byzantine.On(byzantine.New(), verdict.Name, func(d []byte) { d[0] ^= 1 })
		roundtest.Lockstep(n, accept, roundtest.Cheat(1, hooks)).Blamed(t, 1, verdict.Check)
	}
}
