package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal/terminaltest"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// TestMain serves the processes of clusters, which are this test program started again.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[2] == "--config" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := Serve(ctx, os.Args[1], os.Args[3], "test", os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Tend restarts a killed process and gives up a process that cannot start. The other processes
// serve all the time.
func TestTend(t *testing.T) {
	net, err := devnet.Write(filepath.Join(t.TempDir(), "net"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	said := &terminaltest.Screen{T: t}
	c, err := Open(t.Context(), terminal.NewProgress(said), net)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	coordinator, p0, p1 := c.Processes[0], c.Processes[1], c.Processes[2]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tended := make(chan error, 1)
	go func() { tended <- c.Tend(ctx, Restarts{Settled: time.Hour, Pause: time.Millisecond, Quick: 3}) }()

	if err := p0.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	said.Shows("p0 was killed (signal 9); starting it again\n")
	answers := func(i int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := healthpb.NewHealthClient(c.Clients[i]).Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	for until := time.Now().Add(10 * time.Second); answers(0) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("p0 was not restarted: %v\n%s", answers(0), said)
		}
	}
	if err := errors.Join(os.Remove(p1.config), p1.cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	said.Shows("p1 was killed (signal 9); starting it again\n", "p1 has ended (exit status 1): ",
		"party.yaml: no such file or directory", ", 3 times in a row: it stays down, and the others go on; see "+p1.Log)
	select {
	case <-coordinator.done:
		t.Error("the coordinator has ended")
	case err := <-tended:
		t.Errorf("Tend returned: %v", err)
	default:
	}
	if err := answers(0); err != nil {
		t.Error(err)
	}
	if strings.Contains(p1.lastLine(), "level=") {
		t.Errorf("the last line of p1 is from an earlier run: %s", p1.lastLine())
	}
	cancel()
	if err := <-tended; err != nil {
		t.Error(err)
	}
}

// Tend returns an error when no process runs any more.
func TestTendNothing(t *testing.T) {
	dir, said := t.TempDir(), &terminaltest.Screen{T: t}
	c := &Cluster{Dir: dir, Keep: true, Progress: terminal.NewProgress(said)}
	defer c.Stop()
	if err := c.start("p0", "party", filepath.Join(dir, "nowhere.yaml"), anyCPU); err != nil {
		t.Fatal(err)
	}
	if err := c.Tend(t.Context(), Restarts{Settled: time.Hour, Pause: time.Millisecond, Quick: 2}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	said.Shows("2 times in a row")
}

// Quorums lists every choice of parties once, in order, and stops after the limit.
func TestQuorums(t *testing.T) {
	if got := fmt.Sprint(Quorums(4, 2, 10)); got != "[[0 1] [0 2] [0 3] [1 2] [1 3] [2 3]]" {
		t.Errorf("2 of 4: %s", got)
	}
	if got := fmt.Sprint(Quorums(3, 3, 1)); got != "[[0 1 2]]" {
		t.Errorf("3 of 3: %s", got)
	}
	if got := len(Quorums(9, 5, 40)); got != 41 {
		t.Errorf("%d quorums of 126, with a limit of 40", got)
	}
}
