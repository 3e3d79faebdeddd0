package config

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Evaluators are processes of a party that compute products under encryption in its place. They have no secret, but what
// they compute is decrypted, and decrypting what was computed wrongly tells the key.
type Evaluators struct {
	// Check says when a result is used: Compare, Recompute or Trust.
	Check     string      `yaml:"check,omitempty"`
	Processes []Evaluator `yaml:"processes,omitempty"`
	// Stall is how long an evaluator that computes may make no progress; default 15 s.
	Stall Duration `yaml:"stall,omitempty"`
	// TLS is how evaluators are called; what is empty is as in tls of the party.
	TLS TLS `yaml:"tls,omitempty"`
}

// Evaluator is one of them. Behind its address may be several processes, which have one identity.
type Evaluator struct {
	Name     string `yaml:"name"`
	Address  string `yaml:"address"`  // host:port; a host with several addresses has an evaluator at each
	Identity string `yaml:"identity"` // URI or DNS name in its certificate
	// Domain names who administers it.
	Domain string `yaml:"domain"`
}

// When a party uses what an evaluator computed.
const (
	Compare   = "compare"   // the default: if an evaluator of another domain computed the same, bit for bit
	Recompute = "recompute" // never; the party computes everything itself and compares
	Trust     = "trust"     // always
)

const (
	defaultStall = Duration(15 * time.Second)
	// MaxEvaluators is the most that a party names.
	MaxEvaluators = 64
)

// fill fills in and checks.
func (e *Evaluators) fill(c *check, dir string, own TLS) {
	if e.Check == "" {
		e.Check = Compare
	}
	if e.Stall == 0 {
		e.Stall = defaultStall
	}
	for _, p := range []struct {
		key       string
		path, own *string
	}{
		{"certificate", &e.TLS.Certificate, &own.Certificate}, {"key", &e.TLS.Key, &own.Key}, {"ca", &e.TLS.CA, &own.CA},
	} {
		if *p.path == "" {
			*p.path = *p.own // which is already below the party's directory
			continue
		}
		c.path(dir, "evaluators.tls."+p.key, p.path, true)
	}
	if e.TLS.ClientCA != "" {
		c.failf("evaluators.tls.client_ca: nobody calls the party here; leave it out")
	}
	switch e.Check {
	case Compare, Recompute, Trust:
	default:
		c.failf("evaluators.check: %q; %s, %s or %s", e.Check, Compare, Recompute, Trust)
	}
	if len(e.Processes) > MaxEvaluators {
		c.failf("evaluators.processes: %d of them; at most %d names, and any number of processes behind each", len(e.Processes), MaxEvaluators)
	}
	names, addresses, owners := map[string]bool{}, map[string]bool{}, map[string]string{}
	var domains []string
	for i, p := range e.Processes {
		fail := func(key, format string, args ...any) {
			c.failf("evaluators.processes[%d]."+key+": "+format, append([]any{i}, args...)...)
		}
		if !ValidName(p.Name) || names[p.Name] {
			fail("name", "%q is there twice, or is no name; use 1 to 64 of a-z, 0-9, '-', starting with a letter", p.Name)
		}
		if c.address("evaluators.processes.address", p.Address, false); addresses[p.Address] {
			fail("address", "%q is there twice", p.Address)
		}
		if !ValidName(p.Domain) {
			fail("domain", "%q is not a name; name who administers the machine, such as site-a", p.Domain)
		}
		if p.Identity == "" {
			fail("identity", "missing; write the URI or DNS name of the evaluator's certificate")
		} else if err := rpc.NewDirectory().Add(p.Identity, rpc.Principal{Name: p.Name}); err != nil {
			fail("identity", "%v", err)
		}
		//lodge:check evaluators/identities [run=TestEvaluatorsAreRefused] one key serves two
		//  domains
		if other, ok := owners[p.Identity]; ok && other != p.Domain {
			fail("identity", "%q is of domain %s too; whoever has its key is in both", p.Identity, other)
		}
		names[p.Name], addresses[p.Address], owners[p.Identity] = true, true, p.Domain
		if !slices.Contains(domains, p.Domain) {
			domains = append(domains, p.Domain)
		}
	}
	//lodge:check evaluators/domains [run=TestEvaluatorsAreRefused] evaluators are compared within
	//  one domain
	if e.Check == Compare && len(domains) == 1 {
		c.failf("evaluators.check: compare needs evaluators of two domains, and all are of %s: name one on a machine that somebody else administers, "+
			"or write check: recompute to use nothing of theirs, or check: trust if you answer for them", domains[0])
	}
}

// apart refuses evaluators that are somebody of the roster, or a client: they are this party's own.
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
			c.failf("evaluators.processes[%d].identity: %q is that of %s; an evaluator has one of its own", i, p.Identity, other)
		}
	}
}

// EvaluatorFile is the configuration of an evaluator's process.
type EvaluatorFile struct {
	Name          string `yaml:"name"` // as the party names it
	Listen        string `yaml:"listen"`
	MetricsListen string `yaml:"metrics_listen,omitempty"`
	HealthListen  string `yaml:"health_listen,omitempty"` // plaintext; see HealthAddress
	TLS           TLS    `yaml:"tls"`
	// Party is the one party that is served, and nobody else.
	Party Owner `yaml:"party"`
	// Params that are computed with.
	Params []ParamsPin `yaml:"params"`
	// MaxKeysMemory bounds the evaluation keys that are kept; default 1GiB. MaxMemory bounds what evaluations take
	// beside them, by estimate; default 4GiB.
	MaxKeysMemory Bytes `yaml:"max_keys_memory,omitempty"`
	MaxMemory     Bytes `yaml:"max_memory,omitempty"`
	// MaxConcurrent bounds evaluations at the same time; default one more than there are processors.
	MaxConcurrent int `yaml:"max_concurrent,omitempty"`
	// AllowInsecureParams accepts parameter sets that are too small to hide anything. For tests.
	AllowInsecureParams bool `yaml:"allow_insecure_params,omitempty"`
	Reflection          bool `yaml:"reflection,omitempty"`
	// StopAfter is how long evaluations that run may go on when the process is told to stop; default 20 s.
	StopAfter Duration `yaml:"stop_after,omitempty"`
	// LogLevel is one of logs.Levels; default info.
	LogLevel string `yaml:"log_level,omitempty"`

	Settings []Setting `yaml:"-"` // that took the place of the file's values
}

// Owner is the party of an evaluator.
type Owner struct {
	Name     string `yaml:"name"`
	Identity string `yaml:"identity"`
}

const (
	defaultKeysMemory       = Bytes(1 << 30)
	defaultEvaluationMemory = Bytes(4 << 30)
	maxEvaluations          = 256
)

// LoadEvaluator reads and checks an evaluator's file, with the environment's settings and then these.
func LoadEvaluator(path string, set ...string) (*EvaluatorFile, error) {
	f := new(EvaluatorFile)
	var err error
	if f.Settings, err = decodeSet(path, f, set); err != nil {
		return nil, err
	}
	c, dir := new(check), filepath.Dir(path)
	c.name("name", f.Name)
	c.address("listen", f.Listen, false)
	c.address("metrics_listen", f.MetricsListen, true)
	c.address("health_listen", f.HealthListen, true)
	c.tls(dir, &f.TLS)
	if f.TLS.ClientCA != "" {
		c.failf("tls.client_ca: an evaluator has no clients; leave it out")
	}
	c.name("party.name", f.Party.Name)
	if f.Party.Identity == "" {
		c.failf("party.identity: missing; write the URI or DNS name of the party's certificate")
	}
	c.params(f.Params)
	c.stopAfter(&f.StopAfter)
	c.logLevel(&f.LogLevel)
	if f.MaxKeysMemory == 0 {
		f.MaxKeysMemory = defaultKeysMemory
	}
	if f.MaxMemory == 0 {
		f.MaxMemory = defaultEvaluationMemory
	}
	if f.MaxConcurrent < 0 || f.MaxConcurrent > maxEvaluations {
		c.failf("max_concurrent: %d; 1 to %d evaluations run at the same time", f.MaxConcurrent, maxEvaluations)
	}
	if err := c.err(path); err != nil {
		return nil, err
	}
	_, err = f.Directory()
	if err != nil {
		c.failf("%w", err)
	}
	return f, c.err(path)
}

// Directory of those who may call the evaluator: its party.
func (f *EvaluatorFile) Directory() (*rpc.Directory, error) {
	d := rpc.NewDirectory()
	return d, d.Add(f.Party.Identity, rpc.Principal{Role: rpc.Owner, Name: f.Party.Name, Party: -1})
}
