package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/logs"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
)

// newLodge returns the program that tests run.
func newLodge() *cobra.Command { return newRoot() }

// live is a cluster of a coordinator and two parties in this process, on real sockets.
type live struct {
	t    *testing.T
	net  *devnet.Cluster
	stop []func() // the coordinator's, then the parties'
}

// startLive starts a cluster that has an epoch of keys and 200 scalar triples.
func startLive(t *testing.T) *live {
	t.Helper()
	l := startBare(t, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	l.ok("jobs", "submit", "--kind", "keys", "--params", "insecure-8", "--wait")
	l.ok("jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", liveField, "--epoch", "1", "--count", "200", "--wait")
	l.eventually(func() bool { // the coordinator asks the parties what they have soon after a job
		list := read[stockList](l, "stock").Stock
		return len(list) == 1 && list[0].Available >= 200
	})
	return l
}

// startBare starts a cluster that has nothing yet. Changes are made to its files before.
func startBare(t *testing.T, o devnet.Options, changes ...func(*devnet.Cluster)) *live {
	t.Helper()
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(net)
	}
	l := &live{t: t, net: net}
	log := logs.New(io.Discard, false)
	l.run(func(ctx context.Context) error {
		f, err := config.LoadCoordinator(net.Coordinator)
		if err != nil {
			return err
		}
		return coordinator.Run(ctx, f, "test", log)
	})
	for i := range net.Parties {
		l.party(i)
	}
	l.answers("jobs", "list")
	for i := range net.Parties {
		l.answers("batches", "list", "--party", strconv.Itoa(i))
	}
	return l
}

// answers waits until a process that has been started is there.
func (l *live) answers(args ...string) {
	l.t.Helper()
	l.eventually(func() bool {
		_, err := l.try(args...)
		if err != nil && !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) {
			l.t.Fatal(err)
		}
		return err == nil
	})
}

// party runs a party.
func (l *live) party(i int) {
	l.run(func(ctx context.Context) error {
		f, err := config.LoadParty(l.net.Parties[i])
		if err != nil {
			return err
		}
		return party.Run(ctx, f, "test", logs.New(io.Discard, true))
	})
}

// eventually waits until something holds.
func (l *live) eventually(holds func() bool) {
	l.t.Helper()
	for until := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			l.t.Fatal("it does not come to that in a minute")
		}
	}
}

// liveField is one that the set for tests has.
const liveField = "p64"

// run runs a process until the test ends, or its stop is called.
func (l *live) run(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	})
	l.stop = append(l.stop, stop)
	l.t.Cleanup(stop)
}

// try runs a command on the cluster.
func (l *live) try(args ...string) (string, error) {
	l.t.Helper()
	return runLodge(l.t, append(args, "--cluster", l.net.Dir)...)
}

// ok runs a command that must succeed.
func (l *live) ok(args ...string) string {
	l.t.Helper()
	out, err := l.try(args...)
	if err != nil {
		l.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// shows runs a command that must succeed, and must write all of these.
func (l *live) shows(args []string, want ...string) {
	l.t.Helper()
	out := l.ok(args...)
	for _, w := range want {
		if !strings.Contains(out, w) {
			l.t.Errorf("%v: no %q in\n%s", args, w, out)
		}
	}
}

// refuses runs a command that must fail with a code and words.
func (l *live) refuses(code rpc.Code, text string, args ...string) {
	l.t.Helper()
	_, err := l.try(args...)
	if !errors.Is(err, &rpc.Error{Code: code}) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		l.t.Errorf("%v: %v, want %s: %s", args, err, code, text)
	}
}

// read runs a command with --json and decodes what it writes.
func read[T any](l *live, args ...string) (out T) {
	l.t.Helper()
	text := l.ok(append(args, "--json")...)
	at := max(0, strings.IndexAny(text, "{")) // what goes to standard error comes first
	if err := json.Unmarshal([]byte(text[at:]), &out); err != nil {
		l.t.Fatalf("%v: %v: %s", args, err, text)
	}
	return out
}
