package byzantine

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// strictly starts all parties again, with the default consequences of cheats.
func (c *cluster) strictly() {
	c.t.Helper()
	for i, path := range c.files.Parties {
		b, err := os.ReadFile(path)
		must(c.t, err)
		var f map[string]any
		must(c.t, yaml.Unmarshal(b, &f))
		delete(f, "accusations")
		b, err = yaml.Marshal(f)
		must(c.t, err)
		must(c.t, os.WriteFile(path, b, 0o600))
		c.again(i)
	}
}

// again kills a party and starts it again.
func (c *cluster) again(i int) {
	c.t.Helper()
	must(c.t, c.procs[i].Process.Kill())
	_ = c.procs[i].Wait() // killed
	c.start(i)
	c.ready(i)
}

// lodge runs a command, and reports whether it exits with 0.
func (c *cluster) lodge(args ...string) (out string, ok bool) {
	c.t.Helper()
	b, err := exec.CommandContext(c.context(), lodge, args...).Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return string(b), err == nil
}

type heldReport struct {
	Accusations []struct{ ID, Culprit, Kind string }
	Standing    struct {
		Refusal            string
		Excluded, Suspects []string
		Failures           int
	}
}

// held returns the accusations that a party has recorded.
func (c *cluster) held(i int) (h heldReport) {
	c.t.Helper()
	out, ok := c.lodge("accusations", "list", "--cluster", c.files.Dir, "--party", c.files.Roster.Parties[i].Name, "--json")
	if !ok {
		c.t.Fatal(out)
	}
	must(c.t, json.Unmarshal([]byte(out), &h))
	return h
}

// A party that cheats so that it can be proved is excluded by all others, which prove it to whoever
// has the roster.
func TestProvedCheatExcludes(t *testing.T) {
	c := newCluster(t, 3)
	c.strictly()
	c.order("cheat alter:keygen/seed/open")
	c.run(c.spec(cheattest.Keys), 2)
	c.order("honest")
	dir := t.TempDir()
	roster, err := os.ReadFile(filepath.Join(c.files.Dir, "roster.yaml"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "roster.yaml"), roster, 0o600))
	for i, m := range c.files.Roster.Parties[:2] {
		h := c.held(i)
		for until := time.Now().Add(within); len(h.Standing.Excluded) == 0 && time.Now().Before(until); h = c.held(i) {
			time.Sleep(50 * time.Millisecond)
		}
		if !slices.Equal(h.Standing.Excluded, []string{"p2"}) || len(h.Accusations) == 0 || h.Accusations[0].Culprit != "p2" || h.Accusations[0].Kind != "wrong-opening" {
			t.Fatalf("party %d: %+v\n%s", i, h, c.logs[i])
		}
		if err := c.begin(i, c.spec(cheattest.Keys)); err == nil || rpc.FromError(err).Code != rpc.Excluded {
			t.Errorf("party %d begins a session: %v", i, err)
		}
		file := filepath.Join(dir, m.Name+".evidence")
		if out, ok := c.lodge("accusations", "export", h.Accusations[0].ID, "--out", file, "--cluster", c.files.Dir, "--party", m.Name); !ok {
			t.Fatal(out)
		}
		if out, ok := c.lodge("accusations", "verify", file, "--roster", filepath.Join(dir, "roster.yaml")); !ok || !strings.Contains(out, "proved: party 2 (p2) cheated") {
			t.Errorf("the file of party %d: %s", i, out)
		}
		b, err := os.ReadFile(file)
		must(t, err)
		must(t, os.WriteFile(file, append(b, 0), 0o600))
		if out, ok := c.lodge("accusations", "verify", file, "--roster", filepath.Join(dir, "roster.yaml")); ok {
			t.Errorf("a changed file is proof: %s", out)
		}
	}
}

// A party that cheats so that nobody can say who it was has three attempts, and the others stop.
func TestUnnamedCheatsStop(t *testing.T) {
	c := newCluster(t, 3)
	c.strictly()
	for i := range 3 {
		c.order("cheat alter:keygen/agree")
		for p, st := range c.run(c.spec(cheattest.Keys), 2) {
			if f := st.GetFailure(); !slices.Contains(f.GetSuspects(), 2) {
				t.Errorf("party %d: %v", p, f)
			}
			if h := c.held(p); h.Standing.Failures != i+1 || (h.Standing.Refusal != "") != (i == 2) || slices.Contains(h.Standing.Suspects, c.files.Roster.Parties[p].Name) {
				t.Errorf("party %d after %d cheats: %+v", p, i+1, h)
			}
		}
		c.order("honest")
	}
	c.again(0)
	for p, m := range c.files.Roster.Parties {
		if err := c.begin(p, c.spec(cheattest.Keys)); p < 2 && (err == nil || rpc.FromError(err).Code != rpc.Stopped) {
			t.Errorf("party %d begins a session: %v", p, err)
		}
		if out, ok := c.lodge("accusations", "clear", "--reason", "tried", "--yes", "--cluster", c.files.Dir, "--party", m.Name); !ok {
			t.Error(out)
		}
	}
	c.complete(c.spec(cheattest.Keys))
}
