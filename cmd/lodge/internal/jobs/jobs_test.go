package jobs_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// jobsOf runs `lodge jobs` with JSON and decodes what it writes.
func jobsOf[T any](t *testing.T, dir string, args ...string) (out T, err error) {
	t.Helper()
	text, err := lodgetest.Run(t, append([]string{"jobs", "--json", "--cluster", dir}, args...)...)
	if err == nil {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return out, err
}

func TestJobsCommand(t *testing.T) {
	dir := lodgetest.UnreachableCluster(t)
	wants := func(err error, code rpc.Code, text string) {
		t.Helper()
		if !errors.Is(err, &rpc.Error{Code: code}) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s: %s", err, code, text)
		}
	}
	if out, err := lodgetest.Run(t, "jobs", "list", "--cluster", dir); err != nil || out != "no jobs\n" {
		t.Errorf("%v: %s", err, out)
	}
	submit := []string{"submit", "--kind", "keys", "--params", "insecure-8", "--idempotency-key", "k"}
	first, err := jobsOf[cli.JobRecord](t, dir, submit...)
	if err != nil || first.Kind != "keys" || first.State != "pending" || first.SubmittedBy != devnet.Operator {
		t.Fatalf("%v: %+v", err, first)
	}
	again, err := jobsOf[cli.JobRecord](t, dir, submit...)
	if err != nil || again.ID != first.ID {
		t.Errorf("%v: %s after %s with the same key", err, again.ID, first.ID)
	}
	_, err = jobsOf[cli.JobRecord](t, dir, "submit", "--kind", "keys", "--params", "insecure-8", "--idempotency-key", "k", "--dim", "8")
	wants(err, rpc.Conflict, "use a new key")
	second, err := lodgetest.Run(t, "jobs", "submit", "--cluster", dir, "--kind", "keys", "--params", "insecure-8")
	if second = strings.TrimSpace(second); err != nil || second <= first.ID {
		t.Fatalf("%v: %q", err, second)
	}

	list, err := jobsOf[cli.JobList](t, dir, "list", "--limit", "1")
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].ID != second || list.Next != second {
		t.Errorf("%v: %+v", err, list)
	}
	list, err = jobsOf[cli.JobList](t, dir, "list", "--before", second, "--state", "pending,failed")
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].ID != first.ID {
		t.Errorf("%v: %+v", err, list)
	}

	if out, err := lodgetest.Run(t, "jobs", "cancel", second, "--cluster", dir, "--dry-run"); err != nil || !strings.Contains(out, "would be cancelled:\njob         "+second) {
		t.Errorf("%v: %s", err, out)
	}
	if shown, err := jobsOf[cli.JobRecord](t, dir, "show", second); err != nil || shown.State != "pending" {
		t.Errorf("after a dry run: %v: %+v", err, shown)
	}
	for _, id := range []string{second, first.ID} {
		if _, err := jobsOf[cli.JobRecord](t, dir, "cancel", id, "--reason", "not needed"); err != nil {
			t.Error(err)
		}
		out, err := lodgetest.Run(t, "jobs", "watch", id, "--cluster", dir)
		wants(err, rpc.Cancelled, "not needed")
		if !strings.Contains(out, "state       cancelled") {
			t.Error(out)
		}
	}
	_, err = jobsOf[cli.JobRecord](t, dir, "cancel", second)
	wants(err, rpc.Conflict, "CANCELLED")
	_, err = jobsOf[cli.JobRecord](t, dir, "cancel", second, "--dry-run")
	wants(err, rpc.Conflict, "about to be completed")
	for _, command := range []string{"show", "watch", "cancel"} {
		_, err = jobsOf[cli.JobRecord](t, dir, command, "j0")
		wants(err, rpc.NotFound, "lodge jobs list")
	}
	_, err = jobsOf[cli.JobList](t, dir, "list", "--state", "happy")
	wants(err, rpc.Invalid, "pending, preparing")
	_, err = jobsOf[cli.JobList](t, dir, "list", "--identity", filepath.Join(dir, "clients", devnet.App+".pem"))
	wants(err, rpc.Forbidden, "clients")
	_, err = jobsOf[cli.JobList](t, t.TempDir(), "list")
	wants(err, rpc.NotFound, "--cluster")
	_, err = jobsOf[cli.JobList](t, dir, "list", "--identity", filepath.Join(dir, "clients", "nobody.pem"))
	wants(err, rpc.NotFound, "--identity")
}

// The coordinator is unreachable: the error names the address.
func TestJobsWithoutCoordinator(t *testing.T) {
	net, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"watch", "j1"}, {"submit", "--kind", "keys"}} {
		_, err = jobsOf[cli.JobList](t, net.Dir, args...)
		if !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || !strings.Contains(err.Error(), "listens at "+net.Roster.Coordinator.Address) {
			t.Error(err)
		}
	}
}

// With JSON, submit --wait writes one record at the end, and watch one line at every change.
func TestSubmitWaitJSON(t *testing.T) {
	l := lodgetest.Start(t)
	scalar := []string{"jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", lodgetest.LiveField, "--epoch", "1", "--wait"}
	j := lodgetest.Read[cli.JobRecord](l, scalar...) // fails if there are several records
	if j.State != "completed" || j.Epoch != 1 {
		t.Errorf("%+v", j)
	}
	lines := strings.Split(strings.TrimSpace(l.OK("jobs", "watch", j.ID, "--json")), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &j); err != nil || j.State != "completed" {
		t.Errorf("%v: %s", err, lines)
	}
	l.Stop[2]()
	cancel := make(chan error, 1)
	go func() {
		var err error
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			var list cli.JobList
			if list, err = jobsOf[cli.JobList](t, l.Net.Dir, "list", "--limit", "1"); err != nil || list.Jobs[0].ID == j.ID {
				continue
			}
			_, err = jobsOf[cli.JobRecord](t, l.Net.Dir, "cancel", list.Jobs[0].ID, "--reason", "not needed")
			break
		}
		cancel <- err
	}()
	out, err := l.Try(append(scalar, "--json")...)
	var failed struct {
		cli.JobRecord
		Error cli.Failure `json:"error"`
	}
	if jerr := json.Unmarshal([]byte(out), &failed); jerr != nil || failed.State != "cancelled" || failed.Error.Code != rpc.Cancelled || !errors.Is(err, &rpc.Error{Code: rpc.Cancelled}) {
		t.Errorf("%v, %v: %s", jerr, err, out)
	}
	if err := <-cancel; err != nil {
		t.Error(err)
	}
}
