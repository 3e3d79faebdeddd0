package config

import (
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Evaluators configures helper processes that compute products under encryption for a party. They
// hold no secret, but the party decrypts their results, and decrypting a wrong result can reveal
// the key.
type Evaluators struct {
	// Check says when a result of an evaluator is used: compare, recompute or trust; default
	// compare.
	Check     string      `yaml:"check,omitempty" default:"compare" oneof:"compare,recompute,trust"`
	Processes []Evaluator `yaml:"processes,omitempty"`
	// Stall is how long an evaluation may make no progress; default 15s.
	Stall Duration `yaml:"stall,omitempty" default:"15s"`
	// TLS overrides tls for connections to evaluators, file by file.
	TLS TLS `yaml:"tls,omitempty" check:"-"`
}

// Evaluator is one evaluator. Several processes with one identity may share its address.
type Evaluator struct {
	Name     string `yaml:"name"`     // name in metrics and logs
	Address  string `yaml:"address"`  // host:port; a host with several addresses has an evaluator at each
	Identity string `yaml:"identity"` // URI or DNS name in the evaluator's certificate
	// Domain names the administrator of the machine.
	Domain string `yaml:"domain"`
}

// Values of Evaluators.Check.
const (
	Compare   = "compare"   // the default: use a result if an evaluator of another domain returns the same bits
	Recompute = "recompute" // never use a result: the party computes everything itself and compares
	Trust     = "trust"     // always use a result
)

// MaxEvaluators is the largest number of evaluators that a party may name.
const MaxEvaluators = 64

// validate sets the paths of TLS files, and validates the processes.
func (e *Evaluators) validate(c *check, own TLS) {
	for _, p := range []struct {
		key       string
		path, own *string
	}{
		{"certificate", &e.TLS.Certificate, &own.Certificate}, {"key", &e.TLS.Key, &own.Key}, {"ca", &e.TLS.CA, &own.CA},
	} {
		if *p.path == "" {
			*p.path = *p.own // already relative to the party's directory
			continue
		}
		c.path("evaluators.tls."+p.key, p.path)
	}
	if e.TLS.ClientCA != "" {
		c.failf("evaluators.tls.client_ca: evaluators never call the party; leave it out")
	}
	if len(e.Processes) > MaxEvaluators {
		c.failf("evaluators.processes: %d entries; at most %d, with any number of processes behind each", len(e.Processes), MaxEvaluators)
	}
	names, addresses, owners := map[string]bool{}, map[string]bool{}, map[string]string{}
	var domains []string
	for i, p := range e.Processes {
		fail := func(key, format string, args ...any) {
			c.failf("evaluators.processes[%d]."+key+": "+format, append([]any{i}, args...)...)
		}
		if !ValidName(p.Name) || names[p.Name] {
			fail("name", "%q occurs twice or is invalid; use 1 to 64 of a-z, 0-9, '-', starting with a letter", p.Name)
		}
		if c.address("evaluators.processes.address", p.Address); addresses[p.Address] {
			fail("address", "%q occurs twice", p.Address)
		}
		if !ValidName(p.Domain) {
			fail("domain", "%q is not a name; name the administrator of the machine, such as site-a", p.Domain)
		}
		if p.Identity == "" {
			fail("identity", "missing; write the URI or DNS name of the evaluator's certificate")
		} else if err := rpc.NewDirectory().Add(p.Identity, rpc.Principal{Name: p.Name}); err != nil {
			fail("identity", "%v", err)
		}
		//lodge:check evaluators/identities [run=TestEvaluatorsAreRefused] one key serves two
		//  domains
		if other, ok := owners[p.Identity]; ok && other != p.Domain {
			fail("identity", "%q also belongs to domain %s; one key must not serve two domains", p.Identity, other)
		}
		names[p.Name], addresses[p.Address], owners[p.Identity] = true, true, p.Domain
		if !slices.Contains(domains, p.Domain) {
			domains = append(domains, p.Domain)
		}
	}
	//lodge:check evaluators/domains [run=TestEvaluatorsAreRefused] evaluators are compared within
	//  one domain
	if e.Check == Compare && len(domains) == 1 {
		c.failf("evaluators.check: compare needs evaluators of two domains, and all are of %s: name one on a machine with another administrator, "+
			"or write check: recompute to use no results, or check: trust if you trust all of them", domains[0])
	}
}

// apart rejects evaluators with the identity of a roster member or client: evaluators belong to
// this party only.
func (e *Evaluators) apart(c *check, f *PartyFile) {
	others := map[string]string{f.Roster.Coordinator.Identity: "the coordinator"}
	for _, m := range f.Roster.Parties {
		others[m.Identity] = "party " + m.Name
	}
	for _, cl := range f.Clients {
		others[cl.Identity] = "client " + cl.Name
	}
	for i, p := range e.Processes {
		//lodge:check evaluators/own [run=TestEvaluatorsAreRefused] a party of the roster is its own
		//  evaluator
		if other, ok := others[p.Identity]; ok {
			c.failf("evaluators.processes[%d].identity: %q is that of %s; give the evaluator an identity of its own", i, p.Identity, other)
		}
	}
}

// EvaluatorFile is an evaluator's configuration.
type EvaluatorFile struct {
	Name          string `yaml:"name" check:"name"`                         // name in the party's configuration
	Listen        string `yaml:"listen" check:"address"`                    // host:port of the gRPC server
	MetricsListen string `yaml:"metrics_listen,omitempty" check:"address?"` // host:port of Prometheus metrics, plaintext
	HealthListen  string `yaml:"health_listen,omitempty" check:"address?"`  // host:port of the health check, plaintext
	TLS           TLS    `yaml:"tls"`
	// Party is the only party that is served.
	Party Owner `yaml:"party"`
	// Params are the parameter sets that the evaluator computes with.
	Params []ParamsPin `yaml:"params"`
	// MaxKeysMemory limits the stored evaluation keys; default 1GiB.
	MaxKeysMemory Bytes `yaml:"max_keys_memory,omitempty" default:"1GiB"`
	// MaxMemory limits the estimated memory of evaluations, in addition to keys; default 4GiB.
	MaxMemory Bytes `yaml:"max_memory,omitempty" default:"4GiB"`
	// MaxConcurrent limits concurrent evaluations; default the number of processors plus one.
	MaxConcurrent int `yaml:"max_concurrent,omitempty" range:"0..256"`
	// AllowInsecureParams accepts parameter sets that are too small to hide anything. For tests.
	AllowInsecureParams bool `yaml:"allow_insecure_params,omitempty"`
	Reflection          bool `yaml:"reflection,omitempty"` // serve gRPC reflection
	// StopAfter is how long running work may continue when the process is told to stop; default
	// 20s.
	StopAfter Duration `yaml:"stop_after,omitempty" default:"20s"`
	// LogLevel is debug, info, warn or error; default info.
	LogLevel string `yaml:"log_level,omitempty" default:"info" oneof:"debug,info,warn,error"`

	Settings []Setting `yaml:"-"` // settings that override the file's values
}

// Owner is the party that an evaluator serves.
type Owner struct {
	Name     string `yaml:"name" check:"name"` // name of the party
	Identity string `yaml:"identity"`          // identity in the party's certificate
}

// LoadEvaluator reads and validates an evaluator's file. Settings of the environment override the
// file, and set (KEY=VALUE) overrides both.
func LoadEvaluator(path string, set ...string) (*EvaluatorFile, error) {
	f := new(EvaluatorFile)
	c, err := load(path, f, set, &f.Settings)
	if err != nil {
		return nil, err
	}
	if f.TLS.ClientCA != "" {
		c.failf("tls.client_ca: an evaluator has no clients; leave it out")
	}
	if f.Party.Identity == "" {
		c.failf("party.identity: missing; write the URI or DNS name of the party's certificate")
	}
	c.params(f.Params)
	if err := c.err(path); err != nil {
		return nil, err
	}
	if _, err := f.Directory(); err != nil {
		return nil, fmt.Errorf("config: %s: %w", path, err)
	}
	return f, nil
}

// Directory returns the only caller of the evaluator: its party.
func (f *EvaluatorFile) Directory() (*rpc.Directory, error) {
	d := rpc.NewDirectory()
	return d, d.Add(f.Party.Identity, rpc.Principal{Role: rpc.Owner, Name: f.Party.Name, Party: -1})
}
