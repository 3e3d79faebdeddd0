package keygen

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// bit changes a bit of a streamed message.
func bit(b *round.Body) {
	inner := *b
	*b = round.Frames(inner.Frames(), func(i int) ([]byte, error) {
		f, err := inner.Frame(i)
		if i == 0 && err == nil {
			f = bytes.Clone(f)
			f[0] ^= 1
		}
		return f, err
	})
}

// The last party cheats at each message of key generation, and a check detects it. Shares that are
// wrong from the start pass: see TestScaledSharesPassEveryCheck.
func TestCheatsAtEveryMessage(t *testing.T) {
	s := testScheme(t, "insecure-6")
	seed := func(b *[]byte) {
		*b = bytes.Clone(*b)
		(*b)[0] ^= 1
	}
	for _, c := range []struct {
		hook  string
		set   func(h byzantine.Hooks, name string)
		check string // empty if the cheat passes
		blame bool
	}{
		// A seed that was chosen before the other seeds were known is as good as any.
		{stepSeed + "/commit", func(h byzantine.Hooks, name string) { byzantine.On(h, name, seed) }, "", false},
		{stepSeed + "/open", func(h byzantine.Hooks, name string) { byzantine.On(h, name, seed) }, round.CheckCommitment, true},
		{stepFirst + "/open", func(h byzantine.Hooks, name string) { byzantine.On(h, name, bit) }, round.CheckCommitment, true},
		{stepSecond + "/open", func(h byzantine.Hooks, name string) { byzantine.On(h, name, bit) }, round.CheckCommitment, true},
		// The culprit adds up other values than it sent, and so obtains different keys from the
		// others.
		{stepFirst + "/commit", func(h byzantine.Hooks, name string) { byzantine.On(h, name, bit) }, CheckAgree, false},
		{stepSecond + "/commit", func(h byzantine.Hooks, name string) { byzantine.On(h, name, bit) }, CheckAgree, false},
	} {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprint(c.hook, ", ", n, " parties"), func(t *testing.T) {
				h, culprit := byzantine.New(), round.Party(n-1)
				c.set(h, c.hook)
				out := run(s, n, 1, roundtest.Cheat(culprit, h))
				switch {
				case c.check == "":
					out.OK(t)
				case c.blame:
					out.Blamed(t, culprit, c.check)
				default:
					out.Aborted(t, culprit, c.check)
				}
				if h.Fired(c.hook) != 1 {
					t.Errorf("hook %s ran %d times", c.hook, h.Fired(c.hook))
				}
			})
		}
	}
}

// If a party sends one version of a broadcast to one party and another to the rest, this is
// detected before anything depends on it, in every round.
func TestEquivocationIsSeen(t *testing.T) {
	s := testScheme(t, "insecure-6")
	for kind, c := range map[string]struct {
		run   func(s *gbfv.Scheme, n, dim int, options ...roundtest.Option) *roundtest.Outcome[Result]
		names []string
	}{
		Passive: {run, []string{stepSeed + "/commit", stepSeed + "/open", stepFirst + "/commit", stepFirst + "/open", stepSecond + "/commit", stepSecond + "/open", nameAgree}},
		Proved:  {runProved, []string{stepRelin + "/commit", stepRelin + "/open", stepStatement + "/commit", stepStatement + "/open", nameProofs, nameAgree}},
	} {
		for _, name := range c.names {
			t.Run(kind+" "+name, func(t *testing.T) {
				c.run(s, 3, 2, roundtest.Link(2, 0, name, roundtest.Flip(0))).Aborted(t, 2, round.CheckEcho)
			})
		}
	}
}

// Keys recorded in one session do not open their commitments in another session.
func TestReplayedKeysAreRefused(t *testing.T) {
	s := testScheme(t, "insecure-6")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		first := run(s, n, 1, roundtest.Record()).OK(t)
		options := []roundtest.Option{roundtest.ID(round.Hash("a later session"))}
		for _, name := range []string{stepFirst + "/commit", stepFirst + "/open"} {
			options = append(options, roundtest.Rewrite(culprit, name, roundtest.Replay(first.Recording, culprit, 0, name)))
		}
		run(s, n, 1, options...).Blamed(t, culprit, round.CheckCommitment)
	}
}
