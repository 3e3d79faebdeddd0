package conduct_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/conduct"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
	"github.com/lodge-mpc/lodge/services/session/accusations/accusationstest"
	"github.com/lodge-mpc/lodge/services/store/vault"
	vaultconduct "github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// hold stores in the stopped party 0 three failures and evidence against party 1.
func hold(l *lodgetest.Live) (evidence []byte) {
	l.T.Helper()
	f, err := config.LoadParty(l.Net.Parties[0])
	if err != nil {
		l.T.Fatal(err)
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		l.T.Fatal(err)
	}
	v, err := vault.Open(f.Vault.Dir, key)
	if err != nil {
		l.T.Fatal(err)
	}
	defer v.Close()
	roster := l.Net.Roster.Hash()
	for range 3 {
		u := vaultconduct.Unnamed{Roster: roster, Job: "job-7-1", Epoch: 1, Check: "mac", Reason: "values and MACs differ", Suspects: []string{"p1"}}
		if _, _, err := v.NoteUnnamed(u, vaultconduct.Tolerance{Most: 3, Within: time.Hour}); err != nil {
			l.T.Fatal(err)
		}
	}
	accuser, err := accusationstest.Member(l.Net, 0)
	if err != nil {
		l.T.Fatal(err)
	}
	culprit, err := accusationstest.Member(l.Net, 1)
	if err != nil {
		l.T.Fatal(err)
	}
	if evidence, err = accusationstest.Equivocation(l.Net.Roster, &jobv1.SessionRef{JobId: "job-8", Ordinal: 1}, culprit, accuser); err != nil {
		l.T.Fatal(err)
	}
	e, err := v.NewEvidence()
	if err != nil {
		l.T.Fatal(err)
	}
	_, err = e.Write(evidence)
	if err = errors.Join(err, e.Commit()); err != nil {
		l.T.Fatal(err)
	}
	_, err = v.Accuse(vaultconduct.Accusation{Roster: roster, Culprit: "p1", Key: l.Net.Roster.Parties[1].SigningKey, Kind: "equivocation", Check: "echo",
		Reason: "has signed two versions of x/ct", Job: "job-8-1"}, e, vaultconduct.EvidenceRoom{Bytes: 1 << 20, PerCulprit: 1})
	if err != nil {
		l.T.Fatal(err)
	}
	return evidence
}

type heldReport struct {
	Accusations []conduct.AccusationRecord
	Failures    []conduct.UnnamedRecord
	Standing    conduct.StandingRecord
}

// Accusations that stop generation are shown by all commands, an operator lifts their effect, and
// exported evidence can be verified elsewhere.
func TestAccusationsCommand(t *testing.T) {
	l := lodgetest.Start(t)
	l.Stop[1]()
	evidence := hold(l)
	l.Run(func(ctx context.Context) error {
		f, err := config.LoadParty(l.Net.Parties[0])
		if err != nil {
			return err
		}
		return party.Run(ctx, f, "test", slog.New(slog.DiscardHandler))
	})
	at := []string{"--party", "p0"}
	l.Eventually(func() bool { _, err := l.Try(append([]string{"accusations", "list"}, at...)...); return err == nil })
	l.Shows(append([]string{"accusations", "list"}, at...), "no session starts: party 1 (p1) is excluded", "equivocation", "3 failures without blame count; 3 within 720h0m0s stop",
		"job-7-1", "values and MACs differ")
	held := lodgetest.Read[heldReport](l, "accusations", "list", "--party", "p0")
	if len(held.Accusations) != 1 || len(held.Failures) != 3 || !held.Accusations[0].Excludes || held.Standing.Stopped == "" || held.Standing.Excluded[0] != "p1" {
		t.Fatalf("%+v", held)
	}
	id := held.Accusations[0].ID
	l.Shows([]string{"status"}, "stopped", "party 1 (p1) is excluded")
	if out, err := l.Try("doctor"); err == nil || !strings.Contains(out, "conduct") || !strings.Contains(out, "lodge accusations list --party p0") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	submit := []string{"jobs", "submit", "--kind", "scalar", "--params", "insecure-8", "--field", lodgetest.LiveField, "--epoch", "1", "--count", "10", "--wait"}
	if out, err := l.Try(submit...); err == nil || !strings.Contains(out+err.Error(), "excluded") {
		t.Errorf("a job: %v\n%s", err, out)
	}

	l.Shows(append([]string{"accusations", "show", id}, at...), "p1", "this party detected it itself", "is excluded, and no session starts with it")
	file := filepath.Join(t.TempDir(), "p1.evidence")
	l.Shows(append([]string{"accusations", "export", id, "--out", file}, at...), "prove the cheat of p1")
	if got, err := os.ReadFile(file); err != nil || string(got) != string(evidence) {
		t.Errorf("the file is another: %v", err)
	}
	if _, err := l.Try(append([]string{"accusations", "export", id, "--out", file}, at...)...); !errors.Is(err, &rpc.Error{Code: rpc.Conflict}) {
		t.Errorf("a file is overwritten: %v", err)
	}
	pardon(l, id)
	if out, err := l.Try(submit...); err == nil || !strings.Contains(out+err.Error(), "3 unnamed failures (checks mac), suspects p1") {
		t.Errorf("a job: %v\n%s", err, out)
	}
	l.Shows([]string{"status"}, "stopped", "3 unnamed failures")
	clearing := append([]string{"accusations", "clear", "--reason", "mended"}, at...)
	if out, err := l.Try(clearing...); !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(out, "would clear 3 failures") {
		t.Errorf("without --yes: %v\n%s", err, out)
	}
	l.Shows(append(clearing, "--dry-run"), "would clear 3 failures", "job-7-1")
	l.Shows(append(clearing, "--yes"), "3 failures are cleared; sessions may start")
	l.OK(submit...)
	l.Shows(append([]string{"accusations", "list"}, at...), "sessions may start", "pardoned", "0 failures without blame count")
}

// pardon pardons an accusation at party 0.
func pardon(l *lodgetest.Live, id string) {
	l.T.Helper()
	pardon := []string{"accusations", "pardon", id, "--party", "p0", "--reason", "rebuilt"}
	if out, err := l.Try(pardon...); !errors.Is(err, &rpc.Error{Code: rpc.Invalid}) || !strings.Contains(out, "would pardon this") {
		l.T.Errorf("without --yes: %v\n%s", err, out)
	}
	l.Shows(append(pardon, "--dry-run"), "would pardon this", id)
	l.Shows(append(pardon, "--yes"), "is pardoned; no session starts: generation is stopped")
	if a := lodgetest.Read[conduct.AccusationRecord](l, "accusations", "show", id, "--party", "p0"); a.Excludes || a.Pardon.Reason != "rebuilt" || a.Pardon.By == "" {
		l.T.Errorf("%+v", a)
	}
}

// Anyone with the roster can verify a file of evidence, and the exit code reports the result.
func TestAccusationsVerify(t *testing.T) {
	dir := t.TempDir()
	clusters := make([]*devnet.Cluster, 2)
	for i, name := range []string{"ours", "theirs"} {
		if _, err := lodgetest.Run(t, "init", filepath.Join(dir, name), "--parties", "2"); err != nil {
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
		out, err := lodgetest.Run(t, append([]string{"accusations", "verify", good, "--roster", ours}, args...)...)
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
		out, err := lodgetest.Run(t, append([]string{"accusations", "verify", "--json"}, args...)...)
		if !errors.Is(err, &rpc.Error{Code: cli.CheckFailed}) || !strings.Contains(out, `"proved": false`) || !strings.Contains(out, `"code": "check_failed"`) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if _, err := lodgetest.Run(t, "accusations", "verify", filepath.Join(dir, "nothing"), "--roster", ours); !errors.Is(err, &rpc.Error{Code: rpc.NotFound}) {
		t.Errorf("no file: %v", err)
	}
}
