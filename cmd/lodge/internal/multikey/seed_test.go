package multikey_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/multikey"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// founded changes to a new directory with the files that `lodge enrol` makes for three parties and
// a coordinator.
func founded(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"p0", "p1", "p2"} {
		lodgeOK(t, "enrol", name, "--name", name, "--address", name+".example:7100")
	}
	lodgeOK(t, "enrol", "coordinator", "--role", "coordinator", "--address", "c.example:7100")
}

func lodgeOK(t *testing.T, args ...string) string {
	t.Helper()
	out, err := lodgetest.Run(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

// commit writes the commitment of a founder to a file.
func commit(t *testing.T, name, label, out string) {
	t.Helper()
	lodgeOK(t, "mk", "seed", "commit", "p0/entry.yaml", "p1/entry.yaml", "p2/entry.yaml", "--set", "insecure-M8-32", "--label", label, "--dir", name, "--out", out)
}

// refused checks that a command fails with a code and a text.
func refused(t *testing.T, code rpc.Code, says string, args ...string) {
	t.Helper()
	if e, _ := lodgetest.Fails(t, args...); e.Code != code || e.Next == "" || !strings.Contains(e.Error(), says) {
		t.Errorf("%v: %v (%s), want %s: %s", args, e, e.Next, code, says)
	}
}

// Three founders toss, make a roster with the seed, and check it.
func TestMkSeed(t *testing.T) {
	founded(t)
	var reveals []string
	for _, name := range []string{"p0", "p1", "p2"} {
		commit(t, name, "first", name+".commit")
	}
	info, err := os.Stat(filepath.Join("p0", "toss-first.secret"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("what p0 keeps: %v, %v", info, err)
	}
	for _, name := range []string{"p0", "p1", "p2"} {
		reveals = append(reveals, name+".reveal")
		lodgeOK(t, "mk", "seed", "reveal", "p2.commit", "p1.commit", "p0.commit", "--dir", name, "--out", name+".reveal")
	}
	if left, err := os.ReadFile(filepath.Join("p0", "toss-first.secret")); err != nil || string(left) != multikey.RevealedLine {
		t.Errorf("%q is left, %v", left, err)
	}
	refused(t, rpc.Conflict, "already revealed", "mk", "seed", "reveal", "p0.commit", "p1.commit", "p2.commit", "--dir", "p0", "--out", "again")
	var r multikey.SeedRecord
	if err := json.Unmarshal([]byte(lodgeOK(t, append([]string{"mk", "seed", "combine", "--out", "toss", "--json"}, reveals...)...)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Label != "first" || r.Set != "insecure-M8-32" || len(r.Seed) != 64 || len(r.Founders) != 3 {
		t.Errorf("the toss is %+v", r)
	}
	entries := []string{"p0/entry.yaml", "p1/entry.yaml", "p2/entry.yaml", "coordinator/entry.yaml"}
	lodgeOK(t, append([]string{"roster", "join", "--toss", "toss", "--out", "roster.yaml"}, entries...)...)
	if out := lodgeOK(t, "mk", "seed", "verify", "toss", "--roster", "roster.yaml"); !strings.Contains(out, r.Seed) || strings.Contains(out, "took no part") {
		t.Error(out)
	}
	// A party that joined later is reported; a roster with another seed, or without one, is
	// rejected.
	lodgeOK(t, "enrol", "p3", "--name", "p3", "--address", "p3.example:7100")
	entries = append(entries, "p3/entry.yaml")
	refused(t, rpc.Invalid, "p3", append([]string{"roster", "join", "--toss", "toss", "--out", "larger.yaml"}, entries...)...)
	lodgeOK(t, append([]string{"roster", "join", "--out", "larger.yaml"}, entries...)...)
	refused(t, rpc.PinMismatch, r.Seed, "mk", "seed", "verify", "toss", "--roster", "larger.yaml")
	text, err := os.ReadFile("larger.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for seed, code := range map[string]rpc.Code{r.Seed: "", strings.Repeat("0", 64): rpc.PinMismatch, "standard": rpc.PinMismatch} {
		with := string(text) + "multikey:\n  set: insecure-M8-32\n  seed: \"" + seed + "\"\n"
		if err := os.WriteFile("larger.yaml", []byte(with), 0o600); err != nil {
			t.Fatal(err)
		}
		if code != "" {
			refused(t, code, r.Seed, "mk", "seed", "verify", "toss", "--roster", "larger.yaml")
		} else if out := lodgeOK(t, "mk", "seed", "verify", "toss", "--roster", "larger.yaml"); !strings.Contains(out, "took no part: p3") {
			t.Error(out)
		}
	}
}

// The error names a founder that misbehaves, and no file is written.
func TestMkSeedRefused(t *testing.T) {
	founded(t)
	for _, name := range []string{"p0", "p1", "p2"} {
		commit(t, name, "first", name+".commit")
	}
	reveal := func(name string, commitments ...string) []string {
		return append([]string{"mk", "seed", "reveal", "--dir", name, "--out", name + ".reveal"}, commitments...)
	}
	refused(t, rpc.NotFound, "p2", reveal("p0", "p0.commit", "p1.commit")...)
	commit(t, "p2", "second", "p2.second")
	refused(t, rpc.Invalid, "another ceremony", reveal("p0", "p0.commit", "p1.commit", "p2.second")...)
	// p2 commits twice: before the second time its stored value is moved away
	if err := os.Rename("p2/toss-first.secret", "kept"); err != nil {
		t.Fatal(err)
	}
	commit(t, "p2", "first", "p2.twice")
	refused(t, rpc.Conflict, "p2", reveal("p0", "p0.commit", "p1.commit", "p2.commit", "p2.twice")...)
	refused(t, rpc.Conflict, "signed with its key", reveal("p2", "p0.commit", "p1.commit", "p2.commit")...)
	lodgeOK(t, reveal("p0", "p0.commit", "p1.commit", "p2.commit")...)
	lodgeOK(t, reveal("p1", "p0.commit", "p1.commit", "p2.twice")...)
	refused(t, rpc.Conflict, "p2", "mk", "seed", "combine", "p0.reveal", "p1.reveal", "--out", "toss")
	refused(t, rpc.NotFound, "p1, p2", "mk", "seed", "combine", "p0.reveal", "--out", "toss")
	forged, err := os.ReadFile("p0.reveal")
	if err != nil {
		t.Fatal(err)
	}
	forged[len(forged)-1] ^= 1
	if err := os.WriteFile("forged", forged, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, rpc.Invalid, "does not verify", "mk", "seed", "combine", "forged", "p1.reveal", "--out", "toss")
	refused(t, rpc.Invalid, "malformed", "mk", "seed", "combine", "p0.commit", "--out", "toss")
	refused(t, rpc.Invalid, "malformed", "mk", "seed", "verify", "p0.reveal")
	if _, err := os.Stat("toss"); err == nil {
		t.Error("a transcript was written")
	}
	for _, x := range []struct {
		says string
		args []string
	}{
		{"label", []string{"p0/entry.yaml", "p1/entry.yaml", "--label", "../x", "--dir", "p0"}},
		{"founder", []string{"p1/entry.yaml", "p2/entry.yaml", "--label", "x", "--dir", "p0"}},
		{"32 bytes", []string{"p0/entry.yaml", "coordinator/entry.yaml", "--label", "x", "--dir", "p0"}},
		{"M9", []string{"p0/entry.yaml", "p1/entry.yaml", "--label", "x", "--dir", "p0", "--set", "M9"}},
	} {
		refused(t, rpc.Invalid, x.says, append([]string{"mk", "seed", "commit", "--out", "new"}, x.args...)...)
	}
	refused(t, rpc.Conflict, "exists", "mk", "seed", "commit", "p0/entry.yaml", "p1/entry.yaml", "--label", "first", "--dir", "p0", "--out", "new")
	refused(t, rpc.NotFound, "no such file", reveal("coordinator", "p0.commit", "p1.commit", "p2.commit")...)
	if err := os.Chmod("p2/toss-first.secret", 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, rpc.Invalid, "read by other users", reveal("p2", "p0.commit", "p1.commit", "p2.twice")...)
}
