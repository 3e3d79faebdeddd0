package popk

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// alone returns a bench in which one party proves.
func alone(b *bench, prover round.Party) *bench {
	b.only = &prover
	return b
}

// One party proves: every party receives its ciphertexts, the prover keeps the messages, and the
// other parties have zero shares and send only a few bytes.
func TestOneProver(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for _, prover := range []round.Party{0, round.Party(n / 2), round.Party(n - 1)} {
			for _, b := range []*bench{alone(newBench(t, n), prover), alone(newFoldedBench(t, n), prover)} {
				out := b.run(false, nil).OK(t)
				f := b.scheme.Field
				for i, ct := range out.Results[0].Ciphertexts {
					for p, r := range out.Results {
						if !r.Ciphertexts[i].Equal(ct) {
							t.Fatal("parties have different ciphertexts")
						}
						if round.Party(p) != prover && (r.Shares[i].Len() != b.scheme.Slots() || !f.EqualVec(r.Shares[i], f.NewVec(b.scheme.Slots()))) {
							t.Errorf("party %d, which proves nothing, has a share", p)
						}
					}
					if got := b.key.Decrypt(ct); !f.EqualVec(got, out.Results[prover].Shares[i]) || f.EqualVec(got, f.NewVec(got.Len())) {
						t.Errorf("%d parties, %d proves: ciphertext %d is not of its message", n, prover, i)
					}
				}
				for p, sent := range out.Sent {
					if round.Party(p) != prover && sent > 1<<10*int64(n*n) {
						t.Errorf("%d parties, %d proves: party %d sends %d bytes", n, prover, p, sent)
					}
				}
			}
		}
	}
}

// The challenge depends on the nonces of the verifying parties, so that no prover knows it in
// advance.
func TestTheChallengeDependsOnEveryNonce(t *testing.T) {
	for _, n := range []int{2, 3} {
		b := alone(newBench(t, n), 0)
		var first [][]byte
		for _, label := range []string{"a nonce", "another", "a nonce"} {
			out := b.run(false, func(c *Config) { c.Source = testSource(label) }, roundtest.Record()).OK(t)
			sent := func(name string) [][]byte { return out.Recording.Frames(0, 1, name) }
			answers := sent("p/response")
			if first == nil {
				first = append(sent("p/statement/open"), answers...)
			}
			if !slices.EqualFunc(first[:1], sent("p/statement/open"), bytes.Equal) {
				t.Fatal("the prover states something else")
			}
			if same := slices.EqualFunc(first[1:], answers, bytes.Equal); same != (label == "a nonce") {
				t.Errorf("%d parties, %s: the same answer: %v", n, label, same)
			}
		}
	}
}

// Faults of the verifying parties are detected and blamed.
func TestCheatsOfAVerifier(t *testing.T) {
	for _, n := range []int{2, 3} {
		b, culprit := alone(newBench(t, n), 0), round.Party(n-1)
		const commit, open = "p/statement/commit", "p/statement/open"
		for _, c := range []struct {
			name  string
			cheat roundtest.Option
			check string
		}{
			{"another nonce after the commitment", roundtest.Rewrite(culprit, open, roundtest.Flip(0)), round.CheckCommitment},
			{"a truncated nonce", roundtest.Rewrite(culprit, open, roundtest.Truncate(1)), round.CheckCommitment},
			{"a statement", roundtest.Rewrite(culprit, open, roundtest.Extend(statementSize(b.instance.Proof))), round.CheckSize},
			{"a truncated commitment", roundtest.Rewrite(culprit, commit, roundtest.Truncate(1)), round.CheckShape},
			{"ciphertexts", roundtest.Deliver(culprit, round.All, open, roundtest.Renamed("p/ciphertexts")), round.CheckShape},
		} {
			t.Run(fmt.Sprint(c.name, ", ", n, " parties"), func(t *testing.T) { b.run(false, nil, c.cheat).Blamed(t, culprit, c.check) })
		}
		b.run(false, nil, roundtest.Rewrite(culprit, open, roundtest.Drop)).Stalls(t, culprit, open)
		if n == 2 {
			continue
		}
		for _, name := range []string{commit, open} {
			b.run(false, nil, roundtest.Link(culprit, 0, name, roundtest.Flip(0))).Aborted(t, culprit, round.CheckEcho)
		}
	}
}

// Start rejects a single prover outside the session and a single prover of a MAC key.
func TestSingleProverMustBeInTheSession(t *testing.T) {
	for _, c := range []struct {
		only round.Party
		mac  bool
	}{{-1, false}, {2, false}, {0, true}} {
		b := alone(newBench(t, 2), c.only)
		for p, err := range b.run(c.mac, nil).Errors {
			if err == nil {
				t.Errorf("%+v: party %d runs", c, p)
			}
		}
	}
}
