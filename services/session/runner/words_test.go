package runner_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// quiet waits for a message that never comes.
type quiet struct{ s round.Session }

func (r quiet) Wants() []round.Want {
	return r.s.Each(round.Want{Name: "never", MaxBytes: 1, Broadcast: true})
}

func (r quiet) Step(context.Context, round.Inbox) (round.Transition[int], error) {
	return round.Done(0), nil
}

// failing waits at all parties but one, whose own check fails after it has called before. A coin
// toss comes first: all know the session then.
func failing(s round.Session, p round.Party, check string, before func()) (round.Transition[int], error) {
	t, err := round.CoinToss(s, "coin", rand.Reader)
	return round.Then(t, func(context.Context, round.Digest) (round.Transition[int], error) {
		if s.Self == p {
			before()
			return round.Transition[int]{}, &round.Abort{Check: check, Reason: "it does not hold"}
		}
		return round.Next(round.Round[int](quiet{s})), nil
	}), err
}

// A party signs the statement that its check failed. The statement also reaches parties to which it
// has no connection.
func TestSignedWords(t *testing.T) {
	net := testnet.New(t, 3, testnet.Options{})
	opts := all(t, net, slow)
	ends := play(t.Context(), opts, func(p int) runner.Start[int] {
		return func(s round.Session) (round.Transition[int], error) {
			return failing(s, 2, "mac", func() { // from now on party 0 learns about party 2 only from party 1
				for _, link := range []*testnet.Proxy{net.Link(2, 0), net.Link(0, 2)} {
					link.Refuse(true)
					link.Cut()
				}
			})
		}
	})
	for p := range 2 {
		f := ends[p].failure(t)
		if f.Outcome != runner.PeerAbort || len(f.Words) == 0 {
			t.Fatalf("party %d: %v with %d words", p, f, len(f.Words))
		}
		w := f.Words[len(f.Words)-1]
		if w.From != 2 || !w.Rejects("zero", "mac") || w.Rejects("zero") || !w.Farewell.Verify(net.Keys[2], w.Signature) {
			t.Errorf("party %d has the word %+v", p, w)
		}
		if p == 0 && (f.Words[0].From != 1 || f.Words[0].Rejects("mac")) {
			t.Errorf("party 1 is said to have rejected itself: %+v", f.Words[0])
		}
	}
}

// A statement with a wrong signature, or from another session, is attributed to no party.
func TestUnsignedWordsCountForNothing(t *testing.T) {
	for name, forge := range map[string]func(n *testnet.Net, f exchange.Farewell) []byte{
		"no signature":    func(*testnet.Net, exchange.Farewell) []byte { return nil },
		"another's":       func(n *testnet.Net, f exchange.Farewell) []byte { return f.Sign(n.Parties[1].Signer) },
		"another session": func(n *testnet.Net, f exchange.Farewell) []byte { f.Session[0]++; return f.Sign(n.Parties[2].Signer) },
		"another check":   func(n *testnet.Net, f exchange.Farewell) []byte { f.Check = "zero"; return f.Sign(n.Parties[2].Signer) },
		"another outcome": func(n *testnet.Net, f exchange.Farewell) []byte {
			f.Outcome = "timeout"
			return f.Sign(n.Parties[2].Signer)
		},
		"another party": func(n *testnet.Net, f exchange.Farewell) []byte { f.From = 1; return f.Sign(n.Parties[2].Signer) },
	} {
		t.Run(name, func(t *testing.T) {
			net := testnet.New(t, 3, testnet.Options{})
			opts := all(t, net, slow)
			ends := play(t.Context(), opts, func(p int) runner.Start[int] {
				return func(s round.Session) (round.Transition[int], error) {
					if p == 2 {
						f := exchange.Farewell{Protocol: "test", Version: 1, Session: s.ID, From: 2, Outcome: string(runner.Aborted), Check: "mac"}
						word := &exchange.AbortedError{Outcome: f.Outcome, Check: f.Check}
						opts[2].Session.Abort(word, func(*exchange.AbortedError) []byte { return forge(net, f) })
					}
					return round.Next(round.Round[int](quiet{s})), nil
				}
			})
			for p := range 2 {
				f := ends[p].failure(t)
				for _, w := range f.Words {
					if w.From == 2 || w.Rejects("mac", "zero") {
						t.Errorf("party %d has the word %+v", p, w)
					}
				}
				if f.Outcome != runner.PeerAbort {
					t.Errorf("party %d: %v", p, f)
				}
			}
		})
	}
}

// The echo check uses the signatures of the broadcasts, with rounds counted within the chain.
func TestEchoSignaturesAreThoseOfBroadcasts(t *testing.T) {
	net := testnet.New(t, 3, testnet.Options{})
	opts := all(t, net, slow)
	signatures := make([]round.Signatures, 3)
	ends := play(t.Context(), opts, func(p int) runner.Start[round.Digest] {
		return func(s round.Session) (round.Transition[round.Digest], error) {
			signatures[p] = s.Signatures
			return round.CoinToss(s, "coin", rand.Reader)
		}
	})
	rounds := map[string]int{"coin/commit": 0, "coin/open": 2} // an echo is between them
	for p, e := range ends {
		if e.err != nil {
			t.Fatal(e.err)
		}
		seen := 0
		for _, b := range e.report.Broadcasts {
			index, ok := rounds[b.Envelope.Name]
			if !ok {
				continue
			}
			seen++
			signed := round.Signed{
				From: b.Envelope.From, Round: index, Name: b.Envelope.Name, Transcript: b.Envelope.Transcript, Digest: b.Envelope.Digest,
			}
			if !signatures[p].Verify(signed, b.Signature) {
				t.Errorf("party %d: the signature of party %d of %s is refused", p, signed.From, signed.Name)
			}
			if int(signed.From) == p && string(signatures[p].Sign(signed)) != string(b.Signature) {
				t.Errorf("party %d reports another signature of its own %s than the one it sent", p, signed.Name)
			}
			if signed.Round++; signatures[p].Verify(signed, b.Signature) {
				t.Errorf("party %d: the signature of party %d of %s is good in another round", p, signed.From, signed.Name)
			}
		}
		if seen != 6 {
			t.Errorf("party %d has %d signed broadcasts", p, seen)
		}
	}
}
