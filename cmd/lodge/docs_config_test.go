package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// configured loads a file of a development cluster twice: as it is written, and with the settings
// in the first blocks of YAML that a document shows.
func configured[T any](t *testing.T, document string, first int, of func(*devnet.Cluster) string, load func(path string, set ...string) (T, error)) (text string, plain, shown T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", document))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(b), first)
	if len(blocks) == 0 {
		t.Fatal("the page shows no configuration")
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
	settings := map[string]any{}
	for _, text := range append([]string{string(written)}, blockTexts(blocks)...) {
		if err := yaml.Unmarshal([]byte(text), &settings); err != nil {
			t.Fatal(err)
		}
	}
	lodgetest.WriteYAML(t, file, settings)
	if shown, err = load(file); err != nil {
		t.Fatal(err)
	}
	return string(b), plain, shown
}

func blockTexts(blocks [][]string) (list []string) {
	for _, b := range blocks {
		list = append(list, b[1])
	}
	return list
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
