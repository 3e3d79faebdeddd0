package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal/terminaltest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/try"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Invalid flags are rejected before the directory is made. Flags that contradict the existing
// cluster are rejected too.
func TestDevRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net")
	dev := func(want string, args ...string) {
		t.Helper()
		_, err := lodgetest.Run(t, append([]string{"dev", "--dir", dir}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
	for want, args := range map[string][]string{
		"--parties 1 (a cluster has 2 to": {"--parties", "1"},
		"--parties 65 (":                  {"--parties", "65"},
		"--port 80000 (":                  {"--port", "80000"},
		"--port 65533 (":                  {"--port", "65533"},
		"--port -1 (":                     {"--port", "-1"},
		"--dim 3 (":                       {"--dim", "3"},
		"--dim 8192 (":                    {"--dim", "8192"},
		"p99":                             {"--field", "p99"},
		"S-none":                          {"--params", "S-none"},
		"T-none":                          {"--params", "insecure-8,T-none"},
		"M-none":                          {"--multikey", "M-none"},
		"--params is empty":               {"--params", ""},
	} {
		dev(want, args...)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after refusals: %v", err)
	}
	if _, err := lodgetest.Run(t, "init", dir, "--port", "65533"); err == nil || cli.Exists(dir) {
		t.Errorf("lodge init: %v", err)
	}
	net, err := devnet.Write(dir, devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(net.Roster.Coordinator.Address, ":")
	remove := "remove " + dir + ", or leave out --"
	dev("--parties 5, and the cluster in "+dir+" has 2 ("+remove+"parties", "--parties", "5")
	dev("--params S14-32, and the cluster in "+dir+" has insecure-8 ("+remove+"params", "--params", "S14-32")
	dev("--port 1, and the cluster in "+dir+" has "+port+" ("+remove+"port", "--port", "1")
	dev("p99", "--field", "p99", "--parties", "2", "--params", "insecure-8", "--port", port)
	if logs, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(logs) > 0 {
		t.Errorf("%v: something ran: %v", err, logs)
	}
}

// While one lodge dev runs, another one is rejected and changes nothing. The next one continues
// with the same cluster.
func TestDev(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net")
	args := []string{"dev", "--dir", dir, "--field", lodgetest.LiveField, "--stock", "100", "--minimal", "--json"}
	var logs string
	for _, more := range [][]string{{"--parties", "2", "--params", "insecure-8"}, {"--dim", "8"}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out, said := &terminaltest.Screen{T: t}, &terminaltest.Screen{T: t}
		root := lodgetest.NewLodge()
		root.SetArgs(append(args, more...))
		root.SetOut(out)
		root.SetErr(said)
		ended := make(chan error, 1)
		go func() { ended <- root.ExecuteContext(ctx) }()
		out.Shows("}\n")
		var r try.DevReport
		if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Epoch != 1 || r.Available < 100 {
			t.Errorf("%v: %s", err, out)
		}
		other := fmt.Sprintf("another lodge dev runs on %s (pid %d)", dir, os.Getpid())
		if again, err := lodgetest.Run(t, args...); !errors.Is(err, &rpc.Error{Code: rpc.Conflict}) || !strings.Contains(err.Error(), other) || strings.Contains(again, "ready") {
			t.Errorf("a second one: %v\n%s", err, again)
		}
		b, err := os.ReadFile(filepath.Join(dir, "p1.log"))
		if err != nil || len(b) <= len(logs) || !strings.HasPrefix(string(b), logs) {
			t.Errorf("%v: the log is\n%s\nafter\n%s", err, b, logs)
		}
		logs = string(b)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, said)
		}
		if note := strings.Contains(said.String(), "--dim 8 applies to new keys, but epoch 1 exists: lodge jobs submit --kind keys --dim 8 --cluster "+dir); note != (len(more) == 2) {
			t.Errorf("%v: %s", more, said)
		}
	}
}

// Without --cluster the environment variable applies, and without that the directory of `lodge
// dev`.
func TestClusterDir(t *testing.T) {
	t.Chdir(t.TempDir())
	want := func(flag, want string) {
		t.Helper()
		if got := cli.ClusterDir(flag); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	want("", ".")
	if err := errors.Join(os.Mkdir(cli.DevDir, 0o700), os.WriteFile(filepath.Join(cli.DevDir, cli.RosterFile), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	want("", cli.DevDir)
	want("there", "there")
	if err := os.WriteFile(cli.RosterFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want("", ".")
	t.Setenv(cli.ClusterVariable, "elsewhere")
	want("", "elsewhere")
	want("there", "there")
	for _, args := range [][]string{{"stock"}, {"doctor"}, {"ciphertexts", "encrypt", "1", "--out", "x"}} {
		if _, err := lodgetest.Run(t, args...); err == nil || !strings.Contains(err.Error(), "elsewhere/") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
