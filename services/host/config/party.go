package config

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// PartyFile is a party's configuration.
type PartyFile struct {
	Name          string `yaml:"name" check:"name"`                         // name of the party in the roster
	RosterFile    string `yaml:"roster" check:"path"`                       // roster file, the same at every process
	Listen        string `yaml:"listen" check:"address"`                    // host:port of the gRPC server
	MetricsListen string `yaml:"metrics_listen,omitempty" check:"address?"` // host:port of Prometheus metrics, plaintext
	HealthListen  string `yaml:"health_listen,omitempty" check:"address?"`  // host:port of the health check, plaintext
	TLS           TLS    `yaml:"tls"`
	OIDC          *OIDC  `yaml:"oidc,omitempty"`
	SigningKey    string `yaml:"signing_key" check:"path"` // file with the party's Ed25519 key, PEM
	Vault         Vault  `yaml:"vault"`
	// AuditDir stores the audit log; default "audit", next to this file.
	AuditDir string   `yaml:"audit_dir,omitempty" default:"audit" check:"path"`
	Clients  []Client `yaml:"clients"`
	Policy   Policy   `yaml:"policy"`
	Limits   Limits   `yaml:"limits,omitempty"`
	Callers  Callers  `yaml:"callers,omitempty"`
	// Accusations configures how this party reacts when a party of the roster cheats.
	Accusations Accusations `yaml:"accusations,omitempty"`
	// Evaluators are processes that compute products for this party.
	Evaluators Evaluators `yaml:"evaluators,omitempty"`
	// Multikey limits the resources for multi-key ciphertexts, if the roster pins their context.
	Multikey MultikeyService `yaml:"multikey,omitempty"`
	// AllowPassiveKeygen accepts keys whose generation is only passively secure. For development.
	AllowPassiveKeygen bool `yaml:"allow_passive_keygen,omitempty"`
	// AllowPassiveThreshold accepts threshold keys and joint decryption, which are secure only
	// against parties that follow the protocol.
	AllowPassiveThreshold bool `yaml:"allow_passive_threshold,omitempty"`
	// Threshold says for which clients this party decrypts under threshold keys and multi-key keys.
	Threshold Threshold `yaml:"threshold,omitempty"`
	// AllowPassiveLinear accepts two-party linear algebra, which is correct only if this party
	// follows the protocol.
	AllowPassiveLinear bool `yaml:"allow_passive_linear,omitempty"`
	// AllowUnprovedLinear accepts products on shares without proofs of inputs. A client that sends
	// malformed inputs then learns the other client's matrix over thousands of products.
	AllowUnprovedLinear bool `yaml:"allow_unproved_linear,omitempty"`
	// Linear limits the products of clients.
	Linear Linear `yaml:"linear,omitempty"`
	// AllowInsecureParams accepts parameter sets that are too small to hide anything. For tests.
	AllowInsecureParams bool `yaml:"allow_insecure_params,omitempty"`
	Reflection          bool `yaml:"reflection,omitempty"` // serve gRPC reflection
	// StopAfter is how long running work may continue when the process is told to stop; default
	// 20s.
	StopAfter Duration `yaml:"stop_after,omitempty" default:"20s"`
	// LogLevel is debug, info, warn or error; default info.
	LogLevel string  `yaml:"log_level,omitempty" default:"info" oneof:"debug,info,warn,error"`
	Tracing  Tracing `yaml:"tracing,omitempty"`
	Console  Console `yaml:"console,omitempty"`
	Disk     Disk    `yaml:"disk,omitempty"`

	Roster   *Roster   `yaml:"-"`
	Index    int       `yaml:"-"` // in the roster
	Settings []Setting `yaml:"-"` // settings that override the file's values
}

// Vault configures the storage of secrets: the embedded store in a directory, or a schema of a
// PostgreSQL database.
type Vault struct {
	Dir string `yaml:"dir,omitempty" check:"path?"` // directory of the embedded store
	// PostgresDSNFile is a file with the connection string of a PostgreSQL store, readable by its
	// owner only; instead of vault.dir.
	PostgresDSNFile string `yaml:"postgres_dsn_file,omitempty" check:"path?"`
	KeyFile         string `yaml:"key_file" check:"path"` // file with the store's key: 32 bytes in hex, readable by its owner only
}

// ParamsPin pins a parameter set by its hash.
type ParamsPin struct {
	Name string `yaml:"name"` // name of the parameter set
	Hash string `yaml:"hash"` // its hash, 64 hexadecimal digits, as lodge params show prints it
}

// Sum returns the hash as bytes. The file must have been validated.
func (p ParamsPin) Sum() [32]byte {
	var sum [32]byte
	b, _ := hex.DecodeString(p.Hash)
	copy(sum[:], b)
	return sum
}

// Policy limits the jobs that this party accepts from the coordinator.
type Policy struct {
	Params []ParamsPin `yaml:"params"`
	Kinds  []string    `yaml:"kinds"`  // kinds of jobs: keys, masks, reshare, proof and the kinds of tuples
	Fields []string    `yaml:"fields"` // fields, such as p128
	// Purposes are the purposes of keys that the party makes: triples, decryption, threshold.
	Purposes []string `yaml:"purposes"`
	Tenants  []string `yaml:"tenants"` // tenants of jobs
	// MaxCount limits the tuples of one job.
	MaxCount uint64 `yaml:"max_count"`
	// MaxDim limits rows, inner dimension and columns of a matrix product, and of the product that
	// a convolution is made as.
	MaxDim uint32 `yaml:"max_dim,omitempty"`
	// JobsPerHour limits the jobs that start in any hour.
	JobsPerHour int `yaml:"jobs_per_hour"`
	// MaxConcurrent limits concurrent sessions.
	MaxConcurrent int `yaml:"max_concurrent"`
	// MaxMemory limits the estimated memory of all sessions. Clients' calls may use a quarter as
	// much in addition.
	MaxMemory Bytes `yaml:"max_memory"`
	// DecryptionsPerHour limits new answers to clients in any hour.
	DecryptionsPerHour int `yaml:"decryptions_per_hour,omitempty"`
	// AllowNoSacrifice accepts jobs without the check that detects products under malformed
	// evaluation keys.
	AllowNoSacrifice bool `yaml:"allow_no_sacrifice,omitempty"`
}

// Limits bounds time and buffers within a session.
type Limits struct {
	// Idle is how long a peer may make no progress; default 1m, so that a network cut of half that
	// time costs no session.
	Idle Duration `yaml:"idle,omitempty" default:"1m"`
	// Compute is how long a peer may compute before the first byte of a round; default 2m.
	Compute Duration `yaml:"compute,omitempty" default:"2m"`
	// MinRate is the lowest rate of a sending peer in bytes per second; default 64KiB.
	MinRate Bytes `yaml:"min_rate,omitempty" default:"64KiB"`
	// Window is the data in flight to one peer in one session, at least 4MiB, the size of a frame;
	// default 16MiB.
	Window Bytes `yaml:"window,omitempty" default:"16MiB" range:"4MiB.."`
}

// Kinds and Purposes that a policy can name, and the Fields of all parameter sets.
var (
	Kinds    = slices.Concat([]string{"keys"}, TupleKinds, []string{"proof", "masks", "reshare"})
	Purposes = []string{"triples", "decryption", "threshold"}
	Fields   = []string{"p64", "p128", "p256", "p512", "p1024", "p2048", "p4096"}
)

// LoadParty reads and validates a party's file and its roster. Settings of the environment override
// the file, and set (KEY=VALUE) overrides both.
func LoadParty(path string, set ...string) (*PartyFile, error) {
	f := new(PartyFile)
	c, err := load(path, f, set, &f.Settings)
	if err != nil {
		return nil, err
	}
	if (f.Vault.Dir == "") == (f.Vault.PostgresDSNFile == "") {
		c.failf("vault: name either dir for the embedded store or postgres_dsn_file")
	}
	if f.Multikey.Dir == "" {
		f.Multikey.Dir = filepath.Join(cmp.Or(f.Vault.Dir, f.AuditDir), "multikey")
	}
	c.clients(f.Clients, PermStatus, PermFetch, PermMACKey, PermProve, PermDecrypt, PermApprove, PermEncrypt, PermEvaluate, PermLinear, PermRetire, PermAccusations, PermOperate)
	f.Policy.validate(c)
	f.Threshold.validate(c, f.Clients)
	f.Linear.validate(c)
	c.oidc(f.OIDC, f.Clients)
	c.callers(f.Callers)
	c.tracing(&f.Tracing)
	c.console(&f.Console, f.OIDC)
	f.Evaluators.validate(c, f.TLS)
	if err := c.err(path); err != nil {
		return nil, err
	}
	if f.Roster, err = LoadRoster(f.RosterFile); err != nil {
		return nil, err
	}
	var ok bool
	if f.Index, ok = f.Roster.Index(f.Name); !ok {
		return nil, fmt.Errorf("config: %s: name: %q is not in the roster %s", path, f.Name, f.RosterFile)
	}
	if _, err = f.Directory(); err != nil {
		return nil, fmt.Errorf("config: %s: %w", path, err)
	}
	f.Evaluators.apart(c, f)
	f.Threshold.Reshare.within(c, f.Roster)
	return f, c.err(path)
}

func (p *Policy) validate(c *check) {
	c.params(p.Params)
	list := func(key string, got, allowed []string) {
		if len(got) == 0 {
			c.failf("policy.%s: empty; list what the party allows", key)
		}
		for _, g := range got {
			if allowed != nil && !slices.Contains(allowed, g) {
				c.failf("policy.%s: %q is not one of %s", key, g, strings.Join(allowed, ", "))
			}
		}
	}
	list("kinds", p.Kinds, Kinds)
	list("purposes", p.Purposes, Purposes)
	if slices.ContainsFunc(p.Purposes, func(purpose string) bool { return purpose != "threshold" }) {
		list("fields", p.Fields, Fields) // threshold keys have none
	}
	list("tenants", p.Tenants, nil)
	for _, t := range p.Tenants {
		c.name("policy.tenants", t)
	}
	positive := func(key string, ok bool) {
		if !ok {
			c.failf("policy.%s: missing or not positive", key)
		}
	}
	positive("max_count", p.MaxCount > 0)
	positive("jobs_per_hour", p.JobsPerHour > 0)
	positive("max_concurrent", p.MaxConcurrent > 0)
	positive("max_memory", p.MaxMemory > 0)
	shaped := kind.Names(kind.Kind.Shaped)
	positive("max_dim (with kinds "+strings.Join(shaped, " and ")+")",
		p.MaxDim > 0 || !slices.ContainsFunc(shaped, func(k string) bool { return slices.Contains(p.Kinds, k) }))
	positive("decryptions_per_hour (with purpose decryption)", p.DecryptionsPerHour > 0 || !slices.Contains(p.Purposes, "decryption"))
}

func (c *check) params(pins []ParamsPin) {
	if len(pins) == 0 {
		c.failf("params: empty; pin at least one parameter set by name and hash")
	}
	seen := map[string]bool{}
	for i, p := range pins {
		if p.Name == "" || seen[p.Name] {
			c.failf("params[%d].name: %q is empty or occurs twice", i, p.Name)
		}
		seen[p.Name] = true
		if b, err := hex.DecodeString(p.Hash); err != nil || len(b) != 32 {
			c.failf("params[%d].hash: not 64 hexadecimal digits; `lodge params show %s` prints it", i, p.Name)
		}
	}
}

// Directory returns the callers that this party accepts.
func (f *PartyFile) Directory() (*rpc.Directory, error) {
	return f.Roster.directory(f.Name, f.Clients)
}

// Signer loads the party's signing key. It must match the key that the roster pins for this party.
func (f *PartyFile) Signer() (ed25519.PrivateKey, error) {
	k, err := pki.LoadSigningKey(f.SigningKey)
	if err != nil {
		return nil, err
	}
	pinned, err := pki.ParsePublic(f.Roster.Parties[f.Index].SigningKey)
	if err != nil || !bytes.Equal(k.Public().(ed25519.PublicKey), pinned) {
		return nil, fmt.Errorf("config: signing key %s does not match the key that the roster pins for %s", f.SigningKey, f.Name)
	}
	return k, nil
}

// Pin returns the pinned hash of a parameter set.
func Pin(pins []ParamsPin, name string) ([32]byte, bool) {
	for _, p := range pins {
		if p.Name == name {
			return p.Sum(), true
		}
	}
	return [32]byte{}, false
}
