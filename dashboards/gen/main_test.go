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
	for name, d := range dashboards() {
		for _, p := range d.Panels {
			if p.Title == "" || p.About == "" || p.Width == 0 || p.Height == 0 || len(p.Queries) == 0 {
				t.Errorf("%s: panel %q has the description %q and %d queries", name, p.Title, p.About, len(p.Queries))
			}
			for _, q := range p.Queries {
				for _, metric := range regexp.MustCompile(`lodge_\w+`).FindAllString(q.Expr, -1) {
					if !known[metric] {
						t.Errorf("%s: panel %q uses %s, which does not exist", name, p.Title, metric)
					}
				}
			}
		}
	}
}
