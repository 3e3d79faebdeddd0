package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const evaluatorsYAML = partyYAML + `evaluators:
  check: compare
  processes:
    - name: e0
      address: 10.0.0.1:7300
      identity: spiffe://lodge/evaluator/e0
      domain: site-a
    - name: e1
      address: evaluators.site-b.example:7300
      identity: spiffe://lodge/evaluator/e1
      domain: site-b
`

const evaluatorYAML = `name: e0
listen: 127.0.0.1:7300
metrics_listen: 127.0.0.1:9300
health_listen: 127.0.0.1:7199
tls: {certificate: e0.pem, key: e0-key.pem, ca: ca.pem}
party: {name: alice, identity: spiffe://lodge/party/alice}
params:
  - name: S14-32
    hash: 1111111111111111111111111111111111111111111111111111111111111111
`

func TestLoadEvaluators(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	f, err := LoadParty(write(t, dir, "party.yaml", evaluatorsYAML))
	if err != nil {
		t.Fatal(err)
	}
	e := f.Evaluators
	own := TLS{Certificate: f.TLS.Certificate, Key: f.TLS.Key, CA: f.TLS.CA}
	if e.Check != Compare || len(e.Processes) != 2 || e.Stall != Duration(15*time.Second) || e.TLS != own {
		t.Errorf("%+v", e)
	}
	if f, err = LoadParty(write(t, dir, "party.yaml", strings.Replace(evaluatorsYAML, "  check: compare\n", "  tls: {ca: own.pem}\n", 1))); err != nil {
		t.Fatal(err)
	}
	if f.Evaluators.Check != Compare || f.Evaluators.TLS.CA != filepath.Join(dir, "own.pem") || f.Evaluators.TLS.Key != f.TLS.Key {
		t.Errorf("%+v", f.Evaluators)
	}
	if f, err = LoadParty(write(t, dir, "party.yaml", partyYAML)); err != nil || len(f.Evaluators.Processes) != 0 {
		t.Errorf("%+v, %v", f.Evaluators, err)
	}
	t.Chdir(filepath.Dir(dir)) // and name the file from there
	write(t, dir, "party.yaml", evaluatorsYAML)
	f, err = LoadParty(filepath.Join(filepath.Base(dir), "party.yaml"))
	if err != nil || f.Evaluators.TLS.Key != f.TLS.Key || f.Evaluators.TLS.CA != filepath.Join(filepath.Base(dir), "ca.pem") {
		t.Errorf("%+v, and the party's own are %+v: %v", f.Evaluators.TLS, f.TLS, err)
	}
}

func TestEvaluatorsAreRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "roster.yaml", roster(t, dir))
	second := evaluatorsYAML[strings.Index(evaluatorsYAML, "    - name: e1"):]
	for name, c := range map[string]struct{ old, new, says string }{
		"one to compare":           {second, "", "compare needs evaluators of two domains, and all are of site-a"},
		"one domain":               {"domain: site-b", "domain: site-a", "compare needs evaluators of two domains, and all are of site-a"},
		"one identity in two":      {"evaluator/e1", "evaluator/e0", "one key must not serve two domains"},
		"one name":                 {"name: e1", "name: e0", "occurs twice"},
		"no name":                  {"name: e1", "name: E1", "is invalid"},
		"one address":              {"evaluators.site-b.example:7300", "10.0.0.1:7300", "occurs twice"},
		"no address":               {"10.0.0.1:7300", "10.0.0.1", "is not host:port"},
		"no domain":                {"domain: site-b", "domain: \"\"", "name the administrator of the machine"},
		"no identity":              {"identity: spiffe://lodge/evaluator/e1", "identity: \"\"", "identity: missing"},
		"identities of many":       {"evaluator/e1", "evaluator/*", "not a URI or a DNS name"},
		"another check":            {"check: compare", "check: sample", `"sample"; must be compare, recompute or trust`},
		"the party itself":         {"evaluator/e1", "party/alice", "is that of party alice"},
		"another party":            {"evaluator/e1", "party/bob", "is that of party bob"},
		"the coordinator":          {"evaluator/e1", "coordinator", "is that of the coordinator"},
		"a client":                 {"evaluator/e1", "client/alice-mpc", "is that of client mpc"},
		"an unknown key":           {"domain: site-b", "site: site-b", "field site not found"},
		"no time":                  {"check: compare", "stall: 0s", "not a positive time span"},
		"an authority for clients": {"check: compare", "tls: {client_ca: x.pem}", "leave it out"},
	} {
		if strings.Count(evaluatorsYAML, c.old) != 1 {
			t.Fatalf("%s: %q is not there once", name, c.old)
		}
		_, err := LoadParty(write(t, dir, "party.yaml", strings.Replace(evaluatorsYAML, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	for _, check := range []string{Recompute, Trust} { // one is enough where none is compared with another
		one := strings.Replace(strings.Replace(evaluatorsYAML, second, "", 1), "check: compare", "check: "+check, 1)
		if _, err := LoadParty(write(t, dir, "party.yaml", one)); err != nil {
			t.Errorf("%s: %v", check, err)
		}
	}
}

func TestLoadEvaluator(t *testing.T) {
	dir := t.TempDir()
	f, err := LoadEvaluator(write(t, dir, "evaluator.yaml", evaluatorYAML), "max_memory=2GiB")
	if err != nil {
		t.Fatal(err)
	}
	if f.MaxKeysMemory != 1<<30 || f.MaxMemory != 2<<30 || f.MaxConcurrent != 0 || f.TLS.CA != filepath.Join(dir, "ca.pem") || len(f.Settings) != 1 {
		t.Errorf("%+v", f)
	}
	for name, c := range map[string]struct{ old, new, says string }{
		"no party":                 {"identity: spiffe://lodge/party/alice", "identity: \"\"", "party.identity: missing"},
		"parties of many":          {"party/alice", "party/*", "not a URI or a DNS name"},
		"no name of a party":       {"name: alice", "name: Alice", "party.name"},
		"no sets":                  {"params:\n  - name: S14-32\n    hash: 1111111111111111111111111111111111111111111111111111111111111111\n", "", "pin at least one"},
		"no address":               {"listen: 127.0.0.1:7300", "listen: here", "is not host:port"},
		"no certificate":           {"certificate: e0.pem, ", "", "tls.certificate: missing"},
		"clients":                  {"listen: 127.0.0.1:7300", "listen: 127.0.0.1:7300\nclients: []", "field clients not found"},
		"an authority for clients": {"ca: ca.pem", "ca: ca.pem, client_ca: x.pem", "an evaluator has no clients"},
		"too many":                 {"listen: 127.0.0.1:7300", "listen: 127.0.0.1:7300\nmax_concurrent: 1000", "max_concurrent: 1000"},
	} {
		_, err := LoadEvaluator(write(t, dir, "evaluator.yaml", strings.Replace(evaluatorYAML, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
