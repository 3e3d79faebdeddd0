//go:build dashboards

package dashboards

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	binary   = flag.String("lodge", "", "the lodge that is tested")
	set      = flag.String("set", "insecure-8", "the parameter set of the cluster")
	field    = flag.String("field", "p128", "of what is decrypted")
	pictures = flag.String("pictures", "", "a directory for pictures of the dashboards")
	limit    = flag.Duration("limit", 5*time.Minute, "how long anything may take that does not fail by itself")
	busy     = flag.Duration("busy", 0, "for how long the cluster goes on to work before the dashboards are looked at")
)

// board has the fields of a dashboard's Grafana JSON that these tests use.
type board struct {
	name       string
	Title      string
	Panels     []boardPanel
	Templating struct {
		List []struct {
			Name, Type string
			Multi      bool
			Query      json.RawMessage
		}
	}
}

// one has the variables with a single selected value, here a party.
func (b board) one() map[string]string {
	chosen := map[string]string{}
	for _, v := range b.Templating.List {
		if v.Type == "query" && !v.Multi {
			chosen[v.Name] = "p1"
		}
	}
	return chosen
}

type boardPanel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr, LegendFormat string
		Instant            bool
	}
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Max        float64
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
			Custom struct{ Stacking struct{ Mode string } }
		}
	}
}

// boards reads all dashboards.
func boards(t *testing.T) (list []board) {
	files, err := filepath.Glob("../../dashboards/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b := board{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, b)
	}
	return list
}

// On a cluster that has done all kinds of work, every query of every panel returns values, every
// variable has values, and Prometheus evaluates every alert. Only the expected alert fires, and
// alerts about cheating do not. When a party dies, alerts fire.
func TestDashboards(t *testing.T) {
	c := start(t)
	c.work()
	all := boards(t)
	begun := time.Now()
	for n := 2; ; n++ { // the first counted event of a kind does not show as an increase
		missing := c.empty(all)
		if len(missing) == 0 && time.Since(begun) > *busy {
			break
		}
		if time.Since(begun) > *busy+*limit {
			t.Fatalf("no data:\n%s", strings.Join(missing, "\n"))
		}
		c.draw("scalar", 50+50*(n%7), "--wait", "--timeout", "4m")
		c.draw("bit", 1)
		c.decrypt(n)
		time.Sleep(time.Second)
	}
	for _, b := range all {
		for _, v := range b.Templating.List {
			var q struct{ Query string }
			if v.Type != "query" {
				continue
			}
			if err := json.Unmarshal(v.Query, &q); err != nil || len(c.values(q.Query)) == 0 {
				t.Errorf("%s: the variable %s has no values: %v", b.name, v.Name, err)
			}
		}
	}
	c.until("every alert was evaluated", func() bool {
		for _, r := range c.rules() {
			if r.Health == "unknown" {
				return false
			}
		}
		return true
	})
	rules := c.rules()
	if len(rules) < 20 {
		t.Errorf("Prometheus has %d alerts", len(rules))
	}
	for name, r := range rules {
		if r.Health != "ok" || r.LastError != "" {
			t.Errorf("%s: %s, %s", name, r.Health, r.LastError)
		}
		quiet := []string{"LodgeBlame", "LodgeMACCheckFailed", "LodgeUnnamedFailures", "LodgeGenerationStopped", "LodgeAccusationProved",
			"LodgePartyExcluded", "LodgeEvidenceLost", "LodgeStoreQuarantined", "LodgeStoreFault", "LodgeProcessDown", "LodgePeerDown", "LodgeJobsFail"}
		if slices.Contains(quiet, name) && r.State != "inactive" {
			t.Errorf("%s is %s", name, r.State)
		}
	}
	if r := rules["LodgeOutOfStock"]; r.State != "firing" {
		t.Errorf("LodgeOutOfStock is %s", r.State)
	}
	if *pictures != "" {
		for _, b := range all {
			if err := os.WriteFile(filepath.Join(*pictures, b.name+".svg"), c.draws(b), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.kill("p2")
	c.until("alerts notice that a party is dead", func() bool {
		rules := c.rules()
		return rules["LodgeProcessDown"].State != "inactive" && rules["LodgePeerDown"].State != "inactive"
	})
}

// empty lists the queries that have returned no values since the beginning.
func (c *cluster) empty(all []board) (list []string) {
	for _, b := range all {
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				if !slices.ContainsFunc(c.over(q.Expr, 300, b.one()), series.known) {
					list = append(list, b.name+", "+p.Title+": "+q.Expr)
				}
			}
		}
	}
	return list
}
