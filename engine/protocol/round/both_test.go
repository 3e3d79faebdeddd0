package round_test

import (
	"context"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	rt "github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// streamedAs reveals contents by frames.
func streamedAs(s round.Session, step string) (round.Transition[round.Opened], error) {
	return round.CommitOpenStream(s, round.Streamed{
		Step: step, Body: round.Bytes(content(s.Self)), Limit: func(round.Party) round.Limit { return round.Limit{Frames: 1, Bytes: 8} }, Sink: nothing{},
	}, stream(s.Self, step))
}

type nothing struct{}

func (nothing) Frame(context.Context, round.Party, int, bool, []byte) error { return nil }

// Two chains in one take as many rounds as the longer chain and have separate results, and a cheat
// in either chain is detected.
func TestBoth(t *testing.T) {
	for _, n := range []int{2, 3} {
		long := func(s round.Session) (round.Transition[round.Digest], error) {
			first, err := streamedAs(s, "first")
			if err != nil {
				return round.Transition[round.Digest]{}, err
			}
			return round.Then(first, func(context.Context, round.Opened) (round.Transition[round.Digest], error) { return toss(s) }), nil
		}
		for name, start := range map[string]func(round.Session) (round.Transition[round.Results[round.Opened, round.Digest]], error){
			"the second is longer": func(s round.Session) (tr round.Transition[round.Results[round.Opened, round.Digest]], err error) {
				a, err := reveal(s)
				if err != nil {
					return tr, err
				}
				b, err := long(s)
				return round.Both(a, b), err
			},
			"both stream": func(s round.Session) (tr round.Transition[round.Results[round.Opened, round.Digest]], err error) {
				a, err := streamedAs(s, "open")
				if err != nil {
					return tr, err
				}
				b, err := long(s)
				return round.Both(a, b), err
			},
		} {
			alone := rt.Lockstep(n, long).OK(t)
			out := rt.Lockstep(n, start).OK(t)
			if out.Rounds != alone.Rounds || out.Results[0].Second != out.Results[1].Second || out.Results[0].First.Agreed != out.Results[1].First.Agreed {
				t.Errorf("%d parties, %s: %d rounds, want %d, or two results", n, name, out.Rounds, alone.Rounds)
			}
			for _, message := range []string{"open/open", "first/open", "coin/open"} {
				rt.Lockstep(n, start, rt.Rewrite(1, message, rt.Flip(-1))).Blamed(t, 1, round.CheckCommitment)
			}
		}
		done := rt.Lockstep(n, func(round.Session) (round.Transition[round.Results[int, string]], error) {
			return round.Both(round.Done(1), round.Done("x")), nil
		}).OK(t)
		if done.Results[0] != (round.Results[int, string]{First: 1, Second: "x"}) {
			t.Error(done.Results[0])
		}
	}
}
