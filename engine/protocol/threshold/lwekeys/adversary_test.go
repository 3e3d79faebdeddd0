package lwekeys

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
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
func judged(t *testing.T, out *roundtest.Outcome[Result], culprit round.Party, check string, of func(p round.Party) verdict) {
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

// rowOf returns the number of the first dealt row of a kind.
func rowOf(p *plan, k kind) (r int) {
	for _, rows := range p.dealt[:k] {
		r += rows
	}
	return r
}

// A dealer whose sharings do not have their degree, or whose pairs have two secrets, is blamed by
// the receivers of wrong shares, and the others suspect both. If it gave wrong shares to more than
// t parties, all blame it.
func TestWrongDegree(t *testing.T) {
	for _, c := range []struct{ n, t int }{{3, 1}, {5, 2}, {7, 2}} {
		p := testPlan(t, small(), c.n, c.t)
		const culprit = 1
		sent := p.Dealing(culprit, c.t).Sent()
		for k := range kinds {
			for _, high := range []bool{false, true} {
				row, to := rowOf(p, k), sent
				if high {
					if k != pair && k != pairMask || c.n == 2*c.t+1 {
						continue // there are no such rows, or none is sent
					}
					row, to = 0, p.Dealing(culprit, 2*c.t).Sent()
					if k == pairMask {
						row = p.dealt[pair]
					}
				}
				for _, victims := range [][]int{to[:1], to} {
					t.Run(fmt.Sprint(c, " kind ", k, " high ", high, " to ", victims), func(t *testing.T) {
						out := run(small(), c.n, c.t, cheat(culprit, "threshold/deal", func(d *Deal) {
							for _, v := range victims {
								if d.High == high && d.Row == row && d.Shares[v] != nil {
									d.Shares[v][3] = p.Add(d.Shares[v][3], 1)
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
}

// A dealer that announces another polynomial than it dealt is blamed by the parties whose shares do
// not lie on it.
func TestWrongPolynomial(t *testing.T) {
	const n, threshold, culprit = 3, 1, 2
	p := testPlan(t, small(), n, threshold)
	for i := range p.polynomialValues() {
		out := run(small(), n, threshold, cheat(culprit, namePolynomial, func(v []uint64) { v[i] = p.Add(v[i], 1) }))
		var blame *round.Blame
		var suspect *round.Abort
		blamed := 0
		for q, err := range out.Errors[:culprit] {
			switch {
			case errors.As(err, &blame) && blame.Party == culprit && blame.Check == CheckDegree:
				blamed++
			case !errors.As(err, &suspect) || !suspect.Suspect(culprit) || suspect.Suspect(round.Party(q)):
				t.Errorf("value %d: party %d returned %v", i, q, err)
			}
		}
		if blamed == 0 {
			t.Errorf("value %d: no party blames the dealer", i)
		}
	}
}

// A party that complains about correct shares is blamed by the dealer that it accuses. A complaint
// must name another party or none.
func TestFalseComplaint(t *testing.T) {
	const n, threshold, culprit = 5, 2, 3
	out := run(small(), n, threshold, cheat(culprit, nameComplaints, func(v []byte) { v[0] = 1 }))
	judged(t, out, culprit, CheckDegree, between(0, culprit))
	for _, bad := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 0}, {0, 0, 0, 1, 0}} {
		check := round.CheckShape
		if len(bad) > n {
			check = round.CheckSize
		}
		run(small(), n, threshold, roundtest.Rewrite(culprit, nameComplaints, roundtest.Payload(bad))).Blamed(t, culprit, check)
	}
}

// A dealer that sends other shares than those it was bound to before the coin toss is blamed by
// their receivers.
func TestBound(t *testing.T) {
	run(small(), 3, 1, roundtest.Rewrite(1, nameShares, roundtest.Flip(77))).Blamed(t, 1, CheckBound)
}

// A party that sends a king other shares than it reports, and a king that opens another value, are
// blamed by each other and suspected by the other parties.
func TestKingAndSender(t *testing.T) {
	for _, c := range []struct{ n, t int }{{3, 1}, {5, 2}, {7, 2}} {
		p := testPlan(t, small(), c.n, c.t)
		for _, name := range []string{"squares", "products", "keys"} {
			const culprit = 1
			degree, rows := 2*c.t, p.dim
			switch name {
			case "squares":
				rows = p.bits
			case "keys":
				degree, rows = c.t, p.keys
			}
			for king := range c.n {
				from, to := p.slice(king, rows)
				if d := p.distance(king, culprit); d == 0 || d > degree || from == to {
					continue
				}
				t.Run(fmt.Sprint(c, " share of ", name, " for king ", king), func(t *testing.T) {
					out := run(small(), c.n, c.t, cheat(culprit, "threshold/"+name+"/shares", func(x *part) {
						if x.king == king {
							x.rows[0] = slices.Clone(x.rows[0])
							x.rows[0][5] = p.Add(x.rows[0][5], 1)
						}
					}))
					judged(t, out, culprit, CheckOpened, between(culprit, round.Party(king)))
				})
			}
			from, to := p.slice(culprit, rows)
			if from == to {
				continue
			}
			t.Run(fmt.Sprint(c, " value of ", name), func(t *testing.T) {
				out := run(small(), c.n, c.t, cheat(culprit, "threshold/"+name+"/values", func(x *part) {
					x.rows[0][5] = p.Add(x.rows[0][5], 1)
				}))
				last := p.senders(culprit, degree)[degree-1]
				judged(t, out, culprit, CheckOpened, between(culprit, round.Party(last)))
			})
		}
	}
}

// A party that consistently uses a wrong share is detected if there are redundant shares. It is
// blamed if no other set of parties can explain the fault; otherwise all parties that can are
// suspects.
func TestWrongShareThroughout(t *testing.T) {
	const culprit = 2
	for _, c := range []struct {
		n, t int
		name string
		of   func(p round.Party) verdict
	}{
		{7, 2, "keys", everybody},
		{4, 1, "keys", everybody},
		{7, 1, "products", everybody},
		{7, 1, "squares", everybody},
		{3, 1, "keys", func(p round.Party) verdict { return verdict{suspects: others(3, p)} }},
		{4, 1, "products", func(p round.Party) verdict { return verdict{suspects: others(4, p)} }},
	} {
		t.Run(fmt.Sprint(c.t, " of ", c.n, " ", c.name), func(t *testing.T) {
			p := testPlan(t, small(), c.n, c.t)
			out := run(small(), c.n, c.t, cheat(culprit, "threshold/shares", func(o *opening) {
				if o.name == c.name {
					o.mine[0][5] = p.Add(o.mine[0][5], 1)
				}
			}))
			judged(t, out, culprit, CheckOpened, c.of)
		})
	}
}

func others(n int, p round.Party) (list []round.Party) {
	for q := range round.Party(n) {
		if q != p {
			list = append(list, q)
		}
	}
	return list
}

// doc.go describes what no check detects with n = 2t+1: a wrong share of a product adds a number
// that its sender knows to the product.
func TestAdditiveFaultWithoutRedundancy(t *testing.T) {
	const n, threshold, culprit, delta = 3, 1, 2, 1000
	set := small()
	p := testPlan(t, set, n, threshold)
	out := run(set, n, threshold, cheat(culprit, "threshold/shares", func(o *opening) {
		if o.name == "products" {
			o.mine[0][5] = p.Add(o.mine[0][5], delta)
		}
	})).OK(t)
	z, s := secrets(p, out.Results, []int{0, 1})
	e := open(t, p, set, out.Results[0].Keys, z, s)
	// The product z_5 s_0 is off by the weight of the wrong share, and so is the message -z s_0 g_0
	// of row 0.
	off := p.Mul(p.Mul(delta, p.Lagrange(0, []int{0, 1, 2})[culprit]), set.Set.Rotation.Factor(p.Q, 0))
	got := e.ring[p.width+5]
	if want := -centred(off, p.Q); got-want > 100 || want-got > 100 {
		t.Errorf("the row is off by %g, want %g", got, want)
	}
	e.ring[p.width+5] = 0
	for j := 1; j < set.Set.Rotation.Digits; j++ {
		e.ring[(1+j)*p.width+5] = 0
	}
	bounded(t, "other samples", e.ring, set.NoiseOf(n, threshold).Ring)
}

// A value that should be a square but is not ends the run even if no check identifies the cheating
// party.
func TestSquareThatIsNone(t *testing.T) {
	const n, threshold, culprit = 3, 1, 2
	p := testPlan(t, small(), n, threshold)
	out := run(small(), n, threshold, cheat(culprit, "threshold/shares", func(o *opening) {
		if o.name == "squares" {
			for i := range 40 {
				o.mine[0][i%p.width] = p.Add(o.mine[0][i%p.width], uint64(i))
			}
		}
	}))
	for _, err := range out.Errors[:culprit] {
		var abort *round.Abort
		if !errors.As(err, &abort) || abort.Check != CheckSquare || len(abort.Suspects) > 0 {
			t.Errorf("%v, want an abort for %s", err, CheckSquare)
		}
	}
}

// A party with a wrong report is detected by every party that the report contradicts.
func TestWrongReport(t *testing.T) {
	const n, threshold, culprit = 5, 2, 4
	p := testPlan(t, small(), n, threshold)
	// A report has these numbers: own shares, and the shares that a king received.
	size := 0
	watch := byzantine.On(byzantine.New(), nameReport, func(v []uint64) { size = len(v) })
	run(small(), n, threshold, roundtest.Watch(0, watch)).OK(t)
	for i := range size {
		out := run(small(), n, threshold, cheat(culprit, nameReport, func(v []uint64) {
			if i < len(v) {
				v[i] = p.Add(v[i], 1)
			}
		}))
		for q, err := range out.Errors[:culprit] {
			var blame *round.Blame
			var abort *round.Abort
			switch {
			case errors.As(err, &blame) && blame.Party == culprit && blame.Check == CheckOpened:
			case errors.As(err, &abort) && abort.Check == CheckOpened && abort.Suspect(culprit) && !abort.Suspect(round.Party(q)):
			default:
				t.Errorf("number %d: party %d returned %v", i, q, err)
			}
		}
	}
}

// Two versions of a broadcast are detected before anything depends on it.
func TestEquivocation(t *testing.T) {
	for _, name := range []string{
		namePolynomial, nameComplaints, nameReport, "threshold/squares/values", "threshold/products/values", "threshold/keys/values",
	} {
		out := run(small(), 3, 1, roundtest.Link(1, 2, name, roundtest.Flip(0)))
		out.Aborted(t, 1, round.CheckEcho)
	}
}

// A party that ends with other keys than the rest is a suspect.
func TestOtherKeys(t *testing.T) {
	run(small(), 3, 1, roundtest.Rewrite(1, nameAgree, roundtest.Flip(9))).Aborted(t, 1, CheckAgree)
}

// Frames of every streamed message that are too short, too long, too many or not canonical are
// rejected, and so are seeds and lists of numbers of the wrong length.
func TestMalformedMessages(t *testing.T) {
	const culprit = 1
	ones := func(_ *roundtest.View, frames [][]byte) [][]byte {
		for i := range frames[0][:8] {
			frames[0][i] = 0xff // 2^50-1 is not a residue
		}
		return frames
	}
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
		{[]string{nameSeeds, namePolynomial, nameReport}, roundtest.Truncate(1), round.CheckShape},
		{[]string{nameSeeds, namePolynomial, nameReport}, roundtest.Extend(1), round.CheckSize},
		{[]string{namePolynomial, nameReport}, ones, round.CheckShape},
	} {
		for _, name := range c.names {
			t.Run(fmt.Sprint(name, " ", c.check), func(t *testing.T) {
				run(small(), 3, 1, roundtest.Rewrite(culprit, name, c.edit)).Blamed(t, culprit, c.check)
			})
		}
	}
}

var streamed = []string{
	nameShares, "threshold/squares/shares", "threshold/squares/values", "threshold/products/shares", "threshold/products/values",
	"threshold/keys/shares", "threshold/keys/values",
}
