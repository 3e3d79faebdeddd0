package process_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// withHealth adds a health_listen address to the configuration of a process.
func withHealth(t *testing.T, file string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b, "health_listen: "+address+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return address
}

// A serving party and coordinator are ready; a party in quarantine is alive and not ready; a
// stopped process does not respond.
func TestHealth(t *testing.T) {
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	l, log := &lodgetest.Live{T: t, Net: net}, slog.New(slog.DiscardHandler)
	file := net.Parties[0]
	runParty := func(ctx context.Context) error {
		f, err := config.LoadParty(file)
		if err != nil {
			return err
		}
		return party.Run(ctx, f, "test", log)
	}
	health := func(args ...string) (string, error) {
		return lodgetest.Run(t, append([]string{"health"}, args...)...)
	}
	refused := func(code rpc.Code, text string, args ...string) {
		t.Helper()
		if out, err := health(args...); !errors.Is(err, &rpc.Error{Code: code}) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %s, %v; want %s: %s", args, out, err, code, text)
		}
	}
	refused(rpc.Invalid, "no health_listen", "--config", file)
	refused(rpc.NotFound, "nowhere", "--config", "nowhere.yaml")
	address := withHealth(t, file)
	refused(rpc.Invalid, "--address", "--config", file, "--address", address)
	refused(rpc.Unavailable, "check that the process is running", "--config", file)

	becomes := func(args ...string) {
		t.Helper()
		l.Eventually(func() bool {
			out, err := health(args...)
			return err == nil && (out == "ready\n" || out == "live\n")
		})
	}
	l.Run(runParty)
	becomes("--config", file)
	becomes("--address", address)
	becomes("--address", address, "--live")
	l.Stop[0]()
	refused(rpc.Unavailable, "check that the process is running", "--config", file)

	place := seal.Place{Dir: filepath.Join(net.Dir, "p0", "vault")}
	key, err := seal.LoadKey(filepath.Join(net.Dir, "p0", "vault.key"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.OpenPlace(t.Context(), place, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(v.Quarantine("a test", 0), v.Close()); err != nil {
		t.Fatal(err)
	}
	l.Run(runParty)
	becomes("--config", file, "--live")
	l.Eventually(func() bool { // it serves, so that its log and status are available
		conn, err := cluster.Dial(net, devnet.ClientName(0), net.Roster.Parties[0].Address, net.Roster.Parties[0].Identity)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		return err == nil && r.GetStatus() == healthpb.HealthCheckResponse_SERVING
	})
	refused(rpc.Unavailable, "not ready", "--config", file)

	withHealth(t, net.Coordinator)
	l.Run(func(ctx context.Context) error {
		f, err := config.LoadCoordinator(net.Coordinator)
		if err != nil {
			return err
		}
		return coordinator.Run(ctx, f, "test", log)
	})
	becomes("--config", net.Coordinator)
}

// Without an address, all processes of the cluster in one directory are called. The error names a
// process that does not respond.
func TestHealthOfCluster(t *testing.T) {
	l := lodgetest.StartBare(t, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true, Health: true, Metrics: true})
	l.Shows([]string{"health"}, "coordinator: ready\np0: ready\np1: ready\n")
	t.Chdir(l.Net.Dir)
	if out, err := lodgetest.Run(t, "health"); err != nil || !strings.Contains(out, "p1: ready") {
		t.Errorf("in its directory: %v: %s", err, out)
	}
	l.Stop[2]()
	l.Refuses(rpc.Unavailable, "p1: ", "health")
	l.Stop[1]()
	l.Refuses(rpc.Unavailable, "2 of 3 processes are not well: p0: ", "health")
	without, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lodgetest.Run(t, "health", "--cluster", without.Dir); !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(err.Error(), "write health_listen") {
		t.Errorf("without addresses: %v", err)
	}
	if _, err := lodgetest.Run(t, "health", "--cluster", filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "lodge init") {
		t.Errorf("without a cluster: %v", err)
	}
}
