package reshare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
)

// world has a sharing of secrets among an old group, and a new group.
type world struct {
	parts    []Part
	parties  int
	old, new Group
	secrets  [][]uint64                // by part
	shares   [][]secret.Box[share.Vec] // by place in old and part
}

const q50, q35, q36 = 1<<50 - 16383, 34359410689, 68718428161

var (
	// vectors of z and s, modulo one prime, as in keys of package lwe
	ofLWE = []Part{{q50, 32}, {q50, 5}}
	// vectors of a secret modulo three primes, as in keys of package bgv
	ofBGV = []Part{{q36, 16}, {q50, 16}, {q35, 16}}
)

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("reshare test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

func newWorld(t testing.TB, old, new Group) *world { return newWorldOf(t, ofLWE, old, new) }

func newWorldOf(t testing.TB, parts []Part, old, new Group) *world {
	t.Helper()
	w := &world{parts: parts, old: old, new: new, shares: make([][]secret.Box[share.Vec], len(old.Parties))}
	for _, p := range slices.Concat(old.Parties, new.Parties) {
		w.parties = max(w.parties, int(p)+1)
	}
	stream := source("world", 0).Stream("x")
	for _, part := range parts {
		from, err := share.New(part.Q, len(old.Parties))
		if err != nil {
			t.Fatal(err)
		}
		v, shares := make([]uint64, part.N), make([][]uint64, len(old.Parties))
		sample.Uniform(v, 3, stream)
		for i := range shares {
			shares[i] = make([]uint64, part.N)
		}
		from.Share(shares, v, old.Threshold, stream)
		w.secrets = append(w.secrets, v)
		for i, x := range shares {
			w.shares[i] = append(w.shares[i], secret.NewBox(share.Vec(x)))
		}
	}
	return w
}

func (w *world) config(rs round.Session) Config {
	c := Config{Session: rs, Parts: w.parts, Old: w.old, New: w.new, Source: source("run", rs.Self)}
	if i := w.old.index(rs.Self); i >= 0 {
		c.Share = slices.Clone(w.shares[i])
	}
	return c
}

func (w *world) run(options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(w.parties, func(rs round.Session) (transition, error) { return Start(w.config(rs)) }, options...)
}

// opened returns the secrets as a quorum of the new parties reconstructs them, by part.
func (w *world) opened(t *testing.T, results []Result, quorum []int) (secrets [][]uint64) {
	t.Helper()
	for i, part := range w.parts {
		to, err := share.New(part.Q, len(w.new.Parties))
		if err != nil {
			t.Fatal(err)
		}
		v, shares := make([]uint64, part.N), [][]uint64{}
		for _, j := range quorum {
			shares = append(shares, results[w.new.Parties[j]].Share[i].Open())
		}
		to.Reconstruct(v, quorum, shares)
		secrets = append(secrets, v)
	}
	return secrets
}

func (w *world) same(secrets [][]uint64) bool {
	return slices.EqualFunc(secrets, w.secrets, slices.Equal[[]uint64])
}

// slots returns a value of every part and the mask, by field and place in it.
func (w *world) slots() (list [][2]int) {
	if len(w.parts) == len(ofLWE) {
		return [][2]int{{0, 3}, {0, 32}, {0, 37}}
	}
	return [][2]int{{0, 0}, {1, 5}, {2, 15}, {2, 16}}
}

// add adds one to a value.
func (w *world) add(v [][]uint64, slot [2]int) {
	q := []uint64{q36, q50, q35}[slot[0]]
	if len(w.parts) == len(ofLWE) {
		q = q50
	}
	v[slot[0]][slot[1]] = (v[slot[0]][slot[1]] + 1) % q
}

// kinds are keys of both schemes.
var kinds = [][]Part{ofLWE, ofBGV}

func quorums(n, size int) (list [][]int) {
	for mask := range 1 << n {
		var q []int
		for i := range n {
			if mask>>i&1 == 1 {
				q = append(q, i)
			}
		}
		if len(q) == size {
			list = append(list, q)
		}
	}
	return list
}

func group(threshold int, parties ...round.Party) Group { return Group{parties, threshold} }

var moves = []struct {
	name     string
	old, new Group
}{
	{"the same parties", group(1, 0, 1, 2), group(1, 0, 1, 2)},
	{"other places", group(1, 0, 1, 2), group(1, 2, 0, 1)},
	{"more parties", group(1, 0, 1, 2), group(2, 0, 1, 2, 3, 4)},
	{"fewer parties", group(2, 0, 1, 2, 3, 4), group(1, 3, 1, 0)},
	{"all other parties", group(1, 0, 1, 2), group(1, 3, 4, 5, 6)},
	{"one party is lost", group(1, 0, Absent, 1), group(1, 0, 1, 2)},
	{"fewest dealers", group(2, Absent, 0, 1, Absent, 2), group(2, 3, 4, 1, 5, 6)},
}

// Every quorum of the new parties has the old secrets, with shares that differ from the old ones.
// The other parties get nothing, and the old shares are unchanged.
func TestReshare(t *testing.T) {
	for _, m := range moves {
		for _, parts := range kinds {
			t.Run(fmt.Sprintf("%s, %d parts", m.name, len(parts)), func(t *testing.T) {
				w := newWorldOf(t, parts, m.old, m.new)
				out := w.run().OK(t)
				for _, q := range quorums(len(m.new.Parties), m.new.Threshold+1) {
					if !w.same(w.opened(t, out.Results, q)) {
						t.Fatalf("quorum %v has other secrets", q)
					}
				}
				for p, r := range out.Results {
					if (len(r.Share) == 0) != (m.new.index(round.Party(p)) < 0) {
						t.Errorf("party %d: wrong presence of shares", p)
					}
					i := m.old.index(round.Party(p))
					for k := 0; i >= 0 && k < len(parts); k++ {
						was := w.shares[i][k]
						if was.Empty() || len(r.Share) > 0 && was.Open()[0] == r.Share[k].Open()[0] {
							t.Errorf("party %d: the old share is erased, or equal to the new one", p)
						}
					}
					r.Wipe()
				}
			})
		}
	}
}

// This test would detect a sharing with another degree than t': t' shares and the secrets determine
// nothing.
func TestNewDegree(t *testing.T) {
	for _, parts := range kinds {
		w := newWorldOf(t, parts, group(1, 0, 1, 2), group(2, 0, 1, 2, 3, 4))
		out := w.run().OK(t)
		for i, part := range parts {
			to, err := share.New(part.Q, 5)
			if err != nil {
				t.Fatal(err)
			}
			var shares [][]uint64
			for _, r := range out.Results {
				shares = append(shares, r.Share[i].Open())
			}
			all := []int{0, 1, 2, 3, 4}
			if !to.Consistent(2, all, shares) || to.Consistent(1, all, shares) {
				t.Errorf("part %d: the new shares do not lie on polynomials of degree 2, or lie on polynomials of degree 1", i)
			}
		}
	}
}

// cheat adds one hook to a party.
func cheat[T any](p round.Party, name string, f func(v T)) roundtest.Option {
	return roundtest.Cheat(p, byzantine.On(byzantine.New(), name, f))
}

// ends checks how every honest party's run ended: with blame of the culprit if blames says so, and
// otherwise with these suspects.
func ends(
	t *testing.T, out *roundtest.Outcome[Result], culprit round.Party, check string,
	blames func(p round.Party) bool, suspects func(p round.Party) []round.Party,
) {
	t.Helper()
	for i, err := range out.Errors {
		p := round.Party(i)
		var blame *round.Blame
		var abort *round.Abort
		switch {
		case p == culprit:
		case errors.As(err, &blame):
			if !blames(p) || blame.Party != culprit || blame.Check != check {
				t.Errorf("party %d: %v", p, err)
			}
		case !errors.As(err, &abort) || blames(p) || abort.Check != check || !slices.Equal(abort.Suspects, suspects(p)):
			t.Errorf("party %d: %v", p, err)
		}
	}
}

func always(round.Party) bool { return true }

func never(round.Party) bool { return false }

func these(list ...round.Party) func(round.Party) []round.Party {
	return func(round.Party) []round.Party { return list }
}

// butSelf returns a function that lists these parties except the judging party.
func butSelf(list ...round.Party) func(round.Party) []round.Party {
	return func(self round.Party) []round.Party {
		return slices.DeleteFunc(slices.Clone(list), func(p round.Party) bool { return p == self })
	}
}

// A dealer of wrong shares is blamed by their receivers, and by all if there are more than t'
// receivers.
func TestWrongDegree(t *testing.T) {
	for _, parts := range kinds {
		w := newWorldOf(t, parts, group(1, 0, 1, 2), group(1, 1, 2, 3, 4))
		for _, victims := range [][]int{{3}, {2, 3}} { // places in New
			for _, slot := range w.slots() {
				out := w.run(cheat(0, nameShares, func(dealt [][][]uint64) {
					for _, v := range victims {
						w.add(dealt[v], slot)
					}
				}))
				ends(t, out, 0, CheckDegree, func(p round.Party) bool { return p == 4 || len(victims) > 1 }, these(0, 4))
			}
		}
	}
}

// A dealer that announces another polynomial is blamed by a party whose share does not lie on it.
func TestWrongPolynomial(t *testing.T) {
	for _, parts := range kinds {
		w := newWorldOf(t, parts, group(1, 0, 1, 2), group(1, 0, 1, 2))
		for k := range 2 {
			slot := [2]int{len(w.slots()) / 4 * 2, k} // in the last field
			out := w.run(cheat(2, namePolynomial, func(said [][]uint64) { w.add(said, slot) }))
			blamed := 0
			for _, err := range out.Errors[:2] {
				var blame *round.Blame
				var abort *round.Abort
				switch {
				case errors.As(err, &blame) && blame.Party == 2 && blame.Check == CheckDegree:
					blamed++
				case !errors.As(err, &abort) || !abort.Suspect(2) || abort.Check != CheckDegree:
					t.Errorf("value %d: %v", k, err)
				}
			}
			if blamed == 0 {
				t.Errorf("value %d: no party blames the dealer", k)
			}
		}
	}
}

func TestFalseComplaint(t *testing.T) {
	w := newWorld(t, group(1, 0, 1, 2), group(1, 0, 1, 2))
	out := w.run(cheat(2, nameComplaints, func(c []byte) { c[0] = 1 }))
	ends(t, out, 2, CheckDegree, func(p round.Party) bool { return p == 0 }, these(0, 2))
	for _, bad := range [][]byte{{0, 0}, {0, 0, 1}, {2, 0, 0}} {
		w.run(roundtest.Rewrite(2, nameComplaints, roundtest.Payload(bad))).Blamed(t, 2, round.CheckShape)
	}
}

// A dealer that shares another value than its share is blamed if there are enough dealers, and
// otherwise suspected, whether or not new shares are made from its sharing.
func TestWrongValue(t *testing.T) {
	for _, c := range []struct {
		old, new Group
		culprit  round.Party
		blames   func(p round.Party) bool
		suspects func(p round.Party) []round.Party
	}{
		{group(1, 0, 1, 2, 3), group(1, 4, 5, 6), 0, always, nil},
		{group(1, 0, 1, 2, 3), group(1, 4, 5, 6), 3, always, nil},
		{group(1, 0, 1, Absent, 2, 3), group(1, 1, 2, 3), 3, always, nil},
		{group(2, 0, 1, 2, 3, 4, 5, 6), group(1, 0, 1, 2), 5, always, nil},
		{group(1, 0, 1, 2), group(1, 0, 1, 2), 1, never, butSelf(0, 1, 2)},
		{group(1, 0, 1, 2), group(1, 0, 3, 4), 2, never, butSelf(0, 1, 2)},
	} {
		for _, parts := range kinds {
			w := newWorldOf(t, parts, c.old, c.new)
			all := w.slots()
			for _, slot := range all[:len(all)-1] { // the last is a mask
				out := w.run(cheat(c.culprit, "reshare/party", func(p *party) { w.add(p.secrets, slot) }))
				ends(t, out, c.culprit, CheckValue, c.blames, c.suspects)
			}
		}
	}
}

// doc.go describes the smallest number of dealers: no check detects that one changed the secrets,
// by a value of its choice.
func TestWrongValueOfTooFew(t *testing.T) {
	w := newWorld(t, group(1, 0, Absent, 1), group(1, 2, 3, 4))
	out := w.run(cheat(1, "reshare/party", func(p *party) { w.add(p.secrets, [2]int{}) })).OK(t)
	from, err := share.New(q50, 3)
	if err != nil {
		t.Fatal(err)
	}
	w.secrets[0][0] = from.Add(w.secrets[0][0], from.Lagrange(0, []int{0, 2})[1])
	if !w.same(w.opened(t, out.Results, []int{0, 1})) {
		t.Error("the secrets did not change by the value that the dealer added")
	}
}

// A new party with a wrong share of a difference is blamed or suspected, depending on the number of
// new parties.
func TestWrongDifference(t *testing.T) {
	for _, c := range []struct {
		new      Group
		culprit  round.Party
		blames   func(p round.Party) bool
		suspects func(p round.Party) []round.Party
	}{
		{group(1, 3, 4, 5, 6), 5, always, nil},
		{group(1, 3, 4, 5), 5, never, butSelf(3, 4, 5)},
	} {
		for _, parts := range kinds {
			w := newWorldOf(t, parts, group(1, 0, 1, 2), c.new)
			slot := [2]int{len(w.slots()) / 4 * 2, 0} // in the last field
			out := w.run(cheat(c.culprit, nameDifference, func(v [][]uint64) { w.add(v, slot) }))
			ends(t, out, c.culprit, CheckValue, c.blames, c.suspects)
		}
	}
}

func TestEquivocation(t *testing.T) {
	w := newWorld(t, group(1, 0, 1, 2), group(1, 0, 1, 2))
	for _, name := range []string{namePolynomial, nameDifference, nameComplaints} {
		w.run(roundtest.Link(1, 2, name, roundtest.Flip(0))).Aborted(t, 1, round.CheckEcho)
	}
}

func TestMalformedMessages(t *testing.T) {
	w := newWorld(t, group(1, 0, 1, 2), group(1, 0, 1, 2))
	ones := func(_ *roundtest.View, frames [][]byte) [][]byte {
		for i := range frames[0][:7] {
			frames[0][i] = 0xff // 2^50-1 is not a residue
		}
		return frames
	}
	for _, name := range []string{nameShares, namePolynomial, nameDifference} {
		w.run(roundtest.Rewrite(1, name, roundtest.Truncate(1))).Blamed(t, 1, round.CheckShape)
		w.run(roundtest.Rewrite(1, name, roundtest.Extend(1))).Blamed(t, 1, round.CheckSize)
		w.run(roundtest.Rewrite(1, name, ones)).Blamed(t, 1, round.CheckShape)
	}
}

// The dealt values are erased when a run ends, whether or not it succeeds.
func TestErased(t *testing.T) {
	w := newWorld(t, group(1, 0, 1, 2), group(1, 0, 1, 2))
	for _, option := range []roundtest.Option{
		roundtest.Link(1, 2, "nothing", roundtest.Drop), roundtest.Link(1, 2, nameComplaints, roundtest.Drop),
	} {
		var held [][]uint64
		h := byzantine.On(byzantine.New(), "reshare/party", func(p *party) { held = append(held, p.secrets...) })
		byzantine.On(h, nameShares, func(v [][][]uint64) { held = append(held, slices.Concat(v...)...) })
		w.run(roundtest.Watch(0, h), option)
		if len(held) != 4 {
			t.Fatalf("the hooks saw %d vectors", len(held))
		}
		for _, v := range held {
			if slices.ContainsFunc(v, func(x uint64) bool { return x != 0 }) {
				t.Error("a dealt value was not erased")
			}
		}
	}
}

func TestRefusedConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"no parts":            {func(c *Config) { c.Parts = nil }, "without parts"},
		"no source":           {func(c *Config) { c.Source = nil }, "without parts or a source"},
		"no old majority":     {func(c *Config) { c.Old.Threshold = 2 }, "honest majority"},
		"no new majority":     {func(c *Config) { c.New.Threshold = 2 }, "honest majority"},
		"threshold 0":         {func(c *Config) { c.New.Threshold = 0 }, "honest majority"},
		"too few dealers":     {func(c *Config) { c.Old.Parties = []round.Party{0, Absent, Absent} }, "take part"},
		"an absent new party": {func(c *Config) { c.New.Parties = []round.Party{0, 1, Absent} }, "not of the session"},
		"a party twice":       {func(c *Config) { c.New.Parties = []round.Party{0, 1, 1} }, "twice"},
		"an unknown party":    {func(c *Config) { c.New.Parties = []round.Party{0, 1, 3} }, "not of the session"},
		"an idle party":       {func(c *Config) { c.Session.Parties = 4 }, "neither group"},
		"no prime":            {func(c *Config) { c.Parts = []Part{{q50, 32}, {q50 + 1, 5}} }, "residues modulo"},
		"an empty part":       {func(c *Config) { c.Parts = []Part{{q50, 32}, {q50, 0}} }, "residues modulo"},
		"a missing part":      {func(c *Config) { c.Share[0] = secret.Box[share.Vec]{} }, "missing or has the wrong length"},
		"another share":       {func(c *Config) { c.Share[0] = c.Share[1] }, "missing or has the wrong length"},
		"too few parts":       {func(c *Config) { c.Share = c.Share[:1] }, "has no share"},
		"not a residue": {func(c *Config) {
			c.Share[1] = secret.NewBox(share.Vec{q50, 0, 0, 0, 0})
		}, "not a residue"},
	} {
		w := newWorld(t, group(1, 0, 1, 2), group(1, 0, 1, 2))
		config := w.config(round.Session{Parties: 3, Self: 1})
		c.change(&config)
		if _, err := Start(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if s := fmt.Sprint(newWorld(t, group(1, 0, 1, 2), group(1, 0, 1, 2)).shares); strings.ContainsAny(s, "0123456789") {
		t.Errorf("formatting reveals shares: %s", s)
	}
}
