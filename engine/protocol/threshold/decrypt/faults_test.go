package decrypt

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
)

// small returns a world of three parties with ten ciphertexts.
func small(t testing.TB, form masks.Form) (*world, list) {
	t.Helper()
	k := PaperKind(q50, 4)
	if form == masks.Exact {
		k = masks.Kind{Form: masks.Exact, LogEta: 11, LogPhi: 7}
	}
	w := newWorld(q50, 8, 3, k)
	return w, w.encryptAll(w.messages(10), w.gaussian(10, 10))
}

// named fails the test unless party by blames culprit for this check.
func named(t *testing.T, out *roundtest.Outcome[*Result], by, culprit round.Party, check string) {
	t.Helper()
	var blame *round.Blame
	if !errors.As(out.Errors[by], &blame) || blame.Party != culprit || blame.Check != check {
		t.Errorf("party %d returned %v, want blame of party %d for %s", by, out.Errors[by], culprit, check)
	}
}

func TestMalformedMessagesAreBlamed(t *testing.T) {
	for _, c := range []struct {
		form     masks.Form
		name     string
		from, to round.Party
	}{
		{masks.Paper, "masked", 1, 0}, {masks.Paper, "answer", 0, 2}, {masks.Exact, "masked", 2, 0},
		{masks.Exact, "level", 0, 1}, {masks.Exact, "carry", 1, 2}, {masks.Exact, "answer", 1, 2},
	} {
		w, l := small(t, c.form)
		for check, edit := range map[string][]roundtest.Edit{
			round.CheckShape: {roundtest.Truncate(1), roundtest.Flip(-1), roundtest.Payload(nil)},
			round.CheckSize:  {roundtest.Extend(1)},
		} {
			for i, e := range edit {
				if i == 1 && (10*w.Kind.LogPhi%8 == 0 && c.name == "masked" || 10*w.Kind.LogEta%8 == 0 && c.name == "answer") {
					continue // the words have no padding
				}
				out := w.run(l, w.deal(t, w.uniform(10)), 2, roundtest.Link(c.from, c.to, "test/"+c.name, e))
				named(t, out, c.to, c.from, check)
			}
		}
		var stalled *roundtest.Stalled
		out := w.run(l, w.deal(t, w.uniform(10)), 2, roundtest.Link(c.from, c.to, "test/"+c.name, roundtest.Drop))
		if !errors.As(out.Errors[c.to], &stalled) || stalled.Missing[0].From != c.from {
			t.Errorf("without %s: %v", c.name, out.Errors[c.to])
		}
	}
}

// A party whose message belongs to another run is identified: another session, other records or
// another recipient.
func TestDisagreement(t *testing.T) {
	for _, form := range []masks.Form{masks.Paper, masks.Exact} {
		w, l := small(t, form)
		recorded := w.run(l, w.deal(t, w.uniform(10)), 2, roundtest.Record(), roundtest.ID(round.Hash("before"))).OK(t)
		for _, name := range []string{"test/masked", "test/answer"} {
			to := round.Party(0)
			if name == "test/answer" {
				to = 2
			}
			replay := roundtest.Replay(recorded.Recording, 1, to, name)
			out := w.run(l, w.deal(t, w.uniform(10)), 2, roundtest.Link(1, to, name, replay))
			named(t, out, to, 1, CheckAgreement)
		}
		batches := w.deal(t, w.uniform(20))
		if _, err := batches[1].Take(10); err != nil {
			t.Fatal(err)
		}
		for _, p := range []int{0, 2} {
			batches[p], _ = batches[p].Take(10)
		}
		named(t, w.run(l, batches, 2), 0, 1, CheckAgreement)
	}
}

// Parties with different parameters detect this with the first message, for another eta or Phi,
// form, plaintext modulus, modulus, or recipient. Then no party has an answer.
func TestOtherParameters(t *testing.T) {
	exact := masks.Kind{Form: masks.Exact, LogEta: 11, LogPhi: 7}
	for name, change := range map[string]func(*Config){
		"eta":       func(c *Config) { c.Params.Kind.LogEta, c.Params.LogP = 12, 5 },
		"Phi":       func(c *Config) { c.Params.Kind.LogPhi, c.Params.LogP = 6, 5 },
		"both":      func(c *Config) { c.Params.Kind.LogEta, c.Params.Kind.LogPhi = 12, 8 },
		"form":      func(c *Config) { c.Params.Kind.Form = masks.Paper },
		"odd":       func(c *Config) { c.Params.Kind = masks.OddKind(17, 7); c.Params.LogP = c.Params.Kind.LogP() },
		"modulus":   func(c *Config) { c.Params.Modulus = q53 },
		"recipient": func(c *Config) { c.Recipient = 1 },
		"chosen":    func(c *Config) { c.Chosen[0]++ },
	} {
		w := newWorld(q50, 8, 3, exact)
		l := w.encryptAll(w.messages(10), w.gaussian(10, 10))
		batches := w.deal(t, w.uniform(10))
		out := roundtest.Lockstep(w.Parties, func(s round.Session) (round.Transition[*Result], error) {
			c := Config{Session: s, Step: "test", Params: w.Params, Ciphertexts: l, Secret: w.shares[s.Self], Masks: batches[s.Self], Recipient: Outside, Workers: 1}
			if s.Self == 1 {
				change(&c)
				other := newWorld(q50, 8, 3, c.Params.Kind)
				c.Masks = other.deal(t, other.uniform(10))[1] // of the number, name and kind that party 1 expects
			}
			return Start(c)
		})
		for _, p := range []int{0, 2} {
			if out.Results[p] != nil {
				t.Errorf("another %s at party 1: party %d has an answer", name, p)
			}
			if name == "form" && p == 2 {
				continue // it receives nothing in this case
			}
			var b *round.Blame
			if !errors.As(out.Errors[p], &b) || b.Party != 1 || b.Check != CheckAgreement && b.Check != round.CheckShape && b.Check != round.CheckSize {
				t.Errorf("another %s at party 1: party %d returned %v", name, p, out.Errors[p])
			}
		}
	}
}

// A changed message changes plaintexts and nothing else. The recipient only notices sums that are
// not multiples of Phi.
func TestChangedAnswers(t *testing.T) {
	for _, form := range []masks.Form{masks.Paper, masks.Exact} {
		w, l := small(t, form)
		flip := func(bit int) roundtest.Option {
			return roundtest.Link(1, 2, "test/answer", roundtest.Flip(8*headerSize+bit))
		}
		var abort *round.Abort
		out := w.run(l, w.deal(t, w.uniform(10)), 2, flip(0))
		if !errors.As(out.Errors[2], &abort) || abort.Check != CheckAnswers || len(abort.Suspects) > 0 {
			t.Errorf("%v: %v", form, out.Errors[2])
		}
		right := w.plaintexts(t, l, 2)
		got := w.plaintexts(t, l, 2, flip(w.Kind.LogPhi))
		if slices.Equal(got, right) || !slices.Equal(got[1:], right[1:]) {
			t.Errorf("%v: %v and %v", form, got, right)
		}
	}
}

func TestCombine(t *testing.T) {
	w, l := small(t, masks.Exact)
	out := w.run(l, w.deal(t, w.uniform(10)), Outside).OK(t)
	var answers [][]byte
	for _, r := range out.Results {
		answers = append(answers, r.Answer)
	}
	good, err := Combine(w.Params, 10, answers)
	if err != nil {
		t.Fatal(err)
	}
	reversed := slices.Clone(answers)
	slices.Reverse(reversed)
	if same, err := Combine(w.Params, 10, reversed); err != nil || !slices.Equal(same, good) {
		t.Errorf("%v, %v", same, err)
	}
	for name, change := range map[string]func([][]byte) [][]byte{
		"one answer missing":  func(a [][]byte) [][]byte { return a[:2] },
		"one answer too many": func(a [][]byte) [][]byte { return append(a, a[0]) },
		"short":               func(a [][]byte) [][]byte { a[1] = a[1][1:]; return a },
		"long":                func(a [][]byte) [][]byte { a[1] = append(a[1], 0); return a },
		"another run":         func(a [][]byte) [][]byte { a[1][0] ^= 1; return a },
		"padding":             func(a [][]byte) [][]byte { a[1][len(a[1])-1] |= 0x80; return a },
		"wrong":               func(a [][]byte) [][]byte { a[1][headerSize] ^= 1; return a },
	} {
		var copies [][]byte
		for _, a := range answers {
			copies = append(copies, bytes.Clone(a))
		}
		if _, err := Combine(w.Params, 10, change(copies)); !errors.Is(err, ErrAnswers) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Combine(w.Params, 11, answers); !errors.Is(err, ErrAnswers) {
		t.Error(err)
	}
	if _, err := Combine(w.Params, 0, answers); !errors.Is(err, ErrAnswers) {
		t.Error(err)
	}
}

func FuzzCombine(f *testing.F) {
	w, l := small(f, masks.Exact)
	out := w.run(l, w.deal(f, w.uniform(10)), Outside).OK(f)
	f.Add(out.Results[0].Answer, out.Results[1].Answer, out.Results[2].Answer)
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		m, err := Combine(w.Params, 10, [][]byte{a, b, c})
		if err == nil && (len(m) != 10 || slices.Max(m) > 15) || err != nil && !errors.Is(err, ErrAnswers) {
			t.Fatalf("%v, %v", m, err)
		}
	})
}
