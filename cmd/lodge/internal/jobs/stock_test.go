package jobs_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/tuples"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Destructive commands change nothing without --yes: they show the effect, which --yes then has.
func TestDestroyingCommands(t *testing.T) {
	l, root := lodgetest.Start(t), t.TempDir()
	l.OK("jobs", "submit", "--kind", "bit", "--params", "insecure-8", "--field", lodgetest.LiveField, "--epoch", "1", "--count", "7", "--wait")
	l.Shows([]string{"batches", "list", "--party", "p0"}, "available", "scalar", "bit", lodgetest.LiveField)
	batches := lodgetest.Read[tuples.BatchList](l, "batches", "list", "--party", "p1", "--epoch", "1", "--state", "available").Batches
	if len(batches) != 2 || batches[0].Count < 200 || batches[0].TupleBytes != 48 || len(batches[0].Free) != 1 || batches[1].Kind != "bit" {
		t.Fatalf("%+v", batches)
	}
	if page := lodgetest.Read[tuples.BatchList](l, "batches", "list", "--party", "p1", "--limit", "1"); len(page.Batches) != 1 || page.Next != batches[0].ID {
		t.Errorf("%+v", page)
	}
	l.Refuses(rpc.Invalid, "write one of locked, available", "batches", "list", "--party", "p0", "--state", "happy")
	l.Refuses(rpc.Forbidden, "no identity of the certificate is known here", "batches", "list", "--party", "p0", "--identity", filepath.Join(l.Net.Dir, "clients", "client-p1.pem"))
	l.Shows([]string{"epochs", "list", "--party", "p0"}, "1      active  triples  insecure-8  proved")
	key := batches[0].MACKey
	l.Shows([]string{"mac-keys", "list", "--party", "p0"}, key, "active")

	public := filepath.Join(root, "public")
	l.OK("epochs", "public-key", "1", "--party", "p0", "--out", public)
	if info, err := os.Stat(public); err != nil || info.Size() < 1000 {
		t.Errorf("%v: %v", err, info)
	}
	l.Refuses(rpc.Conflict, "exists", "epochs", "public-key", "1", "--party", "p0", "--out", public)
	l.Refuses(rpc.Invalid, `"x" is not the number`, "epochs", "public-key", "x", "--party", "p0", "--out", public)
	share := filepath.Join(root, "share")
	l.Shows([]string{"mac-keys", "draw", key, "--party", "p0", "--out", share}, "has party p0's share of MAC key "+key)
	if b, err := os.ReadFile(share); err != nil || strings.Trim(string(b), "0123456789") != "\n" {
		t.Errorf("%v: %d bytes", err, len(b))
	}
	l.Refuses(rpc.Conflict, "exists", "mac-keys", "draw", key, "--party", "p0", "--out", share)

	for _, c := range []struct {
		args     []string
		say, did string
	}{
		{[]string{"revoke", batches[1].ID, "--party", "p0"}, "would erase 1 batches with ", "erased 1 batches with "},
		{[]string{"mac-keys", "report-failed", key, "--party", "p1"}, "would burn MAC key " + key + ", and erase 2 batches", "is burnt, and 2 batches under it erased"},
		{[]string{"revoke", "--mac-key", key, "--party", "p0"}, "would erase 1 batches with ", ", and the MAC key " + key},
		{[]string{"epochs", "retire", "1", "--party", "p0"}, "would retire epoch 1 (active, for triples)", "epoch 1 is retired"},
		{[]string{"mac-keys", "draw", key, "--pool", "--party", "p1", "--out", share + "2"}, "would retire epoch 1", ""},
	} {
		l.Shows(append(c.args, "--dry-run"), c.say)
		l.Shows(append(c.args, "--yes", "--dry-run"), c.say)
		if out, err := l.Try(c.args...); err == nil || !strings.Contains(err.Error(), "add --yes") || !strings.Contains(out, c.say) {
			t.Errorf("%v: %v: %s", c.args, err, out)
		}
		if c.did != "" {
			l.Shows(append(c.args, "--yes"), c.did)
		}
	}
	l.Refuses(rpc.Burnt, "", "mac-keys", "draw", key, "--pool", "--party", "p1", "--out", share+"2", "--yes")
	l.Refuses(rpc.NotFound, "no batch", "revoke", "nope", "--party", "p0", "--dry-run")
	l.Refuses(rpc.NotFound, "no epoch 9", "epochs", "retire", "9", "--party", "p0")
	l.Refuses(rpc.NotFound, "no MAC key", "mac-keys", "report-failed", "nope", "--party", "p0")
	l.Refuses(rpc.Invalid, "no BATCH and no --mac-key (name batches, which `lodge batches list` lists", "revoke", "--party", "p0")
	l.Refuses(rpc.Invalid, "both batches and --mac-key (remove", "revoke", "x", "--mac-key", "y", "--party", "p0")
	l.Refuses(rpc.Invalid, "no --party", "epochs", "list")
	l.Completes([]string{"revoke", "--party", "p0", ""}, batches[0].ID)
	l.Completes([]string{"revoke", "--party", "p0", "--mac-key", ""}, key)
	l.Completes([]string{"epochs", "retire", "--party", "p0", ""}, "1")
}

// The policies and the stock of a running cluster.
func TestStockCommands(t *testing.T) {
	l := lodgetest.Start(t)
	l.Shows([]string{"stock"}, "KIND", "scalar", lodgetest.LiveField, "insecure-8")
	if s := lodgetest.Read[jobs.StockList](l, "stock", "--epoch", "1").Stock; len(s) != 1 || s[0].Available < 200 || s[0].Epoch != 1 || s[0].Policy != nil {
		t.Fatalf("%+v", s)
	}
	set := append([]string{"stock", "policies", "set"}, lodgetest.Class("--low", "10", "--high", "20", "--batch", "10", "--paused")...)
	type policies struct{ Policies []jobs.PolicyRecord }
	l.Shows(append(set, "--dry-run"), "this policy would be new")
	if p := lodgetest.Read[policies](l, "stock", "policies", "list").Policies; len(p) != 0 {
		t.Errorf("after a dry run: %+v", p)
	}
	l.Shows(set, "newest", "paused")
	l.Shows(append(set, "--dry-run"), "would replace the second")
	if p := lodgetest.Read[policies](l, "stock", "policies", "list").Policies; len(p) != 1 || p[0].Low != 10 || p[0].High != 20 || p[0].Batch != 10 || !p[0].Paused || p[0].Kind != "scalar" {
		t.Errorf("%+v", p)
	}
	l.Eventually(func() bool { return strings.Contains(l.OK("stock"), "10 to 20 (paused)") })
	remove := append([]string{"stock", "policies", "delete"}, lodgetest.Class()...)
	l.Shows(append(remove, "--dry-run"), "would be deleted")
	l.Shows(remove, "paused")
	l.Refuses(rpc.NotFound, "no policy of scalar", remove...)
	l.Shows([]string{"stock", "policies", "list"}, "no policies")
	l.Refuses(rpc.Invalid, "write two levels", append(set, "--high", "5")...)
}

// A watch writes the stock at once and at every change until it is interrupted. It survives a lost
// connection to the coordinator.
func TestWatchStock(t *testing.T) {
	l := lodgetest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &lockedText{}
	root := lodgetest.NewLodge()
	root.SetOut(out)
	root.SetErr(out)
	done := make(chan error, 1)
	go func() { done <- cli.Execute(ctx, root, []string{"stock", "--watch", "--json", "--cluster", l.Net.Dir}) }()
	l.Eventually(func() bool { return strings.Count(out.String(), "\n") >= 1 })
	l.OK(append([]string{"reserve"}, lodgetest.Class("--count", "33")...)...)
	l.Eventually(func() bool { return strings.Contains(out.String(), `"reserved":33`) })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var s jobs.StockList
		if err := json.Unmarshal([]byte(line), &s); err != nil || len(s.Stock) != 1 {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// lockedText collects the output of a command while a test reads it.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// After all parties have retired the keys, the stock shows none of their tuples at once. Commands
// that need keys say so, and how to make some; afterwards they choose the new epoch.
func TestStockAfterRetirement(t *testing.T) {
	l := lodgetest.Start(t)
	retire := func(epoch string) {
		for _, party := range []string{"p0", "p1"} {
			l.OK("keys", "retire", epoch, "--party", party, "--reason", "test", "--yes")
		}
	}
	retire("1")
	l.Refuses(rpc.OutOfStock, "no epoch of insecure-8 is active at all parties (epoch 1 is retired) (make new keys with `lodge jobs submit --kind keys --params insecure-8 --wait`",
		append([]string{"reserve", "--count", "10"}, lodgetest.Class()...)...)
	submit := append([]string{"jobs", "submit", "--count", "100", "--wait"}, lodgetest.Class()...)
	l.Refuses(rpc.NotFound, "no epoch of insecure-8 is active at all parties for triples: epoch 1 is retired (make keys with `lodge jobs submit --kind keys", submit...)
	l.OK("jobs", "submit", "--kind", "keys", "--params", "insecure-8", "--wait")
	l.Shows(submit, "epoch           2")
	l.Refuses(rpc.OutOfStock, "reserve fewer tuples", append([]string{"reserve", "--count", "1000000"}, lodgetest.Class()...)...)
	retire("2")
	for _, s := range lodgetest.Read[jobs.StockList](l, "stock").Stock {
		if s.Available > 0 {
			t.Errorf("%d tuples of retired keys are available", s.Available)
		}
	}
}
