package devnet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/config"
)

// docker-compose.yml must equal the output of Compose for three parties.
func TestCompose(t *testing.T) {
	committed, err := os.ReadFile(filepath.Join("..", "..", "..", "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Compose(3, 7100)
	if err != nil || string(text) != string(committed) {
		t.Errorf("docker-compose.yml differs from what `lodge compose` writes (%v)", err)
	}
	five, err := Compose(5, 7200)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Written by `lodge compose --parties 5 --port 7200`: a coordinator and 5 parties", `"127.0.0.1:7205:7205"`, "\n  p4:\n", "p4:/cluster/p4", `--parties, "5"`} {
		if !strings.Contains(string(five), want) {
			t.Errorf("no %q for five parties", want)
		}
	}
	for _, port := range []string{"0.0.0.0", `["7`} {
		if strings.Contains(string(five), port) {
			t.Errorf("ports are published as %s", port)
		}
	}
	for _, bad := range [][2]int{{1, 7100}, {65, 7100}, {3, 0}, {3, 65533}, {3, -1}} {
		if _, err := Compose(bad[0], bad[1]); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}

// mounts makes the directories that the containers of two parties have.
func mounts(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"coordinator", "p0", "p1", "clients", "host"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var forTwo = Options{Parties: 2, Port: 7100, Params: []string{"S14-32"}}

// contents returns the files under a directory by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each process has its own directory with only its own secrets, and its configuration loads there.
// Clients reach all processes at another address, under a roster with the same hash.
func TestInstall(t *testing.T) {
	dir := mounts(t)
	user := os.Getuid()
	if made, err := Install(dir, forTwo, user); err != nil || !made {
		t.Fatal(made, err)
	}
	c, err := config.LoadCoordinator(filepath.Join(dir, "coordinator", "coordinator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"p0", "p1"} {
		f, err := config.LoadParty(filepath.Join(dir, name, "party.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if f.Listen != []string{":7101", ":7102"}[i] || f.HealthListen != config.HealthAddress || f.MetricsListen == "" || f.Roster.Parties[1].Address != "p1:7102" ||
			f.Roster.Coordinator.Address != "coordinator:7100" || f.Roster.Hash() != c.Roster.Hash() {
			t.Errorf("%s: %+v", name, f)
		}
		if _, err := f.Signer(); err != nil {
			t.Error(err)
		}
		for _, path := range []string{f.RosterFile, f.TLS.Certificate, f.TLS.Key, f.TLS.CA, f.SigningKey, f.Vault.KeyFile, f.Vault.Dir, f.AuditDir} {
			if filepath.Dir(path) != filepath.Join(dir, name) {
				t.Errorf("%s uses %s", name, path)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	host := contents(t, filepath.Join(dir, "host"))
	for name := range host {
		if strings.HasPrefix(name, "p") || strings.HasPrefix(name, "coordinator") {
			t.Errorf("clients get %s", name)
		}
	}
	seen := map[string]string{} // secrets by the directory that contains them
	for _, d := range []string{"coordinator", "p0", "p1", "host"} {
		for name, text := range contents(t, filepath.Join(dir, d)) {
			if !strings.HasSuffix(name, ".key") {
				continue
			}
			if other, ok := seen[text]; ok {
				t.Errorf("%s of %s is also in %s", name, d, other)
			}
			seen[text] = d
		}
	}
	if len(seen) != 1+2*3+4 {
		t.Errorf("%d secrets", len(seen))
	}
	roster, err := config.LoadRoster(filepath.Join(dir, "host", "roster.yaml"))
	if err != nil || roster.Hash() != c.Roster.Hash() || roster.Parties[1].Address != "127.0.0.1:7102" {
		t.Errorf("%+v, %v", roster, err)
	}
	x, err := lodge.Load(filepath.Join(dir, "host", "clients", "client-p1.yaml"))
	if err != nil || x.Coordinator.Address != "127.0.0.1:7100" || x.Parties[1].Address != "127.0.0.1:7102" {
		t.Errorf("%+v, %v", x, err)
	}
}

// A repeated call changes nothing, except that it restores missing files of clients and keeps
// foreign files next to them.
func TestInstallAgain(t *testing.T) {
	dir := mounts(t)
	if err := os.WriteFile(filepath.Join(dir, "host", ".gitignore"), []byte("*\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, forTwo, os.Getuid()); err != nil {
		t.Fatal(err)
	}
	first := contents(t, dir)
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "host", "clients")), os.Mkdir(filepath.Join(dir, "p0", "vault"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if made, err := Install(dir, forTwo, os.Getuid()); err != nil || made {
		t.Errorf("again: %t, %v", made, err)
	}
	second := contents(t, dir)
	if len(second) != len(first) {
		t.Errorf("%d files, then %d", len(first), len(second))
	}
	for name, text := range first {
		if second[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
}

// An installation that was interrupted before any process ran starts again. Inconsistent
// directories are rejected and left unchanged.
func TestInstallRefuses(t *testing.T) {
	fresh := func() string {
		dir := mounts(t)
		if _, err := Install(dir, forTwo, os.Getuid()); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	interrupted := fresh()
	before, _ := os.ReadFile(filepath.Join(interrupted, "p0", "signing.key"))
	if err := errors.Join(os.Remove(filepath.Join(interrupted, "clients", "roster.yaml")), os.RemoveAll(filepath.Join(interrupted, "p1", "party.yaml"))); err != nil {
		t.Fatal(err)
	}
	if made, err := Install(interrupted, forTwo, os.Getuid()); err != nil || !made {
		t.Errorf("after an interruption: %t, %v", made, err)
	}
	if after, _ := os.ReadFile(filepath.Join(interrupted, "p0", "signing.key")); string(after) == string(before) {
		t.Error("half of a cluster was kept")
	}
	for name, spoil := range map[string]func(dir string) error{
		"a volume was lost": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "p1")), os.Mkdir(filepath.Join(dir, "p1"), 0o700))
		},
		"a volume of another cluster": func(dir string) error {
			other := fresh()
			return errors.Join(os.RemoveAll(filepath.Join(dir, "p1")), os.Rename(filepath.Join(other, "p1"), filepath.Join(dir, "p1")))
		},
		"the clients' certificates were lost when a party had run": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "clients", "roster.yaml")), os.Mkdir(filepath.Join(dir, "p1", "vault"), 0o700))
		},
	} {
		dir := fresh()
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		if _, err := Install(dir, forTwo, os.Getuid()); !errors.Is(err, ErrInstalled) {
			t.Errorf("%s: %v", name, err)
		}
		if after := contents(t, dir); len(after) != len(before) || after["p0/signing.key"] != before["p0/signing.key"] {
			t.Errorf("%s: files have changed", name)
		}
	}
	three := forTwo
	three.Parties = 3
	dir := fresh()
	if _, err := Install(dir, three, os.Getuid()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory for a party: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "p2"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, three, os.Getuid()); !errors.Is(err, ErrInstalled) || !strings.Contains(err.Error(), "2 parties, not 3") {
		t.Errorf("for another number of parties: %v", err)
	}
}
