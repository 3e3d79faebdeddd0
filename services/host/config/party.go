package config

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/services/host/logs"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// PartyFile is the configuration of one party's process.
type PartyFile struct {
	Name          string `yaml:"name"` // as in the roster
	RosterFile    string `yaml:"roster"`
	Listen        string `yaml:"listen"`
	MetricsListen string `yaml:"metrics_listen,omitempty"`
	HealthListen  string `yaml:"health_listen,omitempty"` // plaintext; see HealthAddress
	TLS           TLS    `yaml:"tls"`
	OIDC          *OIDC  `yaml:"oidc,omitempty"`
	SigningKey    string `yaml:"signing_key"` // path of an Ed25519 key in PEM
	Vault         Vault  `yaml:"vault"`
	// AuditDir has the log of who drew what; default "audit", beside this file.
	AuditDir string   `yaml:"audit_dir,omitempty"`
	Clients  []Client `yaml:"clients"`
	Policy   Policy   `yaml:"policy"`
	Limits   Limits   `yaml:"limits,omitempty"`
	Callers  Callers  `yaml:"callers,omitempty"`
	// Accusations say what follows when a party of the roster cheats.
	Accusations Accusations `yaml:"accusations,omitempty"`
	// Evaluators are processes that compute products in this party's place.
	Evaluators Evaluators `yaml:"evaluators,omitempty"`
	// Multikey says how much room multi-key ciphertexts have, if the roster pins their context.
	Multikey MultikeyService `yaml:"multikey,omitempty"`
	// AllowPassiveKeygen accepts keys whose generation is only passively
	// secure. For development.
	AllowPassiveKeygen bool `yaml:"allow_passive_keygen,omitempty"`
	// AllowPassiveThreshold accepts threshold keys, which are secure against
	// parties that follow the protocol alone.
	AllowPassiveThreshold bool `yaml:"allow_passive_threshold,omitempty"`
	// Threshold says for whom this party decrypts under threshold keys.
	Threshold Threshold `yaml:"threshold,omitempty"`
	// AllowPassiveLinear accepts two-party linear algebra for clients, which is
	// secure against those who follow the protocol alone.
	AllowPassiveLinear bool `yaml:"allow_passive_linear,omitempty"`
	// AllowUnprovedLinear accepts products on shares whose inputs the owner of
	// the key does not prove. A client that sends malformed inputs then learns
	// the other client's matrix over thousands of products.
	AllowUnprovedLinear bool `yaml:"allow_unproved_linear,omitempty"`
	// Linear bounds what clients have multiplied.
	Linear Linear `yaml:"linear,omitempty"`
	// AllowInsecureParams accepts parameter sets that are too small to hide
	// anything. For tests.
	AllowInsecureParams bool `yaml:"allow_insecure_params,omitempty"`
	Reflection          bool `yaml:"reflection,omitempty"`
	// StopAfter is how long sessions that run may go on when the process is told to stop; default 20 s.
	StopAfter Duration `yaml:"stop_after,omitempty"`
	// LogLevel is one of logs.Levels, until it is changed in the process; default info.
	LogLevel string  `yaml:"log_level,omitempty"`
	Tracing  Tracing `yaml:"tracing,omitempty"`
	Disk     Disk    `yaml:"disk,omitempty"`

	Roster   *Roster   `yaml:"-"`
	Index    int       `yaml:"-"` // in the roster
	Settings []Setting `yaml:"-"` // that took the place of the file's values
}

// Vault is where secrets rest: in the embedded store of a directory, or in a schema of a PostgreSQL database.
type Vault struct {
	Dir string `yaml:"dir,omitempty"`
	// PostgresDSNFile names a file with the connection string, readable by its owner only.
	PostgresDSNFile string `yaml:"postgres_dsn_file,omitempty"`
	KeyFile         string `yaml:"key_file"` // 32 bytes in hex, readable by its owner only
}

// path names the place, of which there is one.
func (v *Vault) path(c *check, dir string) {
	if (v.Dir == "") == (v.PostgresDSNFile == "") {
		c.failf("vault: name dir for the embedded store, or postgres_dsn_file, and not both")
	}
	c.path(dir, "vault.dir", &v.Dir, true)
	c.path(dir, "vault.postgres_dsn_file", &v.PostgresDSNFile, true)
	c.path(dir, "vault.key_file", &v.KeyFile, false)
}

// ParamsPin pins a parameter set by its hash.
type ParamsPin struct {
	Name string `yaml:"name"`
	Hash string `yaml:"hash"` // 64 hexadecimal digits
}

// Sum is the hash as bytes; the file has been validated.
func (p ParamsPin) Sum() [32]byte {
	var sum [32]byte
	b, _ := hex.DecodeString(p.Hash)
	copy(sum[:], b)
	return sum
}

// Policy is what this party agrees to do, whatever the coordinator asks.
type Policy struct {
	Params []ParamsPin `yaml:"params"`
	Kinds  []string    `yaml:"kinds"`  // see Kinds
	Fields []string    `yaml:"fields"` // such as p128
	// Purposes of keys that it makes: triples, decryption, threshold.
	Purposes []string `yaml:"purposes"`
	Tenants  []string `yaml:"tenants"`
	// MaxCount bounds the tuples of one job.
	MaxCount uint64 `yaml:"max_count"`
	// MaxDim bounds rows, inner and columns of a matrix product, and of that which a convolution is made as.
	MaxDim uint32 `yaml:"max_dim,omitempty"`
	// JobsPerHour bounds starts, in any hour.
	JobsPerHour int `yaml:"jobs_per_hour"`
	// MaxConcurrent bounds sessions at the same time; MaxMemory what they may
	// hold together, by estimate. Clients' proofs and decryptions may hold a
	// quarter as much beside them.
	MaxConcurrent int   `yaml:"max_concurrent"`
	MaxMemory     Bytes `yaml:"max_memory"`
	// DecryptionsPerHour bounds new answers to clients, in any hour.
	DecryptionsPerHour int `yaml:"decryptions_per_hour,omitempty"`
	// AllowNoSacrifice lets products be made without the check that finds those
	// of malformed evaluation keys, for those who trust their keys.
	AllowNoSacrifice bool `yaml:"allow_no_sacrifice,omitempty"`
}

// Limits on time and buffers within a session.
type Limits struct {
	// Idle is how long a peer may make no progress; default 1 m, so that a network that is cut for half of that costs
	// no session.
	Idle Duration `yaml:"idle,omitempty"`
	// Compute is what a peer may take for its own work before the first byte
	// of a round; default 2 m.
	Compute Duration `yaml:"compute,omitempty"`
	// MinRate is what a sending peer must keep up in bytes per second; default 64KiB.
	MinRate Bytes `yaml:"min_rate,omitempty"`
	// Window is what may be in flight to one peer in one session; default 16MiB.
	Window Bytes `yaml:"window,omitempty"`
}

// Kinds that a policy can name, Purposes, and the Fields of all parameter sets.
var (
	Kinds    = slices.Concat([]string{"keys"}, TupleKinds, []string{"proof", "masks", "reshare"})
	Purposes = []string{"triples", "decryption", "threshold"}
	Fields   = []string{"p64", "p128", "p256", "p512", "p1024", "p2048", "p4096"}
)

// LoadParty reads and checks a party's file, with the environment's settings and then these, and its roster.
func LoadParty(path string, set ...string) (*PartyFile, error) {
	f := new(PartyFile)
	var err error
	if f.Settings, err = decodeSet(path, f, set); err != nil {
		return nil, err
	}
	c, dir := new(check), filepath.Dir(path)
	c.name("name", f.Name)
	c.path(dir, "roster", &f.RosterFile, false)
	c.address("listen", f.Listen, false)
	c.address("metrics_listen", f.MetricsListen, true)
	c.address("health_listen", f.HealthListen, true)
	c.tls(dir, &f.TLS)
	c.path(dir, "signing_key", &f.SigningKey, false)
	f.Vault.path(c, dir)
	if f.AuditDir == "" {
		f.AuditDir = "audit"
	}
	c.path(dir, "audit_dir", &f.AuditDir, false)
	c.clients(f.Clients, PermStatus, PermFetch, PermMACKey, PermProve, PermDecrypt, PermApprove, PermEncrypt, PermEvaluate, PermLinear, PermRetire, PermAccusations, PermOperate)
	f.Policy.validate(c)
	f.Threshold.validate(c, f.Clients)
	f.Linear.fill(c)
	c.oidc(dir, f.OIDC, f.Clients)
	f.Limits.defaults()
	c.callers(f.Callers)
	c.stopAfter(&f.StopAfter)
	c.logLevel(&f.LogLevel)
	c.tracing(dir, &f.Tracing)
	f.Accusations.fill(c)
	f.Evaluators.fill(c, dir, f.TLS)
	f.Multikey.fill(c, dir, f)
	if f.Limits.Window < 4<<20 {
		c.failf("limits.window: %d; at least one frame of 4MiB", f.Limits.Window)
	}
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
			c.failf("policy.%s: empty; nothing would be allowed", key)
		}
		for _, g := range got {
			if allowed != nil && !contains(allowed, g) {
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
		p.MaxDim > 0 || !slices.ContainsFunc(shaped, func(k string) bool { return contains(p.Kinds, k) }))
	positive("decryptions_per_hour (with purpose decryption)", p.DecryptionsPerHour > 0 || !contains(p.Purposes, "decryption"))
}

func (c *check) params(pins []ParamsPin) {
	if len(pins) == 0 {
		c.failf("params: empty; pin at least one parameter set by name and hash")
	}
	seen := map[string]bool{}
	for i, p := range pins {
		if p.Name == "" || seen[p.Name] {
			c.failf("params[%d].name: %q is empty or there twice", i, p.Name)
		}
		seen[p.Name] = true
		if b, err := hex.DecodeString(p.Hash); err != nil || len(b) != 32 {
			c.failf("params[%d].hash: not 64 hexadecimal digits; `lodge params show %s` prints it", i, p.Name)
		}
	}
}

func (l *Limits) defaults() {
	if l.Idle == 0 {
		l.Idle = Duration(time.Minute)
	}
	if l.Compute == 0 {
		l.Compute = Duration(2 * time.Minute)
	}
	if l.MinRate == 0 {
		l.MinRate = 64 << 10
	}
	if l.Window == 0 {
		l.Window = 16 << 20
	}
}

// defaultStopAfter and what a process needs beyond it, 10 s, are the 30 s after which most tools kill.
const defaultStopAfter = Duration(20 * time.Second)

func (c *check) stopAfter(d *Duration) {
	if *d == 0 {
		*d = defaultStopAfter
	}
	if *d < 0 {
		c.failf("stop_after: %s; how long what runs may go on when the process is told to stop, such as 20s", time.Duration(*d))
	}
}

func (c *check) logLevel(level *string) {
	if *level == "" {
		*level = "info"
	}
	if _, err := logs.ParseLevel(*level); err != nil {
		c.failf("log_level: %v", err)
	}
}

// Directory of those who may call this party.
func (f *PartyFile) Directory() (*rpc.Directory, error) {
	return f.Roster.directory(f.Name, f.Clients)
}

// Signer loads the party's signing key and refuses one that the roster does not pin.
func (f *PartyFile) Signer() (ed25519.PrivateKey, error) {
	k, err := pki.LoadSigningKey(f.SigningKey)
	if err != nil {
		return nil, err
	}
	pinned, err := pki.ParsePublic(f.Roster.Parties[f.Index].SigningKey)
	if err != nil || !bytes.Equal(k.Public().(ed25519.PublicKey), pinned) {
		return nil, fmt.Errorf("config: signing key %s is not the one that the roster pins for %s", f.SigningKey, f.Name)
	}
	return k, nil
}

// Pin gives the pinned hash of a parameter set.
func Pin(pins []ParamsPin, name string) ([32]byte, bool) {
	for _, p := range pins {
		if p.Name == name {
			return p.Sum(), true
		}
	}
	return [32]byte{}, false
}
