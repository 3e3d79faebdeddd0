package main

import (
	"reflect"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// What docs/guides/stock.md says of the configuration are the defaults, and the metrics that it
// names exist.
func TestStockDocument(t *testing.T) {
	text, plain, shown := configured(t, "stock.md", 2, func(n *devnet.Cluster) string { return n.Coordinator }, config.LoadCoordinator)
	if shown.Stock != plain.Stock {
		t.Errorf("%+v is documented, %+v are the defaults", shown.Stock, plain.Stock)
	}
	// Two clients of the development cluster reserve for its tenant.
	plain.Reservations = config.ReserveLimits{}
	if got, want := shown.Reservations, plain.ReserveLimits(devnet.App, devnet.Tenant); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v is documented, %+v are the defaults", got, want)
	}
	namesMetrics(t, text, 4)
}
