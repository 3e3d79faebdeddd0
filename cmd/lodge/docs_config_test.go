package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/devnet"
	"github.com/lodge-mpc/lodge/services/metrics"
)

// configured is a file of a development cluster as it is written, and as it is with the configuration that a document shows
// added to it.
func configured[T any](t *testing.T, document string, of func(*devnet.Cluster) string, load func(path string, set ...string) (T, error)) (text string, plain, shown T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", document))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```yaml\n")
	yaml, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no configuration")
	}
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	file := of(net)
	if plain, err = load(file); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(written, yaml...), 0o600); err != nil {
		t.Fatal(err)
	}
	if shown, err = load(file); err != nil {
		t.Fatal(err)
	}
	return string(b), plain, shown
}

// namesMetrics holds that a document names so many metrics at least, and none that there is not.
func namesMetrics(t *testing.T, text string, least int) {
	t.Helper()
	known := map[string]bool{}
	for _, x := range metrics.New("test", metrics.All).List() {
		known[x.Name] = true
	}
	named := regexp.MustCompile(`lodge_\w+`).FindAllString(text, -1)
	for _, name := range named {
		if !known[name] {
			t.Errorf("there is no metric %s", name)
		}
	}
	if len(named) < least {
		t.Errorf("%d metrics are named", len(named))
	}
}
