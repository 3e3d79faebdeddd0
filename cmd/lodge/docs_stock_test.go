package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/devnet"
	"github.com/lodge-mpc/lodge/services/metrics"
)

// What docs/stock.md says of the configuration are the defaults, and the metrics that it names exist.
func TestStockDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "stock.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	_, rest, _ := strings.Cut(text, "```yaml\n")
	yaml, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no configuration")
	}
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := config.LoadCoordinator(net.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(net.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(net.Coordinator, append(file, yaml...), 0o600); err != nil {
		t.Fatal(err)
	}
	documented, err := config.LoadCoordinator(net.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	if documented.Stock != plain.Stock {
		t.Errorf("%+v is documented, %+v are the defaults", documented.Stock, plain.Stock)
	}

	m := metrics.New("test")
	m.Stock([]metrics.StockLevel{{}})
	m.Reservation("reserved", time.Second, false)
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range families {
		known[f.GetName()] = true
	}
	named := regexp.MustCompile("`(lodge_[a-z_]+)`").FindAllStringSubmatch(text, -1)
	if len(named) < 4 {
		t.Errorf("%d metrics are named", len(named))
	}
	for _, name := range named {
		if !known[name[1]] {
			t.Errorf("there is no metric %s", name[1])
		}
	}
}
