package bgvkeys

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// cheat adds one hook to a party.
func cheat[T any](p round.Party, name string, f func(v T)) roundtest.Option {
	return roundtest.Cheat(p, byzantine.On(byzantine.New(), name, f))
}

// verdict describes the expected end of an honest party's run: blame of the culprit, or suspicion
// of the culprit and others.
type verdict struct {
	blame    bool
	suspects []round.Party
}

// judged fails the test unless every honest party ends with its verdict for this check.
func judged(
	t *testing.T, out *roundtest.Outcome[Result], culprit round.Party, check string, of func(p round.Party) verdict,
) {
	t.Helper()
	for i, err := range out.Errors {
		p := round.Party(i)
		if p == culprit {
			continue
		}
		want := of(p)
		var blame *round.Blame
		var abort *round.Abort
		switch {
		case errors.As(err, &blame):
			if !want.blame || blame.Party != culprit || blame.Check != check {
				t.Errorf("party %d: %v, want %+v", p, err, want)
			}
		case errors.As(err, &abort):
			if want.blame || abort.Check != check || !slices.Equal(abort.Suspects, want.suspects) {
				t.Errorf("party %d: %v, want %+v for %s", p, err, want, check)
			}
		default:
			t.Errorf("party %d returned %v, want %+v for %s", p, err, want, check)
		}
	}
}

// between returns the verdicts about two parties that accuse each other: each blames the other, and
// the rest suspect both.
func between(a, b round.Party) func(p round.Party) verdict {
	return func(p round.Party) verdict {
		if p == a || p == b {
			return verdict{blame: true}
		}
		return verdict{suspects: []round.Party{min(a, b), max(a, b)}}
	}
}

func everybody(round.Party) verdict { return verdict{blame: true} }

func others(n int, p round.Party) (list []round.Party) {
	for q := range round.Party(n) {
		if q != p {
			list = append(list, q)
		}
	}
	return list
}

// A dealer whose sharings do not have their degree is blamed by the receivers of wrong shares, and
// the others suspect both. If it gave wrong shares to more than t parties, all blame it.
func TestWrongDegree(t *testing.T) {
	s := small(t)
	for _, c := range []struct{ n, t int }{{3, 1}, {5, 1}, {5, 2}, {7, 2}} {
		p := testPlan(t, s, c.n, c.t)
		const culprit = 1
		for _, at := range []struct {
			frame int
			row   row
		}{
			{0, row{0, false}}, {0, row{3, false}}, {1, row{2, false}}, {2, row{0, true}}, {4, row{2, true}}, {4, row{1, false}},
			{5, row{3, false}}, {p.frames() - 1, row{1, false}}, {p.frames() - 1, row{1, true}},
		} {
			var to []int
			for i := range c.n {
				if slices.Contains(p.sent(at.frame, culprit, i), at.row) {
					to = append(to, i)
				}
			}
			if len(to) == 0 {
				continue // all receivers expand their shares
			}
			for _, victims := range [][]int{to[:1], to} {
				t.Run(fmt.Sprint(c, at, " to ", victims), func(t *testing.T) {
					out := run(s, c.n, c.t, cheat(culprit, "bgvkeys/deal", func(d *Deal) {
						for _, v := range victims {
							if d.Frame == at.frame && d.Prime == at.row.prime && d.High == at.row.high && d.Shares[v] != nil {
								d.Shares[v][3] = p.fields[d.Prime].Add(d.Shares[v][3], 1)
							}
						}
					}))
					of := between(culprit, round.Party(slices.Min(victims)))
					if len(victims) > c.t {
						of = everybody
					} else if len(victims) > 1 {
						one := of
						of = func(p round.Party) verdict {
							if slices.Contains(victims, int(p)) {
								return verdict{blame: true}
							}
							return one(p)
						}
					}
					judged(t, out, culprit, CheckDegree, of)
				})
			}
		}
	}
}

// A dealer that announces another polynomial than it dealt is blamed by the parties whose shares do
// not lie on it.
func TestWrongPolynomial(t *testing.T) {
	s := small(t)
	const n, threshold, culprit = 3, 1, 2
	p := testPlan(t, s, n, threshold)
	for k := range p.primes {
		for i := range p.announced(k) {
			out := run(s, n, threshold, cheat(culprit, namePolynomial, func(v [][]uint64) {
				v[k][i] = p.fields[k].Add(v[k][i], 1)
			}))
			if i == threshold+1 {
				// With n = 2t+1 no other party's share of degree 2t depends on the value at 0: any
				// value returns a polynomial of that degree.
				out.OK(t)
				continue
			}
			blamed := 0
			for q, err := range out.Errors[:culprit] {
				var blame *round.Blame
				var suspect *round.Abort
				switch {
				case errors.As(err, &blame) && blame.Party == culprit && blame.Check == CheckDegree:
					blamed++
				case !errors.As(err, &suspect) || !suspect.Suspect(culprit) || suspect.Suspect(round.Party(q)):
					t.Errorf("value %d modulo prime %d: party %d returned %v", i, k, q, err)
				}
			}
			if blamed == 0 {
				t.Errorf("value %d modulo prime %d: no party blames the dealer", i, k)
			}
		}
	}
}

// A party that complains about correct shares is blamed by the dealer that it accuses. A complaint
// must name another party or none.
func TestFalseComplaint(t *testing.T) {
	s := small(t)
	const n, threshold, culprit = 5, 2, 3
	out := run(s, n, threshold, cheat(culprit, nameComplaints, func(v []byte) { v[0] = 1 }))
	judged(t, out, culprit, CheckDegree, between(0, culprit))
	for _, bad := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 0}, {0, 0, 0, 1, 0}} {
		check := round.CheckShape
		if len(bad) > n {
			check = round.CheckSize
		}
		run(s, n, threshold, roundtest.Rewrite(culprit, nameComplaints, roundtest.Payload(bad))).Blamed(t, culprit, check)
	}
}

// A dealer that sends other shares than those it was bound to before the coin toss is blamed by
// their receivers.
func TestBound(t *testing.T) {
	run(small(t), 3, 1, roundtest.Rewrite(1, nameShares, roundtest.Flip(77))).Blamed(t, 1, CheckBound)
}

// A party that opens another share than it holds is detected if there are redundant shares. It is
// blamed if no other set of parties can explain the fault; otherwise all parties that can are
// suspects. A product has no redundant share if n = 2t+1.
func TestWrongShareOpened(t *testing.T) {
	const culprit = 2
	s := small(t)
	for _, c := range []struct {
		n, t, sample, prime int
		of                  func(p round.Party) verdict
	}{
		{7, 2, 0, 0, everybody},
		{4, 1, 4, 3, everybody},
		{7, 1, 1, 0, everybody}, // of degree 2
		{7, 1, 1, 2, everybody},
		{3, 1, 0, 1, func(p round.Party) verdict { return verdict{suspects: others(3, p)} }},
		{4, 1, 3, 2, func(p round.Party) verdict { return verdict{suspects: others(4, p)} }},
	} {
		t.Run(fmt.Sprint(c.t, " of ", c.n, " sample ", c.sample, c.prime), func(t *testing.T) {
			p := testPlan(t, s, c.n, c.t)
			out := run(s, c.n, c.t, cheat(culprit, nameOpened, func(shares []ring.Poly) {
				v := shares[c.sample].C[c.prime]
				v[5] = p.fields[c.prime].Add(v[5], 1)
			}))
			judged(t, out, culprit, CheckOpened, c.of)
		})
	}
	// With more cheating parties than the threshold no set explains the fault, and all other
	// parties are suspects.
	wrong := func(shares []ring.Poly) {
		for _, x := range shares {
			x.C[0][5]++
		}
	}
	out := run(s, 5, 1, cheat(1, nameOpened, wrong), cheat(2, nameOpened, wrong))
	var abort *round.Abort
	seen := errors.As(out.Errors[0], &abort) && abort.Check == CheckOpened
	if !seen || !slices.Equal(abort.Suspects, others(5, 0)) {
		t.Errorf("two liars: %v", out.Errors[0])
	}
}

// doc.go describes what no check detects with n = 2t+1: a wrong share of a product adds a number
// that its sender knows to the sample, as dealing a large error does.
func TestAdditiveFaults(t *testing.T) {
	s := small(t)
	const n, threshold, culprit, delta = 3, 1, 2, 1000
	p := testPlan(t, s, n, threshold)
	secrets := func(out *roundtest.Outcome[Result]) []*big.Int { return secretOf(p, out.Results, []int{0, 1}) }
	honest := run(s, n, threshold).OK(t)
	before := noises(p, honest.Results[0].Keys, secrets(honest))

	// The fault is in coefficient 0 of the product, modulo the one prime of its digit: the same
	// everywhere in evaluation form. Modulo all primes at once it is not a small number, so it is
	// dealt instead.
	out := run(s, n, threshold, cheat(culprit, "bgvkeys/drawn/3", func(e []int64) { e[0] = 100 })).OK(t)
	after := noises(p, out.Results[0].Keys, secrets(out))
	if d := new(big.Int).Sub(after[2][0], before[2][0]); d.CmpAbs(big.NewInt(70)) < 0 {
		t.Errorf("a large error changes the sample by %v", d)
	}
	out = run(s, n, threshold, cheat(culprit, nameOpened, func(shares []ring.Poly) {
		for i, x := range shares[2].C[1] {
			shares[2].C[1][i] = p.fields[1].Add(x, delta)
		}
	})).OK(t)
	q := new(big.Int).SetUint64(p.primes[1])
	want := new(big.Int).SetUint64(p.fields[1].Mul(delta, p.fields[1].Lagrange(0, []int{0, 1, 2})[culprit]))
	e := noises(p, out.Results[0].Keys, secrets(out))[2]
	got := new(big.Int).Mod(new(big.Int).Sub(e[0], before[2][0]), q)
	if got.Cmp(want) != 0 {
		t.Errorf("the sample is off by %v, want %v", got, want)
	}
}

// Two versions of a broadcast are detected before anything depends on it.
func TestEquivocation(t *testing.T) {
	for _, name := range []string{namePolynomial, nameComplaints, nameOpened} {
		run(small(t), 3, 1, roundtest.Link(1, 2, name, roundtest.Flip(0))).Aborted(t, 1, round.CheckEcho)
	}
}

// A party that ends with other keys than the rest is a suspect.
func TestOtherKeys(t *testing.T) {
	run(small(t), 3, 1, roundtest.Rewrite(1, nameAgree, roundtest.Flip(9))).Aborted(t, 1, CheckAgree)
}

// Frames of every streamed message that are too short, too long, too many or not canonical are
// rejected, and so are seeds and announcements of the wrong length.
func TestMalformedMessages(t *testing.T) {
	const culprit = 1
	ones := func(_ *roundtest.View, frames [][]byte) [][]byte {
		for i := range frames[0][:8] {
			frames[0][i] = 0xff // 2^55-1 is not a residue
		}
		return frames
	}
	streamed := []string{nameShares, nameOpened}
	for _, c := range []struct {
		names []string
		edit  roundtest.Edit
		check string
	}{
		{streamed, roundtest.Truncate(1), round.CheckShape},
		{streamed, roundtest.Payload(nil), round.CheckShape},
		{streamed, roundtest.Extend(1), round.CheckSize},
		{streamed, roundtest.ExtraFrame(nil), round.CheckShape}, // the frame before is not marked as the last
		{streamed, ones, round.CheckShape},
		{[]string{nameSeeds, namePolynomial}, roundtest.Truncate(1), round.CheckShape},
		{[]string{nameSeeds, namePolynomial}, roundtest.Extend(1), round.CheckSize},
		{[]string{namePolynomial}, ones, round.CheckShape},
	} {
		for _, name := range c.names {
			t.Run(fmt.Sprint(name, " ", c.check), func(t *testing.T) {
				run(small(t), 3, 1, roundtest.Rewrite(culprit, name, c.edit)).Blamed(t, culprit, c.check)
			})
		}
	}
}
