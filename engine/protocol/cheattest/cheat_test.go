package cheattest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// Every cheat runs with these numbers of parties.
var sizes = []int{2, 3, 5}

// Every cheat, with every number of parties: the session ends as the table says.
func TestByzantine(t *testing.T) {
	for _, n := range sizes {
		t.Run(fmt.Sprint(n, " parties"), func(t *testing.T) {
			var cases []longtest.Case
			for i, c := range Table() {
				if n < c.From || c.WireOnly() {
					continue
				}
				cases = append(cases, longtest.Case{Name: c.Name, Everyday: n == 3 && i%7 == 0,
					Run: func(t *testing.T) { holds(t, worldOf(t, n), c) }})
			}
			longtest.Run(t, cases)
		})
	}
}

// holds runs a cheat and compares its end with the table.
func holds(t *testing.T, w *world, c *Cheat) {
	opened := make([]bool, w.n)
	out, unfired := w.cheats(t, c, opened)
	if len(unfired) > 0 {
		t.Errorf("the hooks %v have not run", unfired)
	}
	culprit := round.Party(w.n - 1)
	switch {
	case c.Ends.Check == "":
		passed(t, w, c, out)
	case c.Ends.Check == CheckLate:
		name := ""
		if c.Fault != nil {
			name = c.Fault.Message.Name
		}
		stalls(t, out, culprit, name)
	case c.Ends.Named == Certain:
		out.Blamed(t, culprit, c.Ends.Check)
	default:
		out.Aborted(t, culprit, c.Ends.Check)
		named(t, out, c, culprit)
	}
	if c.In == Keys || c.In == First {
		return
	}
	for p := range culprit {
		if opened[p] != c.Ends.Counts {
			t.Errorf("the session counts at party %d: %v, want %v (%v)", p, opened[p], c.Ends.Counts, out.Errors[p])
		}
	}
}

// named fails the test if the abort suspects a party where the table names no party.
func named(t *testing.T, out *roundtest.Outcome[ended], c *Cheat, culprit round.Party) {
	t.Helper()
	for p, err := range out.Errors[:culprit] {
		abort, ok := err.(*round.Abort)
		if ok && (len(abort.Suspects) > 0) != (c.Ends.Named == Suspects) {
			t.Errorf("party %d suspects %v, want %s", p, abort.Suspects, c.Ends.Named)
		}
	}
}

// passed fails the test unless the honest parties have a result, and it is right.
func passed(t *testing.T, w *world, c *Cheat, out *roundtest.Outcome[ended]) {
	t.Helper()
	for p, err := range out.Errors {
		if err != nil {
			t.Fatalf("party %d ends with %v", p, err)
		}
	}
	if c.In == Scalars || c.In == First {
		w.verify(t, w.plan(t, c.In), out.Results)
	}
}

// stalls fails the test unless an honest party waits for the culprit, and none has a result or
// blames anybody.
func stalls(t *testing.T, out *roundtest.Outcome[ended], culprit round.Party, name string) {
	t.Helper()
	waits := false
	for p, err := range out.Errors[:culprit] {
		stalled, ok := err.(*roundtest.Stalled)
		if !ok {
			t.Errorf("party %d ends with %v", p, err)
			continue
		}
		waits = waits || slices.ContainsFunc(stalled.Missing,
			func(w round.Want) bool { return w.From == culprit && (name == "" || w.Name == name) })
	}
	if !waits {
		t.Errorf("nobody waits for party %d: %v", culprit, out.Errors)
	}
}

// The list contains all messages of the sessions, in their order.
func TestMessagesAreAll(t *testing.T) {
	w := worldOf(t, 3)
	known := map[string]bool{}
	for _, m := range Messages() {
		if known[m.Name] {
			t.Errorf("%s is listed twice", m.Name)
		}
		known[m.Name] = true
	}
	sent := map[string]bool{}
	for _, in := range Sessions {
		h := watching(2, 3, func(to round.Party, name string, frames [][]byte) {
			sent[name] = true
			if i := slices.IndexFunc(Messages(), func(m Message) bool { return m.Name == name }); i < 0 {
				t.Errorf("%s is sent in %s, and not in the list", name, in)
			} else if m := Messages()[i]; m.Broadcast != (to == round.All) {
				t.Errorf("%s goes to %d", name, to)
			} else if len(frames) > 1 && !m.Streamed {
				t.Errorf("%s has %d frames", name, len(frames))
			}
		})
		w.run(t, in, "watched", nil, roundtest.Watch(2, h)).OK(t)
	}
	for name := range known {
		if !sent[name] {
			t.Errorf("nobody sends %s", name)
		}
	}
}

// Names are unique and fit a command line, and every row is complete.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Table() {
		if seen[c.Name] || c.Name == "" || c.Does == "" || c.From < 2 || !slices.Contains(Sessions, c.In) {
			t.Errorf("the row %+v is not complete", c)
		}
		if e := c.OnWire(); e.Check == "" && (e.Named != Nobody || e.Counts) {
			t.Errorf("%s passes and costs something", c.Name)
		}
		seen[c.Name] = true
		if Find(c.Name) == nil {
			t.Errorf("%s is not found", c.Name)
		}
	}
	if Find("nothing") != nil {
		t.Error("a cheat that does not exist is found")
	}
}

// Every numbered threat that a party can pose is in the table or tested elsewhere; threats 20 to 22
// concern protocols that Lodge does not run.
func TestEveryThreatIsHeld(t *testing.T) {
	held := map[int]bool{20: true, 21: true, 22: true}
	for _, c := range Table() {
		for _, n := range c.Threats {
			held[n] = true
		}
	}
	for _, e := range ElsewhereTable() {
		held[e.Threat] = true
	}
	for n := 1; n <= 27; n++ {
		if !held[n] {
			t.Errorf("nothing holds threat %d", n)
		}
	}
	if len(held) != 27 {
		t.Errorf("%d threats of 27", len(held))
	}
}
