package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

const partyYAML = `name: alice
roster: roster.yaml
listen: 127.0.0.1:7001
metrics_listen: 127.0.0.1:9001
health_listen: 127.0.0.1:7199
tls:
  certificate: alice.pem
  key: alice-key.pem
  ca: ca.pem
signing_key: alice-signing.pem
vault:
  dir: vault
  key_file: vault.key
clients:
  - name: mpc
    identity: spiffe://lodge/client/alice-mpc
    permissions: [status, fetch]
policy:
  params:
    - name: S14-32
      hash: 1111111111111111111111111111111111111111111111111111111111111111
  kinds: [keys, scalar, matrix]
  fields: [p128]
  purposes: [triples]
  tenants: [demo]
  max_count: 100000
  max_dim: 512
  jobs_per_hour: 60
  max_concurrent: 2
  max_memory: 4GiB
`

const coordinatorYAML = `roster: roster.yaml
listen: 127.0.0.1:7000
tls: {certificate: c.pem, key: k.pem, ca: ca.pem}
data_dir: jobs
clients:
  - name: operator
    identity: spiffe://lodge/client/operator
    permissions: [submit, status]
params:
  - name: S14-32
    hash: 1111111111111111111111111111111111111111111111111111111111111111
`

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// roster for alice and bob; alice's signing key is stored in the same directory.
func roster(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("parties:\n")
	for i, name := range []string{"alice", "bob"} {
		private, public, err := pki.NewSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name+"-signing.pem", string(private))
		fmt.Fprintf(&b, "  - {id: %d, name: %s, address: 127.0.0.1:700%d, identity: spiffe://lodge/party/%s, signing_key: %q}\n", i, name, i+1, name, public)
	}
	b.WriteString("coordinator: {address: 127.0.0.1:7000, identity: spiffe://lodge/coordinator}\n")
	return b.String()
}

func TestParty(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	f, err := LoadParty(write(t, dir, "party.yaml", partyYAML))
	if err != nil {
		t.Fatal(err)
	}
	if f.Index != 0 || f.AllowPassiveKeygen || f.AllowInsecureParams || f.Reflection {
		t.Errorf("defaults: %+v", f)
	}
	if f.Policy.MaxMemory != 4<<30 || time.Duration(f.Limits.Idle) != time.Minute || f.Limits.Window != 16<<20 {
		t.Errorf("limits: %+v", f.Limits)
	}
	if a := f.Accusations; a.MaxUnnamedFailures != 3 || time.Duration(a.Within) != 720*time.Hour || a.OnProvenCheat != Exclude || a.MaxEvidence != 4<<30 {
		t.Errorf("accusations: %+v", a)
	}
	if f.Vault.KeyFile != filepath.Join(dir, "vault.key") {
		t.Errorf("path: %s", f.Vault.KeyFile)
	}
	if sum, ok := Pin(f.Policy.Params, "S14-32"); !ok || sum[31] != 0x11 {
		t.Error("pin not found")
	}
	if _, err := f.Signer(); err != nil {
		t.Error(err)
	}
	f.SigningKey = filepath.Join(dir, "bob-signing.pem")
	if _, err := f.Signer(); err == nil || !strings.Contains(err.Error(), "pins for alice") {
		t.Errorf("another's signing key: %v", err)
	}
}

// A policy can name only the fields of the parameter sets.
func TestFieldsAreThoseOfTheSets(t *testing.T) {
	known := map[string]bool{}
	for _, set := range params.Sets() {
		for _, f := range set.Fields {
			known[f.Name] = true
			if !slices.Contains(Fields, f.Name) {
				t.Errorf("no policy can allow field %s of %s", f.Name, set.Name)
			}
		}
	}
	if len(known) != len(Fields) {
		t.Errorf("%q, but the sets have %d fields", Fields, len(known))
	}
}

func TestPartyRefusals(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "listen:", "lisen: x\nlisten:", "lisen"},
		{"unknown nested key", "  fields:", "  colour: red\n  fields:", "colour"},
		{"secret inline", "key_file: vault.key", "key: 00", "field key not found"},
		{"missing path", "signing_key: alice-signing.pem", "", "signing_key: missing"},
		{"bad address", "listen: 127.0.0.1:7001", "listen: localhost", "not host:port"},
		{"bad name", "name: alice", "name: Alice", "not a name"},
		{"not in the roster", "name: alice", "name: carol", "not in the roster"},
		{"permission", "[status, fetch]", "[status, everything]", "everything"},
		{"kind", "[keys, scalar, matrix]", "[keys, vector]", "vector"},
		{"too many failures", "listen:", "accusations: {max_unnamed_failures: 101}\nlisten:", "accusations.max_unnamed_failures: 101"},
		{"failures never stop", "listen:", "accusations: {max_unnamed_failures: -1}\nlisten:", "accusations.max_unnamed_failures: -1"},
		{"failures in no time", "listen:", "accusations: {within: 1m}\nlisten:", "accusations.within: 1m0s"},
		{"proven cheats", "listen:", "accusations: {on_proven_cheat: ignore}\nlisten:", "exclude or report"},
		{"unknown consequence", "listen:", "accusations: {on_success: forget}\nlisten:", "on_success"},
		{"field", "fields: [p128]", "fields: [p128, p129]", `policy.fields: "p129" is not one of`},
		{"no fields", "fields: [p128]", "fields: []", "policy.fields: empty"},
		{"hash", "hash: 11", "hash: x", "64 hexadecimal digits"},
		{"count", "max_count: 100000", "max_count: 0", "max_count"},
		{"negative count", "max_count: 100000", "max_count: -1", "cannot unmarshal"},
		{"dim", "max_dim: 512", "", "max_dim"},
		{"memory", "4GiB", "4 gigs", "512MiB"},
		{"memory overflow", "4GiB", "99999999999GiB", "512MiB"},
		{"decryption rate", "purposes: [triples]", "purposes: [decryption]", "decryptions_per_hour"},
		{"two documents", "name: alice", "name: alice\n---\nname: bob", ""},
		{"duration", "name: alice", "name: alice\nlimits: {idle: 30}", "write for example 30s"},
		{"window", "name: alice", "name: alice\nlimits: {window: 1MiB}", "limits.window: 1MiB; must be at least 4MiB"},
		{"client is a peer", "spiffe://lodge/client/alice-mpc", "spiffe://lodge/party/bob", "names both"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "roster.yaml", roster(t, dir))
			if !strings.Contains(partyYAML, c.old) {
				t.Fatal("the case does not apply")
			}
			_, err := LoadParty(write(t, dir, "party.yaml", strings.Replace(partyYAML, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want ... %s", err, c.want)
			}
		})
	}
	if _, err := LoadParty(write(t, t.TempDir(), "party.yaml", "")); err == nil {
		t.Error("an empty file was taken")
	}
}

func TestRoster(t *testing.T) {
	dir := t.TempDir()
	good := roster(t, dir)
	r, err := LoadRoster(write(t, dir, "roster.yaml", good))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[32]byte]string{r.Hash(): "good"}
	moved := *r
	moved.Parties = append([]Member(nil), r.Parties...)
	moved.Parties[1].Address = "elsewhere:1"
	if moved.Hash() != r.Hash() {
		t.Error("an address changes the hash")
	}
	for name, change := range map[string]func(*Roster){
		"name":        func(r *Roster) { r.Parties[1].Name = "bobby" },
		"identity":    func(r *Roster) { r.Parties[1].Identity = "bob.example" },
		"key":         func(r *Roster) { r.Parties[1].SigningKey = r.Parties[0].SigningKey },
		"coordinator": func(r *Roster) { r.Coordinator.Identity = "c.example" },
		"fewer":       func(r *Roster) { r.Parties = r.Parties[:1] },
		"context":     func(r *Roster) { r.Multikey = &Multikey{Set: "M11-4", Seed: "standard"} },
		"set":         func(r *Roster) { r.Multikey = &Multikey{Set: "M11-2", Seed: "standard"} },
		"seed":        func(r *Roster) { r.Multikey = &Multikey{Set: "M11-4", Seed: strings.Repeat("0", 64)} },
	} {
		other := *r
		other.Parties = append([]Member(nil), r.Parties...)
		change(&other)
		if was, ok := seen[other.Hash()]; ok {
			t.Errorf("%s has the hash of %s", name, was)
		}
		seen[other.Hash()] = name
	}
	for _, c := range []struct{ old, new, want string }{
		{"id: 1", "id: 2", "ids run from 0"},
		{"name: bob", "name: alice", "is also"},
		{"name: bob", "name: coordinator", "is reserved for the coordinator"},
		{"spiffe://lodge/party/bob", "spiffe://lodge/party/alice", "is also"},
		{"spiffe://lodge/coordinator", "spiffe://lodge/party/alice", "is also"},
		{"signing_key: \"", "signing_key: \"A", "base64"},
		{"address: 127.0.0.1:7001", "address: nowhere", "host:port"},
		{"coordinator:", "queen:", "queen"},
		{"coordinator:", "multikey: {seed: standard}\ncoordinator:", "multikey.set"},
		{"coordinator:", "multikey: {set: M11-4}\ncoordinator:", "multikey.seed"},
		{"coordinator:", "multikey: {set: M11-4, seed: " + strings.Repeat("0", 62) + "}\ncoordinator:", "multikey.seed"},
		{"coordinator:", "multikey: {set: M11-4, seed: " + strings.Repeat("A", 64) + "}\ncoordinator:", "multikey.seed"},
		{"coordinator:", "multikey: {set: M11-4, seed: standard, parties: 4}\ncoordinator:", "parties"},
	} {
		_, err := LoadRoster(write(t, dir, "bad.yaml", strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.new, err)
		}
	}
}

func TestMultikeyContext(t *testing.T) {
	dir := t.TempDir()
	digits := strings.Repeat("0a", 32)
	for seed, standard := range map[string]bool{"standard": true, digits: false} {
		text := strings.Replace(roster(t, dir), "coordinator:", "multikey: {set: M11-4, seed: "+seed+"}\ncoordinator:", 1)
		r, err := LoadRoster(write(t, dir, "multikey.yaml", text))
		if err != nil {
			t.Fatal(err)
		}
		b, named := r.Multikey.Bytes()
		if r.Multikey.Set != "M11-4" || named != standard || !standard && (b[0] != 10 || b[31] != 10) {
			t.Errorf("%+v", r.Multikey)
		}
	}
}

// With multi-key ciphertexts the memory limit is that of the policy plus those of the service.
func TestMemory(t *testing.T) {
	f := &PartyFile{Roster: &Roster{}}
	f.Policy.MaxMemory = 1000
	f.Multikey = MultikeyService{MaxKeysMemory: 200, MaxMemory: 30, MaxResults: 4}
	if f.Memory() != 1000 {
		t.Error("without multi-key ciphertexts:", f.Memory())
	}
	if f.Roster.Multikey = new(Multikey); f.Memory() != 1234 {
		t.Error("with them:", f.Memory())
	}
}

func TestCoordinator(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	f, err := LoadCoordinator(write(t, dir, "coordinator.yaml", coordinatorYAML))
	if err != nil {
		t.Fatal(err)
	}
	if time.Duration(f.JobTimeout) != time.Hour || f.MaxConcurrent != 2 || len(f.Roster.Parties) != 2 {
		t.Errorf("%+v", f)
	}
	for text, want := range map[string]int{"1": 1, "16": 16, "17": 0, "-1": 0, "two": 0} {
		f, err := LoadCoordinator(write(t, dir, "jobs.yaml", coordinatorYAML+"max_concurrent: "+text+"\n"))
		if want == 0 && (err == nil || !strings.Contains(err.Error(), "max_concurrent") && text != "two") || want > 0 && (err != nil || f.MaxConcurrent != want) {
			t.Errorf("max_concurrent: %s gives %v", text, err)
		}
	}
	bad := strings.Replace(coordinatorYAML, "submit", "fetch", 1)
	if _, err := LoadCoordinator(write(t, dir, "bad.yaml", bad)); err == nil {
		t.Error("a coordinator's client may fetch")
	}
}

func FuzzRoster(f *testing.F) {
	f.Add([]byte("parties: []\n"))
	f.Add([]byte("parties: [{id: 0, name: a}]\ncoordinator: {identity: x}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := new(Roster)
		if decodeBytes(b, r) == nil {
			r.validate(new(check))
			r.Hash()
		}
	})
}
