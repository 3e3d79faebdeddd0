package lodgetest

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

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/command"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/logs"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
)

// NewLodge returns the program that tests run.
func NewLodge() *cobra.Command { return command.Root() }

// Live is a cluster of a coordinator and two parties in this process, on real sockets.
type Live struct {
	T    *testing.T
	Net  *devnet.Cluster
	Stop []func() // the coordinator's first, then the parties'
}

// Start starts a cluster that has an epoch of keys and 200 scalar triples.
func Start(t *testing.T) *Live {
	t.Helper()
	l := StartBare(t, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	l.OK("jobs", "submit", "--kind", "keys", "--params", "insecure-8", "--wait")
	l.OK("jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", LiveField, "--epoch", "1", "--count", "200", "--wait")
	l.Eventually(func() bool { // the coordinator requests the parties' stock soon after a job
		list := Read[jobs.StockList](l, "stock").Stock
		return len(list) == 1 && list[0].Available >= 200
	})
	return l
}

// StartBare starts a cluster without keys and tuples, after applying changes to its files.
func StartBare(t *testing.T, o devnet.Options, changes ...func(*devnet.Cluster)) *Live {
	t.Helper()
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(net)
	}
	l := &Live{T: t, Net: net}
	log := logs.New(io.Discard, false)
	l.Run(func(ctx context.Context) error {
		f, err := config.LoadCoordinator(net.Coordinator)
		if err != nil {
			return err
		}
		return coordinator.Run(ctx, f, "test", log)
	})
	for i := range net.Parties {
		l.Party(i)
	}
	l.answers("jobs", "list")
	for i := range net.Parties {
		l.answers("batches", "list", "--party", strconv.Itoa(i))
	}
	return l
}

// answers waits until a started process responds.
func (l *Live) answers(args ...string) {
	l.T.Helper()
	l.Eventually(func() bool {
		_, err := l.Try(args...)
		if err != nil && !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) {
			l.T.Fatal(err)
		}
		return err == nil
	})
}

// Party runs a party.
func (l *Live) Party(i int) {
	l.Run(func(ctx context.Context) error {
		f, err := config.LoadParty(l.Net.Parties[i])
		if err != nil {
			return err
		}
		return party.Run(ctx, f, "test", logs.New(io.Discard, true))
	})
}

// Eventually waits until the condition holds.
func (l *Live) Eventually(holds func() bool) {
	l.T.Helper()
	for until := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			l.T.Fatal("the condition does not hold after a minute")
		}
	}
}

// LiveField is a field of the parameter set for tests.
const LiveField = "p64"

// Run runs a process until the test ends or its stop function is called.
func (l *Live) Run(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.T.Error(err)
		}
	})
	l.Stop = append(l.Stop, stop)
	l.T.Cleanup(stop)
}

// Try runs a command on the cluster.
func (l *Live) Try(args ...string) (string, error) {
	l.T.Helper()
	return Run(l.T, append(args, "--cluster", l.Net.Dir)...)
}

// OK runs a command that must succeed.
func (l *Live) OK(args ...string) string {
	l.T.Helper()
	out, err := l.Try(args...)
	if err != nil {
		l.T.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// Shows runs a command that must succeed and print all the given texts.
func (l *Live) Shows(args []string, want ...string) {
	l.T.Helper()
	out := l.OK(args...)
	for _, w := range want {
		if !strings.Contains(out, w) {
			l.T.Errorf("%v: no %q in\n%s", args, w, out)
		}
	}
}

// Refuses runs a command that must fail with a code and a text.
func (l *Live) Refuses(code rpc.Code, text string, args ...string) {
	l.T.Helper()
	_, err := l.Try(args...)
	if !errors.Is(err, &rpc.Error{Code: code}) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		l.T.Errorf("%v: %v, want %s: %s", args, err, code, text)
	}
}

// Read runs a command with --json and decodes its output.
func Read[T any](l *Live, args ...string) (out T) {
	l.T.Helper()
	text := l.OK(append(args, "--json")...)
	at := max(0, strings.IndexAny(text, "{")) // standard error comes first
	if err := json.Unmarshal([]byte(text[at:]), &out); err != nil {
		l.T.Fatalf("%v: %v: %s", args, err, text)
	}
	return out
}

// Completes checks the completions of a command line.
func (l *Live) Completes(args []string, want ...string) {
	l.T.Helper()
	last := len(args) - 1
	all := append([]string{"__complete"}, args[:last]...)
	// The word to complete is the last one; flags precede it, and also the flag whose value it is.
	if strings.HasPrefix(all[len(all)-1], "--") {
		all = append(append(all[:last:last], "--cluster", l.Net.Dir), args[last-1:]...)
	} else {
		all = append(all, "--cluster", l.Net.Dir, args[last])
	}
	out, err := Run(l.T, all...)
	if err != nil {
		l.T.Fatal(err)
	}
	words := strings.Split(out, "\n")
	for _, w := range want {
		found := false
		for _, x := range words {
			word, _, _ := strings.Cut(x, "\t")
			found = found || word == w
		}
		if !found {
			l.T.Errorf("%v: no %q in\n%s", all, w, out)
		}
	}
}
