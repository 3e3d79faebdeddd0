package main

import (
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/demos"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A demonstration on a running cluster generates its own keys, retires only these, and leaves
// everything else unchanged.
func TestDemoOnACluster(t *testing.T) {
	l := lodgetest.Start(t)
	before := lodgetest.Read[jobs.StockList](l, "stock").Stock[0].Available
	r := lodgetest.Read[demos.TriplesReport](l, "demo", "--field", lodgetest.LiveField, "--count", "50")
	if r.Parties != 2 || r.Params != "insecure-8" || r.Tuples < 50 || r.Verified != r.Tuples || r.RetiredEpoch != 2 {
		t.Errorf("%+v", r)
	}
	if after := lodgetest.Read[jobs.StockList](l, "stock").Stock[0].Available; after != before {
		t.Errorf("%d tuples are left of %d", after, before)
	}
	l.OK("jobs", "list") // it still runs
	for _, flag := range [][]string{{"--parties", "2"}, {"--params", "insecure-8"}, {"--keep"}} {
		l.Refuses(rpc.Invalid, flag[0]+", and --cluster", append([]string{"demo"}, flag...)...)
	}
	if _, err := lodgetest.Run(t, "demo", "--cluster", filepath.Join(t.TempDir(), "none")); rpc.FromError(cli.Typed(err)).Code != rpc.NotFound {
		t.Errorf("no cluster: %v", err)
	}
}
