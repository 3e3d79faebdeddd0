package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func class(args ...string) []string {
	return append([]string{"--kind", "scalar", "--params", "insecure-8", "--field", liveField}, args...)
}

func TestReserveCommands(t *testing.T) {
	l := startLive(t)
	reserve := append([]string{"reserve"}, class()...)
	first := read[reservationRecord](l, append(reserve, "--count", "10", "--idempotency-key", "k", "--lease", "5m")...)
	if first.State != "reserved" || first.Count != 10 || first.Epoch != 1 || first.Owner != "operator" || len(first.Ranges) == 0 || first.Kind != "scalar" {
		t.Fatalf("%+v", first)
	}
	if again := read[reservationRecord](l, append(reserve, "--count", "10", "--idempotency-key", "k")...); again.ID != first.ID {
		t.Errorf("%s after %s with the same key", again.ID, first.ID)
	}
	l.refuses(rpc.Conflict, "use a new key", append(reserve, "--count", "11", "--idempotency-key", "k")...)
	l.refuses(rpc.OutOfStock, "submit a job", append(reserve, "--count", "1000000")...)
	start := time.Now()
	l.refuses(rpc.OutOfStock, "the request is for 1000000", append(reserve, "--count", "1000000", "--wait", "--timeout", "500ms")...)
	if took := time.Since(start); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("waited %s of 500 ms", took)
	}
	second := strings.TrimSpace(l.ok(append(reserve, "--count", "5", "--clients", "client-p0,client-p1")...))

	l.shows([]string{"reservations", "list"}, second, first.ID, "client-p0,client-p1")
	l.shows([]string{"reservations", "list", "--limit", "1"}, second, "there are more: lodge reservations list --before ")
	l.shows([]string{"reservations", "list", "--party", "p1", "--open"}, first.ID, second)
	l.shows([]string{"reservations", "show", second}, "5 scalar over p64, insecure-8", "client-p0, client-p1", "1      p1    reserved")
	l.shows([]string{"reservations", "show", second, "--party", "0"}, "state        reserved", "digest       ")
	if r := read[reservationRecord](l, "reservations", "show", second); len(r.Parties) != 2 || !r.Parties[0].Reachable || r.Parties[1].State != "reserved" {
		t.Errorf("%+v", r)
	}
	l.refuses(rpc.NotFound, "`lodge reservations list`", "reservations", "show", "nope")
	l.refuses(rpc.Invalid, "write one of p0, p1", "reservations", "list", "--party", "p7")

	l.shows([]string{"release", second, "--dry-run"}, "would go back into stock", "reserved")
	if r := read[reservationRecord](l, "reservations", "show", second); r.State != "reserved" {
		t.Errorf("after a dry run: %s", r.State)
	}
	l.shows([]string{"release", second}, "5 tuples are back in stock")
	l.shows([]string{"release", second, "--dry-run"}, "there is nothing to release")
	l.refuses(rpc.NotFound, "", "release", "nope")

	l.completes([]string{"reservations", "show", ""}, first.ID)
	l.completes([]string{"jobs", "show", ""}, read[jobList](l, "jobs", "list").Jobs[0].ID)
	l.completes([]string{"reservations", "list", "--party", ""}, "p0", "p1")
	l.completes([]string{"reserve", "--kind", ""}, "scalar", "inverse")
	l.completes([]string{"reserve", "--field", ""}, "p128")
	l.completes([]string{"jobs", "submit", "--params", ""}, "insecure-8")
	l.completes([]string{"jobs", "list", "--state", ""}, "completed")
	l.completes([]string{"reserve", "--clients", ""}, "client-p0", "client-p1")
}

// completes runs what a shell's completion runs.
func (l *live) completes(args []string, want ...string) {
	l.t.Helper()
	last := len(args) - 1
	all := append([]string{"__complete"}, args[:last]...)
	// The word to complete is the last; flags stand before it, and before the flag that it is the value of.
	if strings.HasPrefix(all[len(all)-1], "--") {
		all = append(append(all[:last:last], "--cluster", l.net.Dir), args[last-1:]...)
	} else {
		all = append(all, "--cluster", l.net.Dir, args[last])
	}
	out, err := runLodge(l.t, all...)
	if err != nil {
		l.t.Fatal(err)
	}
	words := strings.Split(out, "\n")
	for _, w := range want {
		found := false
		for _, x := range words {
			word, _, _ := strings.Cut(x, "\t")
			found = found || word == w
		}
		if !found {
			l.t.Errorf("%v: no %q in\n%s", all, w, out)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for shell, want := range map[string]string{"bash": "__start_lodge", "zsh": "#compdef lodge", "fish": "complete -c lodge", "powershell": "Register-ArgumentCompleter"} {
		if out, err := runLodge(t, "completion", shell); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v: no %q", shell, err, want)
		}
	}
}

func TestReserveFlags(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"write scalar, matrix":             {"--kind", "keys", "--count", "1"},
		"shapes are of matrices and":       {"--kind", "scalar", "--shape", "3", "--count", "1"},
		"--kernel with --kind matrix":      {"--kind", "matrix", "--shape", "3", "--kernel", "1x1x1", "--count", "1"},
		`--kernel ""`:                      {"--kind", "convolution", "--shape", "3x4x4", "--count", "1"},
		"only input masks":                 {"--kind", "bit", "--input-party", "0", "--count", "1"},
		"no --input-party":                 {"--kind", "input", "--count", "1"},
		"--no-sacrifice with --kind input": {"--kind", "input", "--input-party", "0", "--no-sacrifice", "--count", "1"},
		`--shape "3x4"`:                    {"--kind", "matrix", "--shape", "3x4", "--count", "1"},
		"say how many":                     {"--kind", "scalar", "--count", "0"},
		"--lease -1s":                      {"--kind", "scalar", "--count", "1", "--lease", "-1s"},
		"--timeout 0s":                     {"--kind", "scalar", "--count", "1", "--wait", "--timeout", "0"},
		"--cluster, or --roster":           {"--kind", "scalar", "--count", "1"},
		`required flag(s) "count"`:         {"--kind", "scalar"},
		`required flag(s) "kind" not`:      {"--count", "1"},
	} {
		if _, err := runLodge(t, append([]string{"reserve", "--cluster", dir}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

func TestPrintStock(t *testing.T) {
	scalar := &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_SCALAR, Params: "S", Field: "p128"}
	policy := &stockv1.Policy{Class: scalar, Low: 100, High: 200, Batch: 50, Priority: 7, Paused: true}
	list := []*stockv1.Stock{
		{Class: scalar, Epoch: 1, Available: 12, Reserved: 3, Consumed: 4, Lost: 5, InProduction: 50, MadePerSecond: 1234.5, ReservedPerSecond: 2,
			TimeToEmpty: durationpb.New(90 * time.Second), Policy: policy, HeldBack: "paused\x1b"},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_MATRIX, Params: "S", Field: "p64", Shape: &jobv1.Shape{Rows: 2, Inner: 3, Columns: 4}}, Epoch: 2},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_CONVOLUTION, Params: "S", Field: "p64", Shape: &jobv1.Shape{Convolution: &jobv1.Convolution{
			Channels: 3, Height: 9, Width: 8, Outputs: 2, KernelHeight: 3, KernelWidth: 2, StrideHeight: 3, StrideWidth: 2, PaddingWidth: 1,
		}}}, Epoch: 2},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_BIT, Params: "S", Field: "p64", NoSacrifice: true}, Epoch: 2},
		{Class: &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_INPUT, Params: "S", Field: "p64", InputParty: 1}, Epoch: 2, TimeToEmpty: durationpb.New(100 * time.Hour)},
	}
	var out bytes.Buffer
	if err := printStock(&out, &stockv1.GetStockResponse{Stock: list}, time.Now()); err != nil {
		t.Fatal(err)
	}
	want := `
KIND                                                 FIELD  PARAMS  TENANT  EPOCH  AVAILABLE  RESERVED  CONSUMED  LOST  MAKING  RATE          EMPTY IN  POLICY               HELD BACK
scalar                                               p128   S       dev     1      12         3         4         5     50      +1.23e+03 -2  1m30s     100 to 200 (paused)  paused 
matrix 2x3x4                                         p64    S       dev     2      0          0         0         0     0       -             -         -                    -
convolution 3x9x8 by 2x3x2, stride 3x2, padding 0x1  p64    S       dev     2      0          0         0         0     0       -             -         -                    -
bit (no sacrifice)                                   p64    S       dev     2      0          0         0         0     0       -             -         -                    -
input of 1                                           p64    S       dev     2      0          0         0         0     0       -             4d        -                    -
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := printPolicies(&out, []*stockv1.Policy{policy}); err != nil {
		t.Fatal(err)
	}
	want = `
KIND    FIELD  PARAMS  TENANT  EPOCH   LOW  HIGH  BATCH  PRIORITY  STATE
scalar  p128   S       dev     newest  100  200   50     7         paused
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What no party could have or make is refused at once, in the words of the flags.
func TestRefusedAtOnce(t *testing.T) {
	l := startLive(t)
	submit := []string{"jobs", "submit", "--params", "insecure-8", "--field", liveField}
	l.refuses(rpc.Invalid, "write one of p64", "reserve", "--kind", "scalar", "--params", "insecure-8", "--field", "p100", "--count", "1")
	l.refuses(rpc.Invalid, "lodge params list", "reserve", "--kind", "scalar", "--params", "S1", "--count", "1")
	l.refuses(rpc.Invalid, "--count 0", append(submit, "--kind", "bit", "--count", "0", "--epoch", "1")...)
	l.refuses(rpc.NotFound, "no epoch 9 at party p", append(submit, "--kind", "bit", "--epoch", "9")...)
	l.refuses(rpc.NotFound, "lodge jobs submit --kind keys", append(submit, "--kind", "bit", "--epoch", "9", "--idempotency-key", "k")...)
	l.refuses(rpc.Invalid, "`lodge jobs submit --kind keys --dim 4` makes", append(submit, "--kind", "matrix", "--shape", "3", "--epoch", "1", "--dim", "4", "--dry-run")...)
	l.refuses(rpc.NotFound, "no policy of scalar for the newest epoch", append([]string{"stock", "policies", "delete"}, class()...)...)
	l.refuses(rpc.NotFound, "`lodge batches list`", "revoke", "nope", "--party", "p0", "--dry-run")

	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x.y.z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 10 { // whether the alert or a broken pipe comes first is a matter of luck
		l.refuses(rpc.Unauthenticated, "it wants a certificate", "jobs", "list", "--token-file", token)
	}
}
