package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
	"github.com/lodge-mpc/lodge/services/session/accusations/accusationstest"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// hold puts into the stopped party 0 what it would have recorded: three failures, and evidence against party 1.
func (l *live) hold() (evidence []byte) {
	l.t.Helper()
	f, err := config.LoadParty(l.net.Parties[0])
	if err != nil {
		l.t.Fatal(err)
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		l.t.Fatal(err)
	}
	v, err := vault.Open(f.Vault.Dir, key)
	if err != nil {
		l.t.Fatal(err)
	}
	defer v.Close()
	roster := l.net.Roster.Hash()
	for range 3 {
		u := conduct.Unnamed{Roster: roster, Job: "job-7-1", Epoch: 1, Check: "mac", Reason: "values and MACs differ", Suspects: []string{"p1"}}
		if _, _, err := v.NoteUnnamed(u, conduct.Tolerance{Most: 3, Within: time.Hour}); err != nil {
			l.t.Fatal(err)
		}
	}
	accuser, err := accusationstest.Member(l.net, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	culprit, err := accusationstest.Member(l.net, 1)
	if err != nil {
		l.t.Fatal(err)
	}
	if evidence, err = accusationstest.Equivocation(l.net.Roster, &jobv1.SessionRef{JobId: "job-8", Ordinal: 1}, culprit, accuser); err != nil {
		l.t.Fatal(err)
	}
	e, err := v.NewEvidence()
	if err != nil {
		l.t.Fatal(err)
	}
	_, err = e.Write(evidence)
	if err = errors.Join(err, e.Commit()); err != nil {
		l.t.Fatal(err)
	}
	_, err = v.Accuse(conduct.Accusation{Roster: roster, Culprit: "p1", Key: l.net.Roster.Parties[1].SigningKey, Kind: "equivocation", Check: "echo",
		Reason: "has signed two versions of x/ct", Job: "job-8-1"}, e, conduct.EvidenceRoom{Bytes: 1 << 20, PerCulprit: 1})
	if err != nil {
		l.t.Fatal(err)
	}
	return evidence
}

type heldReport struct {
	Accusations []accusationRecord
	Failures    []unnamedRecord
	Standing    standingRecord
}

// What stops generation is shown everywhere, and an operator lets it go on; evidence is written and verified elsewhere.
func TestAccusationsCommand(t *testing.T) {
	l := startLive(t)
	l.stop[1]()
	evidence := l.hold()
	l.run(func(ctx context.Context) error {
		f, err := config.LoadParty(l.net.Parties[0])
		if err != nil {
			return err
		}
		return party.Run(ctx, f, "test", slog.New(slog.DiscardHandler))
	})
	at := []string{"--party", "p0"}
	l.eventually(func() bool { _, err := l.try(append([]string{"accusations", "list"}, at...)...); return err == nil })
	l.shows(append([]string{"accusations", "list"}, at...), "no session begins: party 1 (p1) is excluded", "equivocation", "3 failures with nobody named count; 3 within 720h0m0s stop",
		"job-7-1", "values and MACs differ")
	held := read[heldReport](l, "accusations", "list", "--party", "p0")
	if len(held.Accusations) != 1 || len(held.Failures) != 3 || !held.Accusations[0].Excludes || held.Standing.Stopped == "" || held.Standing.Excluded[0] != "p1" {
		t.Fatalf("%+v", held)
	}
	id := held.Accusations[0].ID
	l.shows([]string{"status"}, "stopped", "party 1 (p1) is excluded")
	if out, err := l.try("doctor"); err == nil || !strings.Contains(out, "conduct") || !strings.Contains(out, "lodge accusations list --party p0") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	submit := []string{"jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", liveField, "--epoch", "1", "--count", "10", "--wait"}
	if out, err := l.try(submit...); err == nil || !strings.Contains(out+err.Error(), "excluded") {
		t.Errorf("a job: %v\n%s", err, out)
	}

	l.shows(append([]string{"accusations", "show", id}, at...), "p1", "this party saw it itself", "is excluded, and no session begins with it")
	file := filepath.Join(t.TempDir(), "p1.evidence")
	l.shows(append([]string{"accusations", "export", id, "--out", file}, at...), "prove the cheat of p1")
	if got, err := os.ReadFile(file); err != nil || string(got) != string(evidence) {
		t.Errorf("the file is another: %v", err)
	}
	if _, err := l.try(append([]string{"accusations", "export", id, "--out", file}, at...)...); !errors.Is(err, &rpc.Error{Code: rpc.Conflict}) {
		t.Errorf("a file is overwritten: %v", err)
	}
	l.pardon(id)
	if out, err := l.try(submit...); err == nil || !strings.Contains(out+err.Error(), "3 unnamed failures (checks mac), suspects p1") {
		t.Errorf("a job: %v\n%s", err, out)
	}
	l.shows([]string{"status"}, "stopped", "3 unnamed failures")
	clearing := append([]string{"accusations", "clear", "--reason", "mended"}, at...)
	if out, err := l.try(clearing...); !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(out, "would clear 3 failures") {
		t.Errorf("without --yes: %v\n%s", err, out)
	}
	l.shows(append(clearing, "--dry-run"), "would clear 3 failures", "job-7-1")
	l.shows(append(clearing, "--yes"), "3 failures are cleared; sessions may begin")
	l.ok(submit...)
	l.shows(append([]string{"accusations", "list"}, at...), "sessions may begin", "pardoned", "0 failures with nobody named count")
}

// pardon pardons an accusation at party 0.
func (l *live) pardon(id string) {
	l.t.Helper()
	pardon := []string{"accusations", "pardon", id, "--party", "p0", "--reason", "rebuilt"}
	if out, err := l.try(pardon...); !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(out, "would pardon this") {
		l.t.Errorf("without --yes: %v\n%s", err, out)
	}
	l.shows(append(pardon, "--dry-run"), "would pardon this", id)
	l.shows(append(pardon, "--yes"), "is pardoned; no session begins: generation is stopped")
	if a := read[accusationRecord](l, "accusations", "show", id, "--party", "p0"); a.Excludes || a.Pardon.Reason != "rebuilt" || a.Pardon.By == "" {
		l.t.Errorf("%+v", a)
	}
}

// Whoever has the roster can say whether a file proves anything, and the exit code says it, too.
func TestAccusationsVerify(t *testing.T) {
	dir := t.TempDir()
	clusters := make([]*devnet.Cluster, 2)
	for i, name := range []string{"ours", "theirs"} {
		if _, err := runLodge(t, "init", filepath.Join(dir, name), "--parties", "2"); err != nil {
			t.Fatal(err)
		}
		var err error
		if clusters[i], err = devnet.Open(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	culprit, err := accusationstest.Member(clusters[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	accuser, err := accusationstest.Member(clusters[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := accusationstest.Equivocation(clusters[0].Roster, &jobv1.SessionRef{JobId: "job-8", Ordinal: 1}, culprit, accuser)
	if err != nil {
		t.Fatal(err)
	}
	good, ours, theirs := write("evidence", b), filepath.Join(dir, "ours", "roster.yaml"), filepath.Join(dir, "theirs", "roster.yaml")
	for _, args := range [][]string{nil, {"--json"}} {
		out, err := runLodge(t, append([]string{"accusations", "verify", good, "--roster", ours}, args...)...)
		if err != nil || !strings.Contains(out, "p1") || !strings.Contains(out, "has signed two versions of x/ct") || !strings.Contains(out, "job-8") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	changed := []byte(string(b))
	changed[len(changed)-3]++
	for name, args := range map[string][]string{
		"another roster": {good, "--roster", theirs}, "changed": {write("changed", changed), "--roster", ours},
		"cut": {write("cut", b[:len(b)-1]), "--roster", ours}, "no evidence": {ours, "--roster", ours},
	} {
		out, err := runLodge(t, append([]string{"accusations", "verify", "--json"}, args...)...)
		if !errors.Is(err, &rpc.Error{Code: checkFailed}) || !strings.Contains(out, `"proved": false`) || !strings.Contains(out, `"code": "check_failed"`) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if _, err := runLodge(t, "accusations", "verify", filepath.Join(dir, "nothing"), "--roster", ours); !errors.Is(err, &rpc.Error{Code: rpc.NotFound}) {
		t.Errorf("no file: %v", err)
	}
}
