package byzantine

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// Every cheat over real connections between processes, with 2, 3 and 5 parties: the honest parties
// end the session as the table says, release nothing, and work on with the culprit when it is
// honest again.
func TestByzantine(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n, " parties"), func(t *testing.T) {
			var c *cluster
			ready := func(t *testing.T) *cluster {
				if c == nil {
					c = newCheated(t, n)
				}
				return c
			}
			var cases []longtest.Case
			for i, cheat := range cheattest.Table() {
				if n < cheat.From {
					continue
				}
				cases = append(cases, longtest.Case{Name: cheat.Name, Everyday: n == 3 && i%60 == 0,
					Run: func(st *testing.T) { ready(t).holds(st, cheat) }})
			}
			longtest.Run(t, cases)
		})
	}
}

// newCheated returns a cluster whose last party has taken part in sessions of every kind. With 3
// parties this was in another epoch than that of the cheats, so that its replays come from another
// session and another epoch.
func newCheated(t *testing.T, n int) *cluster {
	t.Helper()
	c := newCluster(t, n)
	for range 2 {
		s := c.spec(cheattest.Keys)
		c.order("record " + string(cheattest.Keys))
		c.complete(s)
		c.epoch = s.GetEpoch()
		if c.epoch == 1 || n != 3 {
			for _, in := range cheattest.Sessions[1:] {
				c.order("honest")
				if in == cheattest.Scalars {
					c.complete(c.spec(in)) // which makes the MAC key, so that the next has no round for that
				}
				c.order("record " + string(in))
				c.complete(c.spec(in))
			}
		}
	}
	c.order("honest")
	c.complete(c.spec(cheattest.Scalars))
	return c
}

// holds runs a cheat and holds the end at the honest parties against the table.
func (c *cluster) holds(t *testing.T, cheat *cheattest.Cheat) {
	c.t = t
	culprit, ends := len(c.conns)-1, cheat.OnWire()
	var keys []*tuplesv1.MacKey
	for i := range culprit {
		keys = append(keys, c.macKey(i, ""))
	}
	c.order("cheat " + cheat.Name)
	s := c.spec(cheat.In)
	all := c.run(s, culprit)
	for i, st := range all {
		c.ended(i, st, ends)
	}
	if ends.Check != "" && ends.Check != cheattest.CheckLate {
		c.named(all, ends)
	}
	if missed := c.order("honest"); len(missed) > 0 {
		t.Errorf("of the cheat, %v did not take place", missed)
	}
	for i := range c.conns {
		c.cancel(i, s)
	}
	for i := range culprit {
		if c.has(i, s) {
			t.Errorf("party %d holds a batch of the session", i)
		}
		if cheat.In == cheattest.First || keys[i] == nil {
			continue
		}
		now := c.macKey(i, keys[i].GetId())
		counted := now.GetFailedChecks() > keys[i].GetFailedChecks()
		if counted != ends.Counts && !cheat.Early || now.GetState() == tuplesv1.MacKeyState_MAC_KEY_STATE_BURNT {
			t.Errorf("party %d has the MAC key %v, and had %v, counts: %v", i, now, keys[i], ends.Counts)
		}
	}
	c.complete(c.spec(cheattest.Scalars))
}

// ended holds the end at one honest party: it has no result, names nobody but the culprit, and
// knows the check.
func (c *cluster) ended(i int, st *jobv1.SessionStatus, ends cheattest.Ends) {
	c.t.Helper()
	culprit, f := uint32(len(c.conns)-1), st.GetFailure()
	outcome := runner.Outcome(f.GetOutcome())
	switch {
	case ends.Check == "":
		if st.GetState() != jobv1.JobState_JOB_STATE_ACTIVATING {
			c.t.Errorf("party %d: %v", i, f)
		}
		return
	case st.GetState() != jobv1.JobState_JOB_STATE_FAILED && st.GetState() != jobv1.JobState_JOB_STATE_TIMED_OUT:
		c.t.Errorf("party %d is %s, want an end for %s", i, st.GetState(), ends.Check)
	case outcome == runner.Blamed && f.GetBlame().GetParty() != culprit:
		c.t.Errorf("party %d blames party %d: %v", i, f.GetBlame().GetParty(), f)
	case ends.Check == cheattest.CheckLate: // or the next message arrives instead
		if outcome != runner.Timeout && outcome != runner.PeerAbort && f.GetCheck() != round.CheckShape {
			c.t.Errorf("party %d: %v, want a timeout", i, f)
		}
	case f.GetCheck() != ends.Check:
		c.t.Errorf("party %d ends with %v, want check %s", i, f, ends.Check)
	}
}

// named holds that somebody has found the cheat itself, and names whom the table says.
func (c *cluster) named(all []*jobv1.SessionStatus, ends cheattest.Ends) {
	c.t.Helper()
	culprit := uint32(len(c.conns) - 1)
	if !slices.ContainsFunc(all, func(st *jobv1.SessionStatus) bool {
		f := st.GetFailure()
		switch runner.Outcome(f.GetOutcome()) {
		case runner.Blamed:
			return ends.Named != cheattest.Nobody
		case runner.Aborted:
			if ends.Named == cheattest.Nobody { // or, which is the same, all others
				return len(f.GetSuspects()) == 0 || len(f.GetSuspects()) == len(c.conns)-1
			}
			return ends.Named == cheattest.Suspects && slices.Contains(f.GetSuspects(), culprit)
		}
		return false
	}) {
		c.t.Errorf("nobody ends with %s, naming %s: %v", ends.Check, ends.Named, all)
	}
}

// No part of the cheating party is in lodge.
func TestNothingOfThisIsInLodge(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/lodge-mpc/lodge/cmd/lodge").Output()
	must(t, err)
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("lodge has %d packages", len(deps))
	}
	for _, d := range deps {
		if strings.HasSuffix(d, "/cheattest") || strings.Contains(d, "/e2e/") || strings.HasSuffix(d, "/roundtest") {
			t.Errorf("lodge is linked with %s", d)
		}
	}
}

// -cheats shows every cheat in a line; an unknown name is rejected.
func TestList(t *testing.T) {
	var out bytes.Buffer
	must(t, writeTable(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := 1 + len(cheattest.Table()) + 2 + len(attacks()); len(lines) != want {
		t.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, c := range cheattest.Table() {
		if !strings.HasPrefix(lines[i+1], c.Name+" ") || !strings.HasSuffix(lines[i+1], c.Does) {
			t.Errorf("%s is listed as %q", c.Name, lines[i+1])
		}
	}
	if err := new(cheater).order("cheat", "nothing"); err == nil {
		t.Error("a cheat that does not exist is accepted")
	}
}
