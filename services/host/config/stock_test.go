package config

import (
	"strings"
	"testing"
)

func TestStockLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	load := func(more string) (*CoordinatorFile, error) {
		return LoadCoordinator(write(t, dir, "c.yaml", coordinatorYAML+more))
	}
	for _, c := range []struct {
		more string
		want StockLimits
	}{
		{"", StockLimits{16 << 30, 8 << 30, 2}},
		{"max_concurrent: 5\n", StockLimits{16 << 30, 8 << 30, 5}},
		{"stock: {max_bytes_per_party: 1GiB, max_job_memory: 512MiB, max_jobs: 1}\n", StockLimits{1 << 30, 512 << 20, 1}},
		{"stock: {max_jobs: 16}\n", StockLimits{16 << 30, 8 << 30, 16}},
	} {
		if f, err := load(c.more); err != nil || f.Stock != c.want {
			t.Errorf("%q: %+v, %v", c.more, f.Stock, err)
		}
	}
	for more, want := range map[string]string{
		"stock: {max_jobs: 17}\n": "stock.max_jobs", "stock: {max_jobs: -1}\n": "stock.max_jobs", "stock: {max_bytes: 1GiB}\n": "max_bytes",
		"stock: {max_bytes_per_party: lots}\n": "amount of bytes",
	} {
		if _, err := load(more); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", more, err)
		}
	}
	named := strings.Replace(coordinatorYAML, "name: operator", "name: stock", 1)
	if _, err := LoadCoordinator(write(t, dir, "c.yaml", named)); err == nil || !strings.Contains(err.Error(), "is reserved for the jobs of policies") {
		t.Errorf("a client of the name of the stock: %v", err)
	}
	if f, err := load(""); err != nil || strings.Join(f.Tenants(), " ") == "" && len(f.Clients[0].Tenants) > 0 {
		t.Errorf("tenants %v, %v", f.Tenants(), err)
	}
}
