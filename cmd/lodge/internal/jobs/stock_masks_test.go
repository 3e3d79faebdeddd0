package jobs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Policies keep masks of a quorum like tuples, and lists show them.
func TestMaskPolicies(t *testing.T) {
	l := lodgetest.StartThreshold(t)
	set := []string{"stock", "policies", "set", "--kind", "masks", "--low", "20", "--batch", "64"}
	of := func(more ...string) []string {
		return append(append(slices.Clone(set), "--params", lodgetest.ThresholdSet), more...)
	}
	l.Refuses(rpc.Invalid, "no --quorum", of()...)
	l.Refuses(rpc.Invalid, `--form "odd"`, of("--quorum", "p0,p1", "--form", "odd")...)
	l.Refuses(rpc.Invalid, `there is no party "p7"`, of("--quorum", "p0,p7")...)
	l.Refuses(rpc.Invalid, "--field with --kind masks", of("--quorum", "p0,p1", "--field", "p64")...)
	l.Refuses(rpc.Invalid, "set for keys that only all parties together decrypt with", append(slices.Clone(set), "--quorum", "p0,p1", "--params", "S14-32")...)
	l.Refuses(rpc.Invalid, "--quorum with --kind scalar", "stock", "policies", "set", "--kind", "scalar", "--low", "1", "--batch", "1", "--quorum", "0,1")
	l.Refuses(rpc.Invalid, `--kind "masks"`, "reserve", "--kind", "masks", "--count", "1")
	l.Completes([]string{"stock", "policies", "set", "--quorum", "p0,"}, "p0,p1", "p0,p2")

	l.Shows(of("--quorum", "2,p0", "--priority", "7"), "KIND                FIELD  PARAMS          TENANT  EPOCH   LOW  HIGH  BATCH  PRIORITY  STATE\n"+
		"masks exact of 0,2  -      insecure-L8-50  -       newest  20   20    64     7         active\n")
	l.Eventually(func() bool {
		s := lodgetest.Read[jobs.StockList](l, "stock").Stock
		return len(s) == 1 && s[0].Epoch == 0 && s[0].HeldBack == "no epoch is active for threshold decryption with insecure-L8-50 at all parties of the quorum"
	})
	l.OK("keys", "generate", "--params", lodgetest.ThresholdSet, "--wait")
	var found jobs.StockRecord
	l.Eventually(func() bool {
		s := lodgetest.Read[jobs.StockList](l, "stock").Stock
		if len(s) == 1 {
			found = s[0]
		}
		return len(s) == 1 && s[0].StockLevel != nil && s[0].Available == 64 && s[0].Making == 0
	})
	if found.Epoch != 1 || !slices.Equal(found.Quorum, []uint32{0, 2}) || found.Form != "exact" || found.Policy == nil || found.Tenant != "" {
		t.Errorf("%+v", found)
	}
	l.Shows([]string{"stock"}, "masks exact of 0,2  -      insecure-L8-50  -       1      64 ")
	l.Shows([]string{"batches", "list", "--party", "p2"}, "masks exact of 0,2  -")
	l.Shows([]string{"batches", "list", "--party", "p1"}, "no batches")
	// without the third party the stock of this quorum is refilled, and that of other quorums is
	// not
	l.Stop[2]()
	l.OK("stock", "policies", "set", "--kind", "masks", "--low", "100", "--batch", "64", "--params", lodgetest.ThresholdSet, "--quorum", "p0,p2")
	l.OK(of("--quorum", "p0,p1")...)
	l.Eventually(func() bool {
		held, filled := "", false
		for _, x := range lodgetest.Read[jobs.StockList](l, "stock").Stock {
			if slices.Equal(x.Quorum, []uint32{0, 2}) {
				filled = x.StockLevel != nil && x.Available == 128 && x.Making == 0 && x.HeldBack == ""
			} else {
				held = x.HeldBack
			}
		}
		return filled && strings.HasPrefix(held, "not all parties can be asked: party 1 (p1): ")
	})
	masks := []string{"stock", "policies", "delete", "--kind", "masks", "--params", lodgetest.ThresholdSet}
	l.Refuses(rpc.NotFound, "no policy of masks paper of 0,2 for the newest epoch", append(masks, "--quorum", "0,2", "--form", "paper")...)
	l.Shows(append(masks, "--quorum", "0,2"), "masks exact of 0,2")
	l.Shows(append(masks, "--quorum", "0,1"), "masks exact of 0,1")
	l.Shows([]string{"stock", "policies", "list"}, "no policies")
}
