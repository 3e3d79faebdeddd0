package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/quota"
)

const tokenYAML = `oidc:
  issuer: https://issuer.example/realm
  audience: lodge-alice
  ca: issuer-ca.pem
clients:
  - name: mpc
    oidc_subject: 6b1f0f0e
    oidc_claims: {groups: mpc}
    permissions: [fetch]
    tenants: [demo]
    kinds: [scalar, matrix]
    quota:
      tuples_per_day: {scalar: 1000000, matrix: 0}
      bytes_per_day: 1GiB
    rate: {calls_per_second: 50, burst: 100}
  - name: both
    identity: spiffe://lodge/client/both
    oidc_subject: both
    permissions: [status]
`

// withClients returns a party's file with other clients.
func withClients(t *testing.T, yaml string) string {
	t.Helper()
	before, rest, found := strings.Cut(partyYAML, "clients:\n")
	_, after, again := strings.Cut(rest, "policy:\n")
	if !found || !again {
		t.Fatal("no clients in the example")
	}
	return before + yaml + "policy:\n" + after
}

func loadClients(t *testing.T, yaml string) (*PartyFile, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	return LoadParty(write(t, dir, "party.yaml", withClients(t, yaml)))
}

func TestClients(t *testing.T) {
	f, err := loadClients(t, tokenYAML)
	if err != nil {
		t.Fatal(err)
	}
	if f.OIDC.CA != filepath.Join(filepath.Dir(f.RosterFile), "issuer-ca.pem") {
		t.Errorf("path %s", f.OIDC.CA)
	}
	gib := uint64(1 << 30)
	want := map[string]quota.Limits{"mpc": {Tuples: map[string]uint64{"scalar": 1_000_000, "matrix": 0}, Bytes: &gib}}
	if got := Quotas(f.Clients); !reflect.DeepEqual(got, want) {
		t.Errorf("quotas %+v", got)
	}
	if l := f.Clients[1].Limits(); l.Tuples != nil || l.Bytes != nil {
		t.Errorf("limits %+v", l)
	}
	if _, err := f.OIDC.Tokens(nil); err == nil || !strings.Contains(err.Error(), "issuer-ca.pem") {
		t.Errorf("an authority that is not there: %v", err)
	}
	f.OIDC.CA = ""
	if tokens, err := f.OIDC.Tokens(nil); err != nil || tokens.Issuer() != "https://issuer.example/realm" {
		t.Error(err)
	}
	if tokens, err := (*OIDC)(nil).Tokens(nil); err != nil || tokens != nil {
		t.Errorf("without an issuer: %v, %v", tokens, err)
	}
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	c := strings.Replace(coordinatorYAML, "    identity: spiffe://lodge/client/operator\n", "    oidc_subject: op\n    rate: {calls_per_second: 0.5, burst: 1}\n", 1)
	if _, err := LoadCoordinator(write(t, dir, "c.yaml", c+"oidc: {issuer: https://issuer.example, audience: lodge}\n")); err != nil {
		t.Error(err)
	}
	if _, err := LoadCoordinator(write(t, dir, "c.yaml", c)); err == nil || !strings.Contains(err.Error(), "clients[0].oidc_subject: this process accepts no tokens") {
		t.Errorf("a subject without an issuer: %v", err)
	}
	c = strings.Replace(coordinatorYAML, "    permissions", "    quota: {bytes_per_day: 1GiB}\n    permissions", 1)
	if _, err := LoadCoordinator(write(t, dir, "c.yaml", c)); err == nil || !strings.Contains(err.Error(), "set this limit in the parties' files") {
		t.Errorf("a quota at the coordinator: %v", err)
	}
}

func TestClientRefusals(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no issuer", "oidc:\n  issuer: https://issuer.example/realm\n  audience: lodge-alice\n  ca: issuer-ca.pem\n", "", "clients[1].oidc_subject: this process accepts no tokens"},
		{"issuer without TLS", "https://issuer", "http://issuer", "oidc.issuer"},
		{"issuer with a query", "/realm", "/realm?x=1", "oidc.issuer"},
		{"no audience", "  audience: lodge-alice\n", "", "oidc.audience: missing"},
		{"a secret of the issuer", "  audience", "  client_secret: x\n  audience", "client_secret"},
		{"nobody", "    oidc_subject: 6b1f0f0e\n    oidc_claims: {groups: mpc}\n", "", "clients[0].identity: missing"},
		{"claims of nobody", "    oidc_subject: both\n", "    oidc_claims: {a: b}\n", "clients[1].oidc_claims: needs"},
		{"claim without value", "{groups: mpc}", "{groups: ''}", "not a valid claim"},
		{"subject twice", "oidc_subject: both", "oidc_subject: 6b1f0f0e", "names both mpc and both"},
		{"kind", "kinds: [scalar", "kinds: [keys", `"keys" is not one of scalar`},
		{"quota of a kind", "{scalar: 1000000", "{proof: 1000000", `"proof" is not one of`},
		{"negative quota", "{scalar: 1000000", "{scalar: -1", "cannot unmarshal"},
		{"empty quota", "quota:\n      tuples_per_day: {scalar: 1000000, matrix: 0}\n      bytes_per_day: 1GiB\n", "quota: {}\n", "quota: empty"},
		{"unknown quota", "bytes_per_day", "bytes_per_hour", "bytes_per_hour"},
		{"no rate", "calls_per_second: 50", "calls_per_second: 0", "clients[0].rate"},
		{"rate that is not a number", "calls_per_second: 50", "calls_per_second: .nan", "clients[0].rate"},
		{"rate without end", "calls_per_second: 50", "calls_per_second: .inf", "clients[0].rate"},
		{"no burst", ", burst: 100", "", "clients[0].rate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(tokenYAML, c.old) {
				t.Fatal("the case does not apply")
			}
			_, err := loadClients(t, strings.Replace(tokenYAML, c.old, c.new, 1))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want ... %s", err, c.want)
			}
		})
	}
}

// The examples of clients in the documents are valid.
func TestDocumentedClients(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations", "access.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(b), "```yaml\n")[1:]
	for _, block := range blocks {
		yaml, _, _ := strings.Cut(block, "```")
		if _, err := loadClients(t, yaml); err != nil {
			t.Errorf("%v in\n%s", err, yaml)
		}
	}
	if len(blocks) == 0 {
		t.Error("no example in docs/operations/access.md")
	}
}
