package triple

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// inputs is a plan of input masks of a party.
func (w *network) inputs(t testing.TB, owner round.Party, count int) *Plan {
	t.Helper()
	p := w.plan(t, Input, Shape{}, 0, count)
	p.Owner = owner
	return p
}

func shareOf(r *Result) field.Vec { return r.A }

// The sum of the shares is the plaintext value that only the owner has; the shares reveal nothing
// about the value.
func TestInputMasks(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		f := w.scheme.Field
		digests := map[round.Digest]bool{}
		for owner := range round.Party(n) {
			for _, count := range []int{1, 3 * w.scheme.Slots() / 2} {
				plan := w.inputs(t, owner, count)
				out := w.run(plan).OK(t)
				w.verifyKind(t, plan, out.Results)
				digests[out.Results[0].Digest] = true
				sum, seen := w.sum(out.Results, shareOf), map[string]bool{}
				for p, r := range out.Results {
					switch {
					case round.Party(p) != owner && r.Clear.Len() != 0:
						t.Errorf("party %d has the masks of party %d", p, owner)
					case round.Party(p) == owner && !f.EqualVec(r.Clear, sum):
						t.Errorf("party %d: its masks are not the sums of the shares", p)
					}
					for i := range r.A.Len() {
						if x := fmt.Sprint(r.A.At(i)); seen[x] || f.IsZero(r.A.At(i)) || f.Equal(r.A.At(i), sum.At(i)) {
							t.Fatalf("party %d: share %d is zero, the mask or another share", p, i)
						} else {
							seen[x] = true
						}
					}
				}
			}
		}
		if len(digests) != 2*n {
			t.Errorf("%d different digests of %d batches", len(digests), 2*n)
		}
	}
}

// Every other party alone hides the owner's masks in the shares: with other randomness at one party
// the masks stay the same, and every share of the owner and of any third party changes.
func TestSharesOfInputsDependOnEveryPair(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 3, 1)
	f := w.scheme.Field
	const owner = 1
	plan := w.inputs(t, owner, 10)
	first := w.run(plan).OK(t).Results
	for _, other := range []round.Party{0, 2} {
		w.labels = map[round.Party]string{other: "again"}
		second := w.run(plan).OK(t).Results
		if !f.EqualVec(second[owner].Clear, first[owner].Clear) {
			t.Fatal("the masks are others")
		}
		for p := range second {
			for i := range plan.Count {
				if f.Equal(second[p].A.At(i), first[p].A.At(i)) {
					t.Fatalf("share %d of party %d does not depend on party %d", i, p, other)
				}
			}
		}
	}
}

// Each party sends each other party a separate seed, and never its share.
func TestSeeds(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 3, 1)
	out := w.run(w.inputs(t, 0, 10), roundtest.Record()).OK(t)
	var seen [][]byte
	for from := range round.Party(3) {
		for to := range round.Party(3) {
			if from == to {
				continue
			}
			frames := out.Recording.Frames(from, to, seedWant.Name)
			if len(frames) != 1 || len(frames[0]) != 32 || slices.ContainsFunc(seen, func(s []byte) bool { return bytes.Equal(s, frames[0]) }) {
				t.Fatalf("party %d sends party %d no seed, or another's", from, to)
			}
			seen = append(seen, frames[0])
		}
	}
}

// A cheating party, the owner or another one, ends the batch as with other tuples.
func TestCheatsOnInputMasks(t *testing.T) {
	proves := map[string]bool{
		"shares that are not doubled": true, "a ciphertext that changes after its commitment": true, "an answer to another challenge": true,
	}
	for _, n := range []int{2, 3} {
		w, culprit := newNetwork(t, "insecure-8", "p128", n, 1), round.Party(n-1)
		for _, owner := range []round.Party{0, culprit} {
			plan := w.inputs(t, owner, 50)
			w.label, w.earlier = "earlier", nil
			w.run(plan, roundtest.Watch(0, byzantine.On(byzantine.New(), "triple/compared", func(list []*gbfv.Ciphertext) {
				for _, ct := range list {
					w.earlier = append(w.earlier, ct.Clone())
				}
			}))).OK(t)
			w.label = ""
			for _, c := range cheats {
				if proves[c.name] && owner != culprit {
					continue
				}
				t.Run(fmt.Sprint(n, " parties, owner ", owner, ", ", c.name), func(t *testing.T) {
					h := c.hooks(w)
					w.ends(t, w.run(plan, roundtest.Cheat(culprit, h)), culprit, c.check, c.blamed)
					if names := h.Unfired(); names != nil {
						t.Fatalf("the cheats %v did not run", names)
					}
				})
			}
			for _, c := range []struct {
				name, message string
				edit          roundtest.Edit
				check         string
				blamed        bool
			}{
				{"another seed than it uses", seedWant.Name, roundtest.Flip(5), maccheck.CheckMAC, false},
				{"a truncated seed", seedWant.Name, roundtest.Truncate(1), round.CheckShape, true},
				{"a seed with a byte more", seedWant.Name, roundtest.Extend(1), round.CheckSize, true},
				{"another nonce of the challenge", "triple/statement/open", roundtest.Flip(0), round.CheckCommitment, true},
				{"a byte more next to its nonce", "triple/statement/open", roundtest.Extend(1), round.CheckSize, true},
			} {
				t.Run(fmt.Sprint(n, " parties, owner ", owner, ", ", c.name), func(t *testing.T) {
					w.ends(t, w.run(plan, roundtest.Rewrite(culprit, c.message, c.edit)), culprit, c.check, c.blamed)
				})
			}
			w.run(plan, roundtest.Rewrite(culprit, seedWant.Name, roundtest.Drop)).Stalls(t, culprit, seedWant.Name)
		}
	}
}

// ends fails the test unless a run with a cheat of the culprit ends like this at every other party.
func (w *network) ends(t *testing.T, out *roundtest.Outcome[Result], culprit round.Party, check string, blamed bool) {
	t.Helper()
	switch {
	case check == "":
		out.OK(t)
		return
	case blamed:
		out.Blamed(t, culprit, check)
		return
	}
	for p, err := range out.Errors[:culprit] {
		var abort *round.Abort
		if !errors.As(err, &abort) || abort.Check != check {
			t.Errorf("party %d ends with %v, want an abort of check %s", p, err, check)
		}
	}
}

// A wrong share of any mask or MAC stops the batch, at the owner as at others, and so do two
// versions of a broadcast.
func TestEveryInputMaskIsChecked(t *testing.T) {
	for _, n := range []int{2, 3} {
		w, culprit := newNetwork(t, "insecure-8", "p128", n, 1), round.Party(n-1)
		slots := w.scheme.Slots()
		for _, owner := range []round.Party{0, culprit} {
			plan := w.inputs(t, owner, 3*slots/2)
			for _, at := range []int{0, plan.Count - 1, plan.Count} { // the last masks the check
				w.stops(t, plan, w.adds(true, at/slots, at%slots), maccheck.CheckMAC)
				w.stops(t, plan, w.adds(false, at/slots, at%slots), maccheck.CheckMAC)
			}
			for _, name := range []string{
				"triple/statement/commit", "triple/statement/open", "triple/ciphertexts", "triple/response", "triple/evaluated",
				"triple/mac/coin/commit", "triple/mac/coin/open", "triple/mac/open", "triple/mac/z/commit", "triple/mac/z/open",
			} {
				if proof := name == "triple/ciphertexts" || name == "triple/response"; n > 2 && (owner == culprit || !proof) {
					w.run(plan, roundtest.Link(culprit, 0, name, roundtest.Flip(0))).Aborted(t, culprit, round.CheckEcho)
				}
			}
		}
	}
}
