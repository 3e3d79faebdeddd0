package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Policies keep masks of a quorum, as tuples are kept, and lists show them.
func TestMaskPolicies(t *testing.T) {
	l := startThreshold(t)
	set := []string{"stock", "policies", "set", "--kind", "masks", "--low", "20", "--batch", "64"}
	of := func(more ...string) []string {
		return append(append(slices.Clone(set), "--params", thresholdSet), more...)
	}
	l.refuses(rpc.Invalid, "no --quorum", of()...)
	l.refuses(rpc.Invalid, `--form "odd"`, of("--quorum", "p0,p1", "--form", "odd")...)
	l.refuses(rpc.Invalid, `there is no party "p7"`, of("--quorum", "p0,p7")...)
	l.refuses(rpc.Invalid, "--field with --kind masks", of("--quorum", "p0,p1", "--field", "p64")...)
	l.refuses(rpc.Invalid, "set for keys that all parties decrypt with", append(slices.Clone(set), "--quorum", "p0,p1", "--params", "S14-32")...)
	l.refuses(rpc.Invalid, "--quorum with --kind scalar", "stock", "policies", "set", "--kind", "scalar", "--low", "1", "--batch", "1", "--quorum", "0,1")
	l.refuses(rpc.Invalid, `--kind "masks"`, "reserve", "--kind", "masks", "--count", "1")
	l.completes([]string{"stock", "policies", "set", "--quorum", "p0,"}, "p0,p1", "p0,p2")

	l.shows(of("--quorum", "2,p0", "--priority", "7"), "KIND                FIELD  PARAMS          TENANT  EPOCH   LOW  HIGH  BATCH  PRIORITY  STATE\n"+
		"masks exact of 0,2  -      insecure-L8-50  -       newest  20   20    64     7         active\n")
	l.eventually(func() bool {
		s := read[stockList](l, "stock").Stock
		return len(s) == 1 && s[0].Epoch == 0 && s[0].HeldBack == "no epoch is active for threshold decryption with insecure-L8-50 at all parties of the quorum"
	})
	l.ok("keys", "generate", "--params", thresholdSet, "--wait")
	var found stockRecord
	l.eventually(func() bool {
		s := read[stockList](l, "stock").Stock
		if len(s) == 1 {
			found = s[0]
		}
		return len(s) == 1 && s[0].StockLevel != nil && s[0].Available == 64 && s[0].Making == 0
	})
	if found.Epoch != 1 || !slices.Equal(found.Quorum, []uint32{0, 2}) || found.Form != "exact" || found.Policy == nil || found.Tenant != "" {
		t.Errorf("%+v", found)
	}
	l.shows([]string{"stock"}, "masks exact of 0,2  -      insecure-L8-50  -       1      64 ")
	l.shows([]string{"batches", "list", "--party", "p2"}, "masks exact of 0,2  -")
	l.shows([]string{"batches", "list", "--party", "p1"}, "no batches")
	// without the third party the stock of these two is kept, and that of others is not
	l.stop[2]()
	l.ok("stock", "policies", "set", "--kind", "masks", "--low", "100", "--batch", "64", "--params", thresholdSet, "--quorum", "p0,p2")
	l.ok(of("--quorum", "p0,p1")...)
	l.eventually(func() bool {
		held, filled := "", false
		for _, x := range read[stockList](l, "stock").Stock {
			if slices.Equal(x.Quorum, []uint32{0, 2}) {
				filled = x.StockLevel != nil && x.Available == 128 && x.Making == 0 && x.HeldBack == ""
			} else {
				held = x.HeldBack
			}
		}
		return filled && strings.HasPrefix(held, "not all parties can be asked: party 1 (p1): ")
	})
	masks := []string{"stock", "policies", "delete", "--kind", "masks", "--params", thresholdSet}
	l.refuses(rpc.NotFound, "no policy of masks paper of 0,2 for the newest epoch", append(masks, "--quorum", "0,2", "--form", "paper")...)
	l.shows(append(masks, "--quorum", "0,2"), "masks exact of 0,2")
	l.shows(append(masks, "--quorum", "0,1"), "masks exact of 0,1")
	l.shows([]string{"stock", "policies", "list"}, "no policies")
}
