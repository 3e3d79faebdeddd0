package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

func TestJobRequest(t *testing.T) {
	const triples = jobv1.Purpose_PURPOSE_TRIPLES
	shape := &jobv1.Shape{Rows: 200, Inner: 100, Columns: 50}
	for args, want := range map[string]*coordinatorv1.JobRequest{
		"--kind keys": {Kind: jobv1.Kind_KIND_KEYS, Params: "S14-33w", Purpose: triples},
		"--kind keys --dim 128 --purpose decryption --params p --epoch 4 --timeout 90s": {
			Kind: jobv1.Kind_KIND_KEYS, Params: "p", Dim: 128, Epoch: 4, Purpose: jobv1.Purpose_PURPOSE_DECRYPTION, Timeout: durationpb.New(90 * time.Second),
		},
		"--kind scalar --epoch 2 --count 9 --field p64 --tenant alice": {
			Kind: jobv1.Kind_KIND_SCALAR, Params: "S14-33w", Field: "p64", Dim: 1, Count: 9, Epoch: 2, Purpose: triples, Tenant: "alice",
		},
		"--kind input --input-party 1 --epoch 2 --count 9": {
			Kind: jobv1.Kind_KIND_INPUT, Params: "S14-33w", Field: "p128", Dim: 1, Count: 9, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant, InputParty: 1,
		},
		"--kind bit --epoch 2 --no-sacrifice": {
			Kind: jobv1.Kind_KIND_BIT, Params: "S14-33w", Field: "p128", Dim: 1, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant, NoSacrifice: true,
		},
		"--kind input --input-party 0 --epoch 2": {
			Kind: jobv1.Kind_KIND_INPUT, Params: "S14-33w", Field: "p128", Dim: 1, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
		},
		"--kind matrix --epoch 2 --shape 200x100x50": {
			Kind: jobv1.Kind_KIND_MATRIX, Params: "S14-33w", Field: "p128", Shape: shape, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
		},
		"--kind convolution --epoch 2 --shape 3x32x30 --kernel 16x3x5 --stride 1 --padding 1x2": {
			Kind: jobv1.Kind_KIND_CONVOLUTION, Params: "S14-33w", Field: "p128", Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
			Shape: &jobv1.Shape{Convolution: &jobv1.Convolution{
				Channels: 3, Height: 32, Width: 30, Outputs: 16, KernelHeight: 3, KernelWidth: 5, StrideHeight: 1, StrideWidth: 1,
				PaddingHeight: 1, PaddingWidth: 2,
			}},
		},
		"--kind convolution --epoch 2 --shape 1x9x8 --kernel 2x3x2 --stride 3x2 --dim 4": {
			Kind: jobv1.Kind_KIND_CONVOLUTION, Params: "S14-33w", Field: "p128", Dim: 4, Count: 1, Epoch: 2, Purpose: triples, Tenant: devnet.Tenant,
			Shape: &jobv1.Shape{Convolution: &jobv1.Convolution{
				Channels: 1, Height: 9, Width: 8, Outputs: 2, KernelHeight: 3, KernelWidth: 2, StrideHeight: 3, StrideWidth: 2,
			}},
		},
		"--kind matrix --epoch 2 --shape 5 --dim 4": {
			Kind: jobv1.Kind_KIND_MATRIX, Params: "S14-33w", Field: "p128", Dim: 4, Shape: &jobv1.Shape{Rows: 5, Inner: 5, Columns: 5}, Count: 1, Epoch: 2,
			Purpose: triples, Tenant: devnet.Tenant,
		},
	} {
		got, err := parseRequest(args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if want.Params == "S14-33w" {
			want.Params = got.Params // the default, which is the registry's to choose
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", args, got, want)
		}
	}
	for args, want := range map[string]string{
		"":                                        `--kind ""`,
		"--kind cubes":                            `--kind "cubes"`,
		"--kind keys --purpose fun":               `--purpose "fun"`,
		"--kind keys --field p64":                 "--field with --kind keys",
		"--kind keys --count 3":                   "--count with --kind keys",
		"--kind keys --tenant a":                  "--tenant with --kind keys",
		"--kind keys --shape 3":                   "--shape with --kind keys",
		"--kind keys --timeout -3s":               "--timeout -3s",
		"--kind scalar":                           "no --epoch",
		"--kind scalar --epoch 1 --input-party 0": "--input-party with --kind scalar",
		"--kind input --epoch 1":                  "no --input-party",
		"--kind random --epoch 1 --no-sacrifice":  "--no-sacrifice with --kind random",
		"--kind keys --no-sacrifice":              "--no-sacrifice with --kind keys",
		"--kind matrix --epoch 1":                 `--shape ""`,
		"--kind matrix --epoch 1 --shape 3x4":     "2 dimensions",
		"--kind matrix --epoch 1 --shape 3x0x4":   `"0" is not a dimension`,
		"--kind matrix --epoch 1 --shape 16384":   `"16384" is not a dimension`,
		"--kind matrix --epoch 1 --shape 1x2x-3":  `"-3" is not a dimension`,

		"--kind matrix --epoch 1 --shape 3 --stride 2":                             "--stride with --kind matrix",
		"--kind scalar --epoch 1 --padding 0":                                      "--padding with --kind scalar",
		"--kind convolution --epoch 1":                                             `--shape ""`,
		"--kind convolution --epoch 1 --shape 3x4":                                 "2 dimensions",
		"--kind convolution --epoch 1 --shape 3x4x4":                               `--kernel ""`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x0x3":                `"0" is not a dimension`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --stride 0":     `"0" is not a dimension from 1`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --padding -1":   `"-1" is not a dimension from 0`,
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --padding 1x1x": "3 dimensions",
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x5x3":                "a kernel of height 5 does not fit",
		"--kind convolution --epoch 1 --shape 3x4x4 --kernel 2x3x3 --stride 2":     "no window reads beyond the first 3",
	} {
		_, err := parseRequest(args)
		if !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func parseRequest(args string) (*coordinatorv1.JobRequest, error) {
	q, cmd := &jobOptions{}, &cobra.Command{}
	q.flags(cmd)
	if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
		return nil, err
	}
	return q.request(cmd.Flags().Changed)
}

// failedJob is one that party 2 ended by a cheat; a peer's words try to write to the terminal.
func failedJob(now time.Time) *coordinatorv1.Job {
	failure := &jobv1.Failure{
		Outcome: "blame", Round: "open", RoundIndex: 7, Check: "opening", Reason: "party 2 (p2) opened something else\x1b[2J\nroot#",
		Blame: &jobv1.Blame{Party: 2, Check: "opening", Reason: "opened something else"},
	}
	j := &coordinatorv1.Job{
		Id: "j1", State: jobv1.JobState_JOB_STATE_FAILED, Ordinal: 1, Epoch: 3, SubmittedBy: "operator", Failure: failure, Reason: failure.Reason,
		Request: &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Params: "S", Field: "p128", Dim: 1, Count: 100, Epoch: 3,
			Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: "dev"},
		Created: timestamppb.New(now.Add(-time.Minute)), Started: timestamppb.New(now.Add(-50 * time.Second)), Ended: timestamppb.New(now.Add(-48 * time.Second)),
	}
	for i, name := range []string{"p0", "p1", "p2"} {
		p := &coordinatorv1.PartyProgress{Party: uint32(i), Name: name, Reachable: i != 2, Status: &jobv1.SessionStatus{
			State: jobv1.JobState_JOB_STATE_GENERATING, Progress: &jobv1.Progress{
				Round: "open", RoundIndex: 7, WaitingFor: []uint32{2}, SentBytes: 1500, ReceivedBytes: 3e6, RoundReceivedBytes: 1, RoundLimitBytes: 4,
			},
		}}
		if i == 0 {
			p.Status.State, p.Status.Failure = jobv1.JobState_JOB_STATE_FAILED, failure
		}
		j.Parties = append(j.Parties, p)
	}
	return j
}

func TestPrintJob(t *testing.T) {
	now := time.Now()
	var out bytes.Buffer
	if err := printJob(&out, failedJob(now), now); err != nil {
		t.Fatal(err)
	}
	want := `
job         j1
state       failed
kind        scalar
purpose     triples
parameters  S
field       p128
block       1
asked       100
epoch       3
tenant      dev
submitted   1m0s ago by operator
took        2s

outcome: blame in round 7 (open), check opening: party 2 (p2) opened something else [2J root#
to blame: party 2 (p2), check opening: opened something else

PARTY  NAME  STATE              ROUND            WAITS FOR  SENT    RECEIVED  MEMORY  ENDED BY
0      p0    failed             round 7 open 25%  -          1.5 kB  3 MB      -       blame of party 2, check opening
1      p1    generating         round 7 open 25%  2          1.5 kB  3 MB      -       -
2      p2    generating (away)  round 7 open 25%  2          1.5 kB  3 MB      -       -
`
	want = strings.Replace(want, "ROUND            ", "ROUND             ", 1)
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPrintJobs(t *testing.T) {
	now := time.Now()
	long := failedJob(now)
	long.Id, long.Reason = "j2", strings.Repeat("é", 100)
	done := &coordinatorv1.Job{
		Id: "j3", State: jobv1.JobState_JOB_STATE_COMPLETED, Epoch: 3, Created: timestamppb.New(now), Request: &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS},
	}
	var out bytes.Buffer
	if err := printJobs(&out, []*coordinatorv1.Job{failedJob(now), long, done}, now); err != nil {
		t.Fatal(err)
	}
	want := `
ID  KIND    FIELD  STATE      AGE   PROGRESS          REASON
j1  scalar  p128   failed     1m0s  round 7 open 25%  party 2 (p2) opened something else [2J root#
j2  scalar  p128   failed     1m0s  round 7 open 25%  ` + strings.Repeat("é", maxReason-1) + `…
j3  keys    -      completed  0s    epoch 3           -
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// unreachableCluster runs a coordinator whose parties are not there: jobs wait.
func unreachableCluster(t *testing.T, change ...func(*config.CoordinatorFile)) (dir string) {
	t.Helper()
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.LoadCoordinator(net.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- coordinator.Run(ctx, f, "test", slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	until := time.Now().Add(10 * time.Second)
	for {
		_, err := runLodge(t, "jobs", "list", "--cluster", net.Dir)
		if err == nil {
			return net.Dir
		}
		if !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || time.Now().After(until) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// jobsOf runs `lodge jobs` with JSON and decodes what it writes.
func jobsOf[T any](t *testing.T, dir string, args ...string) (out T, err error) {
	t.Helper()
	text, err := runLodge(t, append([]string{"jobs", "--json", "--cluster", dir}, args...)...)
	if err == nil {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return out, err
}

func TestJobsCommand(t *testing.T) {
	dir := unreachableCluster(t)
	wants := func(err error, code rpc.Code, text string) {
		t.Helper()
		if !errors.Is(err, &rpc.Error{Code: code}) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s: %s", err, code, text)
		}
	}
	if out, err := runLodge(t, "jobs", "list", "--cluster", dir); err != nil || out != "no jobs\n" {
		t.Errorf("%v: %s", err, out)
	}
	submit := []string{"submit", "--kind", "keys", "--params", "insecure-8", "--idempotency-key", "k"}
	first, err := jobsOf[jobRecord](t, dir, submit...)
	if err != nil || first.Kind != "keys" || first.State != "pending" || first.SubmittedBy != devnet.Operator {
		t.Fatalf("%v: %+v", err, first)
	}
	again, err := jobsOf[jobRecord](t, dir, submit...)
	if err != nil || again.ID != first.ID {
		t.Errorf("%v: %s after %s with the same key", err, again.ID, first.ID)
	}
	_, err = jobsOf[jobRecord](t, dir, "submit", "--kind", "keys", "--params", "insecure-8", "--idempotency-key", "k", "--dim", "8")
	wants(err, rpc.Conflict, "use a new key")
	second, err := runLodge(t, "jobs", "submit", "--cluster", dir, "--kind", "keys", "--params", "insecure-8")
	if second = strings.TrimSpace(second); err != nil || second <= first.ID {
		t.Fatalf("%v: %q", err, second)
	}

	list, err := jobsOf[jobList](t, dir, "list", "--limit", "1")
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].ID != second || list.Next != second {
		t.Errorf("%v: %+v", err, list)
	}
	list, err = jobsOf[jobList](t, dir, "list", "--before", second, "--state", "pending,failed")
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].ID != first.ID {
		t.Errorf("%v: %+v", err, list)
	}

	if out, err := runLodge(t, "jobs", "cancel", second, "--cluster", dir, "--dry-run"); err != nil || !strings.Contains(out, "would be cancelled:\njob         "+second) {
		t.Errorf("%v: %s", err, out)
	}
	if shown, err := jobsOf[jobRecord](t, dir, "show", second); err != nil || shown.State != "pending" {
		t.Errorf("after a dry run: %v: %+v", err, shown)
	}
	for _, id := range []string{second, first.ID} {
		if _, err := jobsOf[jobRecord](t, dir, "cancel", id, "--reason", "not needed"); err != nil {
			t.Error(err)
		}
		out, err := runLodge(t, "jobs", "watch", id, "--cluster", dir)
		wants(err, rpc.Cancelled, "not needed")
		if !strings.Contains(out, "state       cancelled") {
			t.Error(out)
		}
	}
	_, err = jobsOf[jobRecord](t, dir, "cancel", second)
	wants(err, rpc.Conflict, "CANCELLED")
	_, err = jobsOf[jobRecord](t, dir, "cancel", second, "--dry-run")
	wants(err, rpc.Conflict, "nothing to cancel")
	for _, command := range []string{"show", "watch", "cancel"} {
		_, err = jobsOf[jobRecord](t, dir, command, "j0")
		wants(err, rpc.NotFound, "lodge jobs list")
	}
	_, err = jobsOf[jobList](t, dir, "list", "--state", "happy")
	wants(err, rpc.Invalid, "pending, preparing")
	_, err = jobsOf[jobList](t, dir, "list", "--identity", filepath.Join(dir, "clients", devnet.App+".pem"))
	wants(err, rpc.Forbidden, "clients")
	_, err = jobsOf[jobList](t, t.TempDir(), "list")
	wants(err, rpc.NotFound, "--cluster")
	_, err = jobsOf[jobList](t, dir, "list", "--identity", filepath.Join(dir, "clients", "nobody.pem"))
	wants(err, rpc.NotFound, "--identity")
}

// Nobody listens: the error names the address.
func TestJobsWithoutCoordinator(t *testing.T) {
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"watch", "j1"}, {"submit", "--kind", "keys"}} {
		_, err = jobsOf[jobList](t, net.Dir, args...)
		if !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || !strings.Contains(err.Error(), "listens at "+net.Roster.Coordinator.Address) {
			t.Error(err)
		}
	}
}

// With JSON, submit --wait writes one record, at the end, and watch a line at every change.
func TestSubmitWaitJSON(t *testing.T) {
	l := startLive(t)
	scalar := []string{"jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", liveField, "--epoch", "1", "--wait"}
	j := read[jobRecord](l, scalar...) // fails if there are more records than one
	if j.State != "completed" || j.Epoch != 1 {
		t.Errorf("%+v", j)
	}
	lines := strings.Split(strings.TrimSpace(l.ok("jobs", "watch", j.ID, "--json")), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &j); err != nil || j.State != "completed" {
		t.Errorf("%v: %s", err, lines)
	}
	l.stop[2]()
	cancel := make(chan error, 1)
	go func() {
		var err error
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			var list jobList
			if list, err = jobsOf[jobList](t, l.net.Dir, "list", "--limit", "1"); err != nil || list.Jobs[0].ID == j.ID {
				continue
			}
			_, err = jobsOf[jobRecord](t, l.net.Dir, "cancel", list.Jobs[0].ID, "--reason", "not needed")
			break
		}
		cancel <- err
	}()
	out, err := l.try(append(scalar, "--json")...)
	var failed struct {
		jobRecord
		Error failure `json:"error"`
	}
	if jerr := json.Unmarshal([]byte(out), &failed); jerr != nil || failed.State != "cancelled" || failed.Error.Code != rpc.Cancelled || !errors.Is(err, &rpc.Error{Code: rpc.Cancelled}) {
		t.Errorf("%v, %v: %s", jerr, err, out)
	}
	if err := <-cancel; err != nil {
		t.Error(err)
	}
}
