package process_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/ops/doctor"
)

// A client's configuration replaces all other files.
func TestClientConfiguration(t *testing.T) {
	l := lodgetest.Start(t)
	t.Chdir(t.TempDir()) // this directory contains no cluster
	client := func(name string) string { return filepath.Join(l.Net.Dir, "clients", name+".yaml") }
	ok := func(args ...string) string {
		t.Helper()
		out, err := lodgetest.Run(t, args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(out)
	}
	refuses := func(code rpc.Code, text string, args ...string) {
		t.Helper()
		if _, err := lodgetest.Run(t, args...); !errors.Is(err, &rpc.Error{Code: code}) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want %s: %s", args, err, code, text)
		}
	}
	operator, p0 := client(devnet.Operator), client(devnet.ClientName(0))
	if out := ok("stock", "--client", operator); !strings.Contains(out, lodgetest.LiveField) {
		t.Error(out)
	}
	id := ok(append([]string{"reserve", "--client", p0, "--clients", "client-p0"}, lodgetest.Class("--count", "3")...)...)
	if out := ok("fetch", id, "--client", p0, "--out", "shares"); !strings.Contains(out, "3 scalar tuples, 144 B, of party p0 in shares") {
		t.Error(out)
	}
	refuses("already_delivered", "another client", "fetch", id, "--client", client(devnet.ClientName(1)), "--party", "1", "--out", "other")
	refuses(rpc.Forbidden, "spiffe://lodge/client/p0", "batches", "list", "--client", p0, "--party", "p1")
	refuses(rpc.Invalid, "no --party (write one of p0, p1)", "batches", "list", "--client", operator)
	refuses(rpc.NotFound, "--client", "stock", "--client", "nowhere.yaml")
	refuses(rpc.Invalid, "and --identity", "stock", "--client", operator, "--identity", "x.pem")
	refuses(rpc.Invalid, "and --ca", "stock", "--client", operator, "--ca", "x.pem")
	refuses(rpc.Invalid, "and --token-file", "stock", "--client", operator, "--token-file", "x")

	if out := ok("status", "--client", operator); strings.Count(out, "ready") != 3 {
		t.Error(out)
	}
	r, err := diagnosis(t, "--client", operator)
	if err != nil || len(of(r, doctor.OK, "p1", "roster")) != 1 || !strings.HasSuffix(of(r, doctor.OK, "p1", "roster")[0].What, "as at coordinator") ||
		len(of(r, doctor.OK, "p0", "config")) != 0 {
		t.Errorf("%v: %+v", err, r)
	}
	roster, err := config.LoadRoster(filepath.Join(l.Net.Dir, cli.RosterFile))
	if err != nil {
		t.Fatal(err)
	}
	roster.Parties[0].SigningKey, roster.Parties[1].SigningKey = roster.Parties[1].SigningKey, roster.Parties[0].SigningKey
	lodgetest.WriteYAML(t, rosterOfOthers, roster)
	if r, err := diagnosis(t, "--client", operator, "--roster", rosterOfOthers); err == nil || len(of(r, doctor.Fail, "p1", "roster")) != 1 {
		t.Errorf("with another roster: %v: %+v", err, r)
	}

	c, err := lodge.Load(client(devnet.App))
	if err != nil {
		t.Fatal(err)
	}
	c.Coordinator = lodge.Server{}
	lodgetest.WriteYAML(t, "parties.yaml", &c)
	refuses(rpc.Invalid, "parties.yaml has no coordinator", "stock", "--client", "parties.yaml")
	if out := ok("status", "--client", "parties.yaml"); strings.Count(out, "ready") != 2 || !strings.Contains(out, "does not know its address") {
		t.Error(out)
	}
	if r, err := diagnosis(t, "--client", "parties.yaml"); err != nil || len(of(r, doctor.Warn, "coordinator", "reach")) != 1 ||
		!strings.HasSuffix(of(r, doctor.OK, "p1", "roster")[0].What, "as at p0") {
		t.Errorf("without a coordinator: %v: %+v", err, r)
	}
}

const rosterOfOthers = "others.yaml"
