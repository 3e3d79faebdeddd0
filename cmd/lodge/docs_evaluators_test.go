package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// The configurations that docs/guides/evaluators.md shows are ones that a party and an evaluator
// take, and what it says of defaults is so.
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
	if _, err := config.LoadEvaluator(path); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"max_keys_memory: 1GiB\n", "max_memory: 8GiB\n"} {
		yaml = strings.Replace(yaml, key, "", 1)
	}
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
	for key, value := range map[string]any{"max_keys_memory": f.MaxKeysMemory, "max_memory": f.MaxMemory, "stop_after": f.StopAfter} {
		said := regexp.MustCompile("(?m)^\\| `" + key + "` \\|.*\\| (\\S+) \\|$").FindStringSubmatch(text)
		v, err := value.(interface{ MarshalYAML() (any, error) }).MarshalYAML()
		if err != nil || said == nil || said[1] != v {
			t.Errorf("%s is %v without a value, and the document says %q", key, v, said)
		}
	}
	namesMetrics(t, text, 2)
}
