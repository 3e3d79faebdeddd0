package main

import (
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/demos"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A demonstration on a running cluster generates its own keys, retires only these, and leaves
// everything else unchanged.
func TestDemoOnACluster(t *testing.T) {
	l := startLive(t)
	before := read[stockList](l, "stock").Stock[0].Available
	r := read[demos.TriplesReport](l, "demo", "--field", liveField, "--count", "50")
	if r.Parties != 2 || r.Params != "insecure-8" || r.Tuples < 50 || r.Verified != r.Tuples || r.RetiredEpoch != 2 {
		t.Errorf("%+v", r)
	}
	if after := read[stockList](l, "stock").Stock[0].Available; after != before {
		t.Errorf("%d tuples are left of %d", after, before)
	}
	l.ok("jobs", "list") // it still runs
	for _, flag := range [][]string{{"--parties", "2"}, {"--params", "insecure-8"}, {"--keep"}} {
		l.refuses(rpc.Invalid, flag[0]+", and --cluster", append([]string{"demo"}, flag...)...)
	}
	if _, err := runLodge(t, "demo", "--cluster", filepath.Join(t.TempDir(), "none")); rpc.FromError(typed(err)).Code != rpc.NotFound {
		t.Errorf("no cluster: %v", err)
	}
}
