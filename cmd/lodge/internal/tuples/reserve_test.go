package tuples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/tuples"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestReserveCommands(t *testing.T) {
	l := lodgetest.Start(t)
	reserve := append([]string{"reserve"}, lodgetest.Class()...)
	first := lodgetest.Read[tuples.ReservationRecord](l, append(reserve, "--count", "10", "--idempotency-key", "k", "--lease", "5m")...)
	if first.State != "reserved" || first.Count != 10 || first.Epoch != 1 || first.Owner != "operator" || len(first.Ranges) == 0 || first.Kind != "scalar" {
		t.Fatalf("%+v", first)
	}
	if again := lodgetest.Read[tuples.ReservationRecord](l, append(reserve, "--count", "10", "--idempotency-key", "k")...); again.ID != first.ID {
		t.Errorf("%s after %s with the same key", again.ID, first.ID)
	}
	l.Refuses(rpc.Conflict, "use a new key", append(reserve, "--count", "11", "--idempotency-key", "k")...)
	l.Refuses(rpc.OutOfStock, "submit a job", append(reserve, "--count", "1000000")...)
	start := time.Now()
	l.Refuses(rpc.OutOfStock, "the request is for 1000000", append(reserve, "--count", "1000000", "--wait", "--timeout", "500ms")...)
	if took := time.Since(start); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("waited %s of 500 ms", took)
	}
	second := strings.TrimSpace(l.OK(append(reserve, "--count", "5", "--clients", "client-p0,client-p1")...))

	l.Shows([]string{"reservations", "list"}, second, first.ID, "client-p0,client-p1")
	l.Shows([]string{"reservations", "list", "--limit", "1"}, second, "there are more: lodge reservations list --before ")
	l.Shows([]string{"reservations", "list", "--party", "p1", "--open"}, first.ID, second)
	l.Shows([]string{"reservations", "show", second}, "5 scalar over p64, insecure-8", "client-p0, client-p1", "1      p1    reserved")
	l.Shows([]string{"reservations", "show", second, "--party", "0"}, "state        reserved", "digest       ")
	if r := lodgetest.Read[tuples.ReservationRecord](l, "reservations", "show", second); len(r.Parties) != 2 || !r.Parties[0].Reachable || r.Parties[1].State != "reserved" {
		t.Errorf("%+v", r)
	}
	l.Refuses(rpc.NotFound, "`lodge reservations list`", "reservations", "show", "nope")
	l.Refuses(rpc.Invalid, "write one of p0, p1", "reservations", "list", "--party", "p7")

	l.Shows([]string{"release", second, "--dry-run"}, "would return to the stock", "reserved")
	if r := lodgetest.Read[tuples.ReservationRecord](l, "reservations", "show", second); r.State != "reserved" {
		t.Errorf("after a dry run: %s", r.State)
	}
	l.Shows([]string{"release", second}, "5 tuples are back in stock")
	l.Shows([]string{"release", second, "--dry-run"}, "there is nothing to release")
	l.Refuses(rpc.NotFound, "", "release", "nope")

	l.Completes([]string{"reservations", "show", ""}, first.ID)
	l.Completes([]string{"jobs", "show", ""}, lodgetest.Read[cli.JobList](l, "jobs", "list").Jobs[0].ID)
	l.Completes([]string{"reservations", "list", "--party", ""}, "p0", "p1")
	l.Completes([]string{"reserve", "--kind", ""}, "scalar", "inverse")
	l.Completes([]string{"reserve", "--field", ""}, "p128")
	l.Completes([]string{"jobs", "submit", "--params", ""}, "insecure-8")
	l.Completes([]string{"jobs", "list", "--state", ""}, "completed")
	l.Completes([]string{"reserve", "--clients", ""}, "client-p0", "client-p1")
}

func TestCompletionScripts(t *testing.T) {
	for shell, want := range map[string]string{"bash": "__start_lodge", "zsh": "#compdef lodge", "fish": "complete -c lodge", "powershell": "Register-ArgumentCompleter"} {
		if out, err := lodgetest.Run(t, "completion", shell); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v: no %q", shell, err, want)
		}
	}
}

func TestReserveFlags(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"write scalar, matrix":             {"--kind", "keys", "--count", "1"},
		"only matrices and convolutions":   {"--kind", "scalar", "--shape", "3", "--count", "1"},
		"--kernel with --kind matrix":      {"--kind", "matrix", "--shape", "3", "--kernel", "1x1x1", "--count", "1"},
		`--kernel ""`:                      {"--kind", "convolution", "--shape", "3x4x4", "--count", "1"},
		"only input masks":                 {"--kind", "bit", "--input-party", "0", "--count", "1"},
		"no --input-party":                 {"--kind", "input", "--count", "1"},
		"--no-sacrifice with --kind input": {"--kind", "input", "--input-party", "0", "--no-sacrifice", "--count", "1"},
		`--shape "3x4"`:                    {"--kind", "matrix", "--shape", "3x4", "--count", "1"},
		"write the ":                       {"--kind", "scalar", "--count", "0"},
		"--lease -1s":                      {"--kind", "scalar", "--count", "1", "--lease", "-1s"},
		"--timeout 0s":                     {"--kind", "scalar", "--count", "1", "--wait", "--timeout", "0"},
		"--cluster, or --roster":           {"--kind", "scalar", "--count", "1"},
		`required flag(s) "count"`:         {"--kind", "scalar"},
		`required flag(s) "kind" not`:      {"--count", "1"},
	} {
		if _, err := lodgetest.Run(t, append([]string{"reserve", "--cluster", dir}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

// Requests that no party could fulfil are rejected at once, with an error that names the flags.
func TestRefusedAtOnce(t *testing.T) {
	l := lodgetest.Start(t)
	submit := []string{"jobs", "submit", "--params", "insecure-8", "--field", lodgetest.LiveField}
	l.Refuses(rpc.Invalid, "write one of p64", "reserve", "--kind", "scalar", "--params", "insecure-8", "--field", "p100", "--count", "1")
	l.Refuses(rpc.Invalid, "lodge params list", "reserve", "--kind", "scalar", "--params", "S1", "--count", "1")
	l.Refuses(rpc.Invalid, "--count 0", append(submit, "--kind", "bit", "--count", "0", "--epoch", "1")...)
	l.Refuses(rpc.NotFound, "no epoch 9 at party p", append(submit, "--kind", "bit", "--epoch", "9")...)
	l.Refuses(rpc.NotFound, "lodge keys generate --purpose triples", append(submit, "--kind", "bit", "--epoch", "9", "--idempotency-key", "k")...)
	l.Refuses(rpc.Invalid, "`lodge jobs submit --kind keys --dim 4` makes", append(submit, "--kind", "matrix", "--shape", "3", "--epoch", "1", "--dim", "4", "--dry-run")...)
	l.Refuses(rpc.NotFound, "no policy of scalar for the newest epoch", append([]string{"stock", "policies", "delete"}, lodgetest.Class()...)...)
	l.Refuses(rpc.NotFound, "`lodge batches list`", "revoke", "nope", "--party", "p0", "--dry-run")

	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x.y.z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 10 { // either the alert or a broken pipe may come first
		l.Refuses(rpc.Unauthenticated, "it requires a certificate", "jobs", "list", "--token-file", token)
	}
}
