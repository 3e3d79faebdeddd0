package process_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/process"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// All files of a cluster are checked at once, with settings, and all errors are reported.
func TestConfigCheck(t *testing.T) {
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LODGE_CONFIG_METRICS_LISTEN", "127.0.0.1:9999")
	run := func(args ...string) (string, error) {
		root, out := lodgetest.NewLodge(), new(bytes.Buffer)
		root.SetOut(out)
		root.SetErr(out)
		err := cli.Execute(t.Context(), root, append([]string{"config"}, args...))
		return out.String(), err
	}
	roster := filepath.Join(net.Dir, "roster.yaml")
	out, err := run("check", net.Parties[0], net.Coordinator, roster)
	for _, want := range []string{"of party p0, with 2 parties, listens on 127.0.0.1:", "of coordinator coordinator, with 2 parties",
		"a roster of 2 parties", "metrics_listen: 127.0.0.1:9999 (the environment's LODGE_CONFIG_METRICS_LISTEN)"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s%v", want, out, err)
		}
	}
	out, err = run("check", "--json", roster, net.Parties[1], "--set", "policy.max_count=0")
	var r struct {
		Files []process.ConfigReport
		Error *struct{ Code string }
	}
	if err == nil || json.NewDecoder(strings.NewReader(out)).Decode(&r) != nil || len(r.Files) != 2 || r.Files[0].Error != "" ||
		!strings.Contains(r.Files[1].Error, "policy.max_count: missing or not positive") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(out, "warning") {
		t.Errorf("a warning about a cluster without rules:\n%s", out)
	}
	dev, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true, Dev: true})
	if err != nil {
		t.Fatal(err)
	}
	if out, err = run("check", dev.Parties[0]); err != nil || !strings.Contains(out, `warning: threshold.rules: client "app" can read the keys`) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = run("check", filepath.Join(net.Dir, "ca.pem")); err == nil {
		t.Errorf("a certificate is taken for a configuration: %s", out)
	}
	legacy, err := devnet.Write(filepath.Join(t.TempDir(), "legacy"), devnet.Options{Parties: 2, Params: []string{"insecure-8", "L11-53", "M11-4"}, Multikey: "M11-4", Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{legacy.Parties[0], legacy.Coordinator} {
		out, err = run("check", path)
		for _, want := range []string{"warning: set L11-53 is legacy (122.5 bits", "new keys are made with T11-53", "set M11-4 is legacy"} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s%v", want, out, err)
			}
		}
	}
	if out, err = run("check", filepath.Join(legacy.Dir, "roster.yaml")); err != nil || !strings.Contains(out, "warning: set M11-4 is legacy") {
		t.Errorf("a roster with a legacy set: %v\n%s", err, out)
	}
	if out, err = run("keys", "party"); err != nil || !strings.Contains(out, "LODGE_CONFIG_POLICY_MAX_MEMORY") {
		t.Errorf("%v\n%s", err, out)
	}
}
