package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// TestEvaluatorsDocument loads the configurations that docs/guides/evaluators.md shows for a party
// and an evaluator.
func TestEvaluatorsDocument(t *testing.T) {
	text, _, shown := configured(t, "evaluators.md", 1, func(c *devnet.Cluster) string { return c.Parties[0] }, config.LoadParty)
	if e := shown.Evaluators; e.Check != config.Compare || len(e.Processes) != 2 || e.Processes[0].Domain == e.Processes[1].Domain {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(text, "`evaluators.stall` (15s)") || shown.Evaluators.Stall != config.Duration(15*time.Second) {
		t.Errorf("a stall of %s", time.Duration(shown.Evaluators.Stall))
	}
	_, rest, _ := strings.Cut(text, "```yaml\n")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	yaml, _, _ := strings.Cut(rest, "```")
	path := filepath.Join(t.TempDir(), "e0.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := config.LoadEvaluator(path)
	if err != nil {
		t.Fatal(err)
	}
	set, err := params.Lookup(f.Params[0].Name)
	if err != nil || set.Hash() != f.Params[0].Sum() {
		t.Errorf("%s has another hash: %v", f.Params[0].Name, err)
	}
	namesMetrics(t, text, 2)
}
