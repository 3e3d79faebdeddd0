package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// The committed dashboards are exactly the files that the program writes.
func TestDashboardsAreCurrent(t *testing.T) {
	made := files()
	there, err := filepath.Glob("../*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(there) != len(made) {
		t.Errorf("found the files %v, but the program writes %d", there, len(made))
	}
	for name, want := range made {
		if b, err := os.ReadFile(filepath.Join("..", name)); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s is out of date, %v; run: make dashboards-json", name, err)
		}
	}
}

// Queries use only existing metrics and labels, and every panel has a description.
func TestDashboardsAskForWhatThereIs(t *testing.T) {
	known := map[string]bool{}
	for _, m := range metrics.New("test", metrics.All).List() {
		known[m.Name] = true
		if m.Type == "histogram" {
			known[m.Name+"_bucket"], known[m.Name+"_sum"], known[m.Name+"_count"] = true, true, true
		}
	}
	for _, d := range dashboards {
		for _, p := range d.panels {
			if p.title == "" || p.about == "" || p.width == 0 || p.height == 0 || len(p.queries) == 0 {
				t.Errorf("%s: panel %q has the description %q and %d queries", d.name, p.title, p.about, len(p.queries))
			}
			for _, q := range p.queries {
				for _, name := range regexp.MustCompile(`lodge_\w+`).FindAllString(q.expr, -1) {
					if !known[name] {
						t.Errorf("%s: panel %q uses %s, which does not exist", d.name, p.title, name)
					}
				}
			}
		}
	}
}
