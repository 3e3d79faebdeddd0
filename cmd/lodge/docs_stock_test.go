package main

import (
	"testing"

	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/devnet"
)

// What docs/stock.md says of the configuration are the defaults, and the metrics that it names exist.
func TestStockDocument(t *testing.T) {
	text, plain, shown := configured(t, "stock.md", func(n *devnet.Cluster) string { return n.Coordinator }, config.LoadCoordinator)
	if shown.Stock != plain.Stock {
		t.Errorf("%+v is documented, %+v are the defaults", shown.Stock, plain.Stock)
	}
	namesMetrics(t, text, 4)
}
