package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/engine/params"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/disk"
	"github.com/lodge-mpc/lodge/services/store/storetest"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// findings runs a check and returns its findings.
func findings(check func(*examination)) (list []Finding) {
	e := &examination{Options: Options{Found: func(f Finding) { list = append(list, f) }}, now: time.Now()}
	check(e)
	return list
}

func TestThresholds(t *testing.T) {
	const day = 24 * time.Hour
	certificate := func(from, to time.Duration) func(*examination) {
		return func(e *examination) {
			e.expiry("p", "c", &x509.Certificate{NotBefore: e.now.Add(from), NotAfter: e.now.Add(to)})
		}
	}
	clock := func(ahead, by time.Duration) func(*examination) {
		return func(e *examination) { e.clock("p", ahead, by) }
	}
	room := func(free, total uint64) func(*examination) {
		return func(e *examination) { e.room("p", disk.Space{Free: free, Total: total}) }
	}
	link := func(trip time.Duration, rate float64) func(*examination) {
		return func(e *examination) {
			e.link("p", &statusv1.ProbePeersResponse{Name: "q", RoundTrip: durationpb.New(trip), SentBytes: 1e6, BytesPerSecond: rate})
		}
	}
	for _, c := range []struct {
		name  string
		check func(*examination)
		want  Status
		text  string
	}{
		{"good certificate", certificate(-day, 40*day), OK, "valid for 40 days"},
		{"certificate that expires soon", certificate(-day, 13*day), Warn, "valid for 13 days"},
		{"certificate that expires today", certificate(-day, 5*time.Hour), Warn, "valid for 5h0m0s"},
		{"expired certificate", certificate(-2*day, -day), Fail, "expired on"},
		{"certificate that is valid from tomorrow", certificate(day, 40*day), Fail, "not valid before"},
		{"good clock", clock(-900*time.Millisecond, time.Millisecond), OK, "-900ms ahead, ± 1ms"},
		{"clock that may be correct", clock(3*time.Second, 2*time.Second), OK, ""},
		{"clock off", clock(-3*time.Second, time.Second), Warn, ""},
		{"clock far off", clock(2*time.Minute, time.Second), Fail, ""},
		{"room", room(100<<30, 200<<30), OK, "107 GB free of 215 GB"},
		{"little room", room(900<<20, 2<<30), Warn, ""},
		{"little free space on a large disk", room(20<<30, 2<<40), Warn, ""},
		{"no room", room(10<<20, 2<<30), Fail, ""},
		{"good link", link(40*time.Millisecond, 1e8), OK, "round trip 40ms, 100 MB a second (1 MB sent)"},
		{"slow link", link(40*time.Millisecond, 1e6), Warn, "1 MB a second"},
		{"long link", link(400*time.Millisecond, 1e8), Warn, "round trip 400ms"},
		{"no link", func(e *examination) { e.link("p", &statusv1.ProbePeersResponse{Name: "q", Error: "gone"}) }, Fail, "gone"},
	} {
		list := findings(c.check)
		if len(list) != 1 || list[0].Status != c.want || !strings.Contains(list[0].What, c.text) || (list[0].Next == "") != (c.want == OK) {
			t.Errorf("%s: %+v", c.name, list)
		}
	}
}

// world returns a cluster without running processes.
func world(t *testing.T) *devnet.Cluster {
	t.Helper()
	c, err := devnet.Write(filepath.Join(t.TempDir(), "c"), devnet.Options{Parties: 2, Params: []string{"insecure-8"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// examine examines the files of a party and returns the findings that are not ok, by check.
func examine(t *testing.T, files ...string) (bad map[string]Finding, all int) {
	t.Helper()
	bad = map[string]Finding{}
	Examine(t.Context(), Options{Files: files, Found: func(f Finding) {
		if all++; f.Status != OK {
			bad[f.Check] = f
		}
	}})
	return bad, all
}

// Each fault of a party's files is found by its own check, with a next step.
func TestFaultsOfFiles(t *testing.T) {
	edit := func(old, fresh string) func(*testing.T, *devnet.Cluster) error {
		return func(_ *testing.T, c *devnet.Cluster) error {
			b, err := os.ReadFile(c.Parties[0])
			if err != nil || !strings.Contains(string(b), old) {
				return errors.Join(err, errors.New("nothing to edit"))
			}
			return os.WriteFile(c.Parties[0], []byte(strings.Replace(string(b), old, fresh, 1)), 0o600)
		}
	}
	file := func(c *devnet.Cluster, name string) string { return filepath.Join(filepath.Dir(c.Parties[0]), name) }
	for name, c := range map[string]struct {
		spoil func(*testing.T, *devnet.Cluster) error
		check string
		want  Status
		text  string
	}{
		"configuration":   {edit("name: p0", "name: p0\nnonsense: 1"), "config", Fail, "nonsense"},
		"pin":             {edit("hash: ffd1", "hash: 00d1"), "params", Fail, "insecure-8 has the hash"},
		"legacy set":      {edit("\n    kinds:", "\n        - name: L11-53\n          hash: 059e93ac0c25f3039932518de69864320bc5eaffb295bc784a297b299f357a44\n    kinds:"), "params", Warn, "new keys are made with T11-53"},
		"passive keys":    {edit("allow_insecure_params", "allow_passive_keygen: true\nallow_insecure_params"), "policy", Warn, "passively secure"},
		"unproved linear": {edit("allow_insecure_params", "allow_unproved_linear: true\nallow_insecure_params"), "policy", Warn, "without proofs"},
		"no sacrifice":    {edit("max_count", "allow_no_sacrifice: true\n    max_count"), "policy", Warn, "malformed evaluation keys"},
		"memory":          {edit("max_memory: 4GiB", "max_memory: 4000000GiB"), "memory", Warn, "this machine has"},
		"readable key":    {func(_ *testing.T, c *devnet.Cluster) error { return os.Chmod(file(c, "tls.key"), 0o644) }, "key-files", Fail, "mode 0644"},
		"no key":          {func(_ *testing.T, c *devnet.Cluster) error { return os.Remove(file(c, "vault.key")) }, "key-files", Fail, "no such file"},
		"another's key":   {swap("tls.key"), "certificate", Fail, "private key does not match"},
		"other authority": {otherAuthority, "certificate", Fail, "unknown authority"},
		"another's name":  {swap("tls.key", "tls.pem"), "certificate", Fail, "but the roster"},
		"signing key":     {swap("signing.key"), "signing-key", Fail, "does not match the key that the roster pins"},
		"vault's key":     {otherVaultKey, "vault", Fail, ""},
		"quarantine":      {quarantined, "vault", Fail, "in quarantine: a test"},
		"audit log":       {brokenLog, "audit", Fail, "audit-000001.jsonl"},
		"vault is a file": {func(_ *testing.T, c *devnet.Cluster) error { return os.WriteFile(file(c, "vault"), nil, 0o600) }, "disk-speed", Fail, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := world(t)
			if err := c.spoil(t, cluster); err != nil {
				t.Fatal(err)
			}
			bad, _ := examine(t, cluster.Parties[0])
			f := bad[c.check]
			if f.Status != c.want || !strings.Contains(f.What, c.text) || f.Next == "" || strings.Contains(f.What, "\n") {
				t.Errorf("found %+v", bad)
			}
		})
	}
}

// In a fresh cluster only the parameter set for tests is reported, and the examination creates no
// files.
func TestFreshFiles(t *testing.T) {
	c := world(t)
	bad, all := examine(t, append(c.Parties, c.Coordinator)...)
	delete(bad, "params")
	delete(bad, "disk")       // depends on the machine
	delete(bad, "disk-speed") // depends on the machine
	if len(bad) != 0 || all < 20 {
		t.Errorf("%d findings, not ok: %+v", all, bad)
	}
	list, err := os.ReadDir(filepath.Dir(c.Parties[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if x.Name() == "vault" || strings.Contains(x.Name(), "doctor") {
			t.Errorf("%s was created", x.Name())
		}
	}
}

// An evaluator has neither roster nor vault, but its files are examined and its memory counts.
func TestEvaluatorsFiles(t *testing.T) {
	dir := t.TempDir()
	authority, err := pki.NewAuthority("test", 90*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue(pki.Leaf{Identity: "spiffe://lodge/evaluator/e0", Hosts: []string{"127.0.0.1"}, Lifetime: 60 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	set, err := params.Lookup("S14-32")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "e0.yaml")
	for name, content := range map[string][]byte{"ca.pem": authority.PEM(), "tls.pem": cert, "tls.key": key, "e0.yaml": fmt.Appendf(nil,
		"name: e0\nlisten: 127.0.0.1:7300\ntls: {certificate: tls.pem, key: tls.key, ca: ca.pem}\nparty: {name: p0, identity: spiffe://lodge/party/p0}\n"+
			"params: [{name: %s, hash: %x}]\nmax_memory: 4000000GiB\n", set.Name, set.Hash())} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad, all := examine(t, path)
	if f := bad["memory"]; len(bad) != 1 || f.Status != Warn || !strings.Contains(f.What, "e0") || all != 5 {
		t.Errorf("%d findings, not ok: %+v", all, bad)
	}
	if err := os.Chmod(filepath.Join(dir, "tls.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if bad, _ = examine(t, path); bad["key-files"].Status != Fail {
		t.Errorf("found %+v", bad)
	}
}

// For a vault in PostgreSQL, an unreachable server and settings that could lose data are reported;
// a party that uses the store is not disturbed.
func TestPostgres(t *testing.T) {
	dsn := storetest.NewPostgres(t).DSN()
	unsafe := storetest.NewPostgres(t, "fsync=off")
	held, err := store.OpenPostgres(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for name, c := range map[string]struct {
		dsn  string
		want Status
		text string
	}{
		"held":   {dsn, OK, ""},
		"unsafe": {unsafe.DSN(), Fail, "fsync is off"},
		"away":   {"host=127.0.0.1 port=1 user=x password=hidden dbname=x sslmode=disable", Fail, "refused"},
	} {
		cluster := world(t)
		dir := filepath.Dir(cluster.Parties[0])
		b, err := os.ReadFile(cluster.Parties[0])
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(b), "    dir: vault\n", "    postgres_dsn_file: dsn\n", 1)
		if err := errors.Join(os.WriteFile(cluster.Parties[0], []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "dsn"), []byte(c.dsn), 0o600)); err != nil {
			t.Fatal(err)
		}
		var found []Finding
		Examine(t.Context(), Options{Files: cluster.Parties[:1], Found: func(f Finding) {
			if f.Check == "vault" {
				found = append(found, f)
			}
		}})
		if len(found) != 1 || found[0].Status != c.want || !strings.Contains(found[0].What, c.text) || strings.Contains(found[0].What, "hidden") {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if err := held.Healthy(); err != nil {
		t.Errorf("the party that uses the store: %v", err)
	}
}

// Different rosters of several processes on one machine are reported.
func TestRostersThatDiffer(t *testing.T) {
	one, two := world(t), world(t)
	if bad, _ := examine(t, one.Parties[0], two.Parties[0]); bad["roster"].Status != Fail {
		t.Errorf("%+v", bad)
	}
}

// swap gives p0 files of p1.
func swap(names ...string) func(*testing.T, *devnet.Cluster) error {
	return func(_ *testing.T, c *devnet.Cluster) error {
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(c.Parties[1]), name))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(filepath.Dir(c.Parties[0]), name), b, 0o600); err != nil {
				return err
			}
		}
		return nil
	}
}

func otherAuthority(_ *testing.T, c *devnet.Cluster) error {
	ca, err := pki.NewAuthority("another", time.Hour)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, "ca.pem"), ca.PEM(), 0o600)
}

// withVault modifies the vault of p0 as the party would.
func withVault(c *devnet.Cluster, f func(*vault.Vault) error) error {
	dir := filepath.Dir(c.Parties[0])
	key, err := seal.LoadKey(filepath.Join(dir, "vault.key"))
	if err != nil {
		return err
	}
	v, err := vault.OpenPlace(context.Background(), seal.Place{Dir: filepath.Join(dir, "vault")}, key)
	if err != nil {
		return err
	}
	return errors.Join(f(v), v.Close())
}

func otherVaultKey(t *testing.T, c *devnet.Cluster) error {
	if err := withVault(c, func(*vault.Vault) error { return nil }); err != nil {
		return err
	}
	return swap("vault.key")(t, c)
}

func quarantined(_ *testing.T, c *devnet.Cluster) error {
	return withVault(c, func(v *vault.Vault) error { return v.Quarantine("a test", 0) })
}

func brokenLog(_ *testing.T, c *devnet.Cluster) error {
	dir := filepath.Join(filepath.Dir(c.Parties[0]), "audit")
	log, err := audit.Open(dir, audit.Options{Party: "p0"})
	if err != nil {
		return err
	}
	for range 3 {
		if _, err := log.Append(audit.Entry{Event: audit.EpochRetired, Actor: "a", Auth: audit.Certificate, Objects: []string{"epoch/1"}}); err != nil {
			return err
		}
	}
	if err := log.Close(); err != nil {
		return err
	}
	path := filepath.Join(dir, "audit-000001.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(b), "epoch/1", "epoch/2", 1)), 0o600)
}
