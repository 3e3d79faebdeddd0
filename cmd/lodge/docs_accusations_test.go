package main

import (
	"testing"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// What docs/guides/accusations.md says of the configuration are the defaults, and the metrics that
// it names are those that exist.
func TestAccusationsDocument(t *testing.T) {
	text, plain, shown := configured(t, "accusations.md", 1, func(n *devnet.Cluster) string { return n.Parties[0] }, config.LoadParty)
	if shown.Accusations != plain.Accusations {
		t.Errorf("%+v is documented, %+v are the defaults", shown.Accusations, plain.Accusations)
	}
	namesMetrics(t, text, 6)
}
