package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// What destroys does nothing without --yes, says what it would do, and then does that.
func TestDestroyingCommands(t *testing.T) {
	l, root := startLive(t), t.TempDir()
	l.ok("jobs", "submit", "--kind", "bit", "--params", "insecure-8", "--field", liveField, "--epoch", "1", "--count", "7", "--wait")
	l.shows([]string{"batches", "list", "--party", "p0"}, "available", "scalar", "bit", liveField)
	batches := read[batchList](l, "batches", "list", "--party", "p1", "--epoch", "1", "--state", "available").Batches
	if len(batches) != 2 || batches[0].Count < 200 || batches[0].TupleBytes != 48 || len(batches[0].Free) != 1 || batches[1].Kind != "bit" {
		t.Fatalf("%+v", batches)
	}
	if page := read[batchList](l, "batches", "list", "--party", "p1", "--limit", "1"); len(page.Batches) != 1 || page.Next != batches[0].ID {
		t.Errorf("%+v", page)
	}
	l.refuses(rpc.Invalid, "write one of locked, available", "batches", "list", "--party", "p0", "--state", "happy")
	l.refuses(rpc.Forbidden, "no identity of the certificate is known here", "batches", "list", "--party", "p0", "--identity", filepath.Join(l.net.Dir, "clients", "client-p1.pem"))
	l.shows([]string{"epochs", "list", "--party", "p0"}, "1      active  triples  insecure-8  proved")
	key := batches[0].MACKey
	l.shows([]string{"mac-keys", "list", "--party", "p0"}, key, "active")

	public := filepath.Join(root, "public")
	l.ok("epochs", "public-key", "1", "--party", "p0", "--out", public)
	if info, err := os.Stat(public); err != nil || info.Size() < 1000 {
		t.Errorf("%v: %v", err, info)
	}
	l.refuses(rpc.Conflict, "exists", "epochs", "public-key", "1", "--party", "p0", "--out", public)
	l.refuses(rpc.Invalid, `"x" is not the number`, "epochs", "public-key", "x", "--party", "p0", "--out", public)
	share := filepath.Join(root, "share")
	l.shows([]string{"mac-keys", "draw", key, "--party", "p0", "--out", share}, "has party p0's share of MAC key "+key)
	if b, err := os.ReadFile(share); err != nil || strings.Trim(string(b), "0123456789") != "\n" {
		t.Errorf("%v: %d bytes", err, len(b))
	}
	l.refuses(rpc.Conflict, "exists", "mac-keys", "draw", key, "--party", "p0", "--out", share)

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
		l.shows(append(c.args, "--dry-run"), c.say)
		l.shows(append(c.args, "--yes", "--dry-run"), c.say)
		if out, err := l.try(c.args...); err == nil || !strings.Contains(err.Error(), "add --yes") || !strings.Contains(out, c.say) {
			t.Errorf("%v: %v: %s", c.args, err, out)
		}
		if c.did != "" {
			l.shows(append(c.args, "--yes"), c.did)
		}
	}
	l.refuses(rpc.Burnt, "", "mac-keys", "draw", key, "--pool", "--party", "p1", "--out", share+"2", "--yes")
	l.refuses(rpc.NotFound, "no batch", "revoke", "nope", "--party", "p0", "--dry-run")
	l.refuses(rpc.NotFound, "no epoch 9", "epochs", "retire", "9", "--party", "p0")
	l.refuses(rpc.NotFound, "no MAC key", "mac-keys", "report-failed", "nope", "--party", "p0")
	l.refuses(rpc.Invalid, "neither or both", "revoke", "--party", "p0")
	l.refuses(rpc.Invalid, "no --party", "epochs", "list")
	l.completes([]string{"revoke", "--party", "p0", ""}, batches[0].ID)
	l.completes([]string{"revoke", "--party", "p0", "--mac-key", ""}, key)
	l.completes([]string{"epochs", "retire", "--party", "p0", ""}, "1")
}

// Policies and the stock, at a cluster that is there.
func TestStockCommands(t *testing.T) {
	l := startLive(t)
	l.shows([]string{"stock"}, "KIND", "scalar", liveField, "insecure-8")
	if s := read[stockList](l, "stock", "--epoch", "1").Stock; len(s) != 1 || s[0].Available < 200 || s[0].Epoch != 1 || s[0].Policy != nil {
		t.Fatalf("%+v", s)
	}
	set := append([]string{"stock", "policies", "set"}, class("--low", "10", "--high", "20", "--batch", "10", "--paused")...)
	type policies struct{ Policies []policyRecord }
	l.shows(append(set, "--dry-run"), "this policy would be new")
	if p := read[policies](l, "stock", "policies", "list").Policies; len(p) != 0 {
		t.Errorf("after a dry run: %+v", p)
	}
	l.shows(set, "newest", "paused")
	l.shows(append(set, "--dry-run"), "would replace the second")
	if p := read[policies](l, "stock", "policies", "list").Policies; len(p) != 1 || p[0].Low != 10 || p[0].High != 20 || p[0].Batch != 10 || !p[0].Paused || p[0].Kind != "scalar" {
		t.Errorf("%+v", p)
	}
	l.eventually(func() bool { return strings.Contains(l.ok("stock"), "10 to 20 (paused)") })
	remove := append([]string{"stock", "policies", "delete"}, class()...)
	l.shows(append(remove, "--dry-run"), "would be deleted")
	l.shows(remove, "paused")
	l.refuses(rpc.NotFound, "no policy of scalar", remove...)
	l.shows([]string{"stock", "policies", "list"}, "no policies")
	l.refuses(rpc.Invalid, "write two marks", append(set, "--high", "5")...)
}

// A watch writes the stock at once and at changes, until it is interrupted, and outlives the coordinator's connection.
func TestWatchStock(t *testing.T) {
	l := startLive(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &lockedText{}
	root := rootCommand()
	root.SetOut(out)
	root.SetErr(out)
	done := make(chan error, 1)
	go func() { done <- execute(ctx, root, []string{"stock", "--watch", "--json", "--cluster", l.net.Dir}) }()
	l.eventually(func() bool { return strings.Count(out.String(), "\n") >= 1 })
	l.ok(append([]string{"reserve"}, class("--count", "33")...)...)
	l.eventually(func() bool { return strings.Contains(out.String(), `"reserved":33`) })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var s stockList
		if err := json.Unmarshal([]byte(line), &s); err != nil || len(s.Stock) != 1 {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// lockedText is written by a command that a test reads from meanwhile.
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
