package config

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/lodge-mpc/lodge/services/pki"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// MaxParties is the most that a roster holds.
const MaxParties = 64

// Roster is who takes part. Everybody pins the same one.
type Roster struct {
	Parties     []Member    `yaml:"parties"`
	Coordinator Coordinator `yaml:"coordinator"`
}

// Member is one party of the roster; its ID is its index.
type Member struct {
	ID         int    `yaml:"id"`
	Name       string `yaml:"name"`
	Address    string `yaml:"address"`     // host:port of its gRPC server
	Identity   string `yaml:"identity"`    // URI or DNS name in its certificate
	SigningKey string `yaml:"signing_key"` // Ed25519, 32 bytes in base64
}

// Coordinator is who may ask parties for sessions.
type Coordinator struct {
	Address  string `yaml:"address"`
	Identity string `yaml:"identity"`
}

// LoadRoster reads and checks a roster.
func LoadRoster(path string) (*Roster, error) {
	r := new(Roster)
	if err := decode(path, r); err != nil {
		return nil, err
	}
	c := new(check)
	r.validate(c)
	if err := c.err(path); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Roster) validate(c *check) {
	if len(r.Parties) < 2 || len(r.Parties) > MaxParties {
		c.failf("parties: %d of them; a roster has 2 to %d", len(r.Parties), MaxParties)
	}
	seen := map[string]string{}
	once := func(key, kind, v string) {
		if other, ok := seen[kind+v]; ok {
			c.failf("%s: %q is also %s", key, v, other)
		}
		seen[kind+v] = key
	}
	for i, p := range r.Parties {
		key := fmt.Sprintf("parties[%d]", i)
		if p.ID != i {
			c.failf("%s.id: %d; ids run from 0 in order", key, p.ID)
		}
		c.name(key+".name", p.Name)
		once(key+".name", "name", p.Name)
		c.address(key+".address", p.Address, false)
		if p.Identity == "" {
			c.failf("%s.identity: missing; write the URI or DNS name of the party's certificate", key)
		}
		once(key+".identity", "identity", p.Identity)
		if _, err := pki.ParsePublic(p.SigningKey); err != nil {
			c.failf("%s.signing_key: not 32 bytes in base64", key)
		}
		once(key+".signing_key", "key", p.SigningKey)
	}
	if r.Coordinator.Identity == "" {
		c.failf("coordinator.identity: missing; write the URI or DNS name of the coordinator's certificate")
	}
	once("coordinator.identity", "identity", r.Coordinator.Identity)
	c.address("coordinator.address", r.Coordinator.Address, false)
}

// Hash binds what parties must agree on: ids, names, certificate identities and
// signing keys, and the coordinator's identity. Addresses are a matter of routing.
func (r *Roster) Hash() [32]byte {
	h := sha256.New()
	put := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	put("lodge roster v1")
	for _, p := range r.Parties {
		put(fmt.Sprint(p.ID))
		put(p.Name)
		put(p.Identity)
		put(p.SigningKey)
	}
	put(r.Coordinator.Identity)
	return [32]byte(h.Sum(nil))
}

// Index of the party with this name.
func (r *Roster) Index(name string) (int, bool) {
	for i, p := range r.Parties {
		if p.Name == name {
			return i, true
		}
	}
	return 0, false
}

// SigningKeys of all parties by index; the roster has been validated.
func (r *Roster) SigningKeys() []ed25519.PublicKey {
	keys := make([]ed25519.PublicKey, len(r.Parties))
	for i, p := range r.Parties {
		keys[i], _ = pki.ParsePublic(p.SigningKey)
	}
	return keys
}

// directory lists who may call a process of this roster.
func (r *Roster) directory(self string, clients []Client) (*rpc.Directory, error) {
	d := rpc.NewDirectory()
	for i, p := range r.Parties {
		role := rpc.Peer
		if p.Name == self {
			role = rpc.Self
		}
		if err := d.Add(p.Identity, rpc.Principal{Role: role, Name: p.Name, Party: i}); err != nil {
			return nil, err
		}
	}
	role := rpc.Coordinator
	if self == CoordinatorName {
		role = rpc.Self
	}
	if err := d.Add(r.Coordinator.Identity, rpc.Principal{Role: role, Name: CoordinatorName, Party: -1}); err != nil {
		return nil, err
	}
	for _, c := range clients {
		if err := c.add(d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// CoordinatorName names the coordinator where parties are named by the roster.
const CoordinatorName = "coordinator"

// MaxJobs is the most that a coordinator runs at the same time.
const MaxJobs = 16

const defaultConcurrent = 2

// CoordinatorFile is the configuration of the coordinator's process.
type CoordinatorFile struct {
	RosterFile    string   `yaml:"roster"`
	Listen        string   `yaml:"listen"`
	MetricsListen string   `yaml:"metrics_listen,omitempty"`
	HealthListen  string   `yaml:"health_listen,omitempty"` // plaintext; see HealthAddress
	TLS           TLS      `yaml:"tls"`
	OIDC          *OIDC    `yaml:"oidc,omitempty"`
	DataDir       string   `yaml:"data_dir"`
	Clients       []Client `yaml:"clients"`
	// Params that jobs may name, with the hash that goes into every session.
	Params []ParamsPin `yaml:"params"`
	// JobTimeout caps every attempt at a job, from its beginning on; default 1 h. A job may have a time of its own, which
	// counts from its submission.
	JobTimeout Duration `yaml:"job_timeout,omitempty"`
	// MaxConcurrent is how many jobs run at the same time, 1 to MaxJobs; default 2. Parties bound theirs on their own.
	MaxConcurrent int  `yaml:"max_concurrent,omitempty"`
	Reflection    bool `yaml:"reflection,omitempty"`
	// Stock bounds what the policies of the stock make.
	Stock StockLimits `yaml:"stock,omitempty"`

	Roster   *Roster   `yaml:"-"`
	Settings []Setting `yaml:"-"` // that took the place of the file's values
}

// StockLimits bound what the policies of the stock make. Jobs of clients are beside them.
type StockLimits struct {
	// MaxBytesPerParty is how much tuples take at a party, made by anybody, before policies make no more; default 16GiB.
	MaxBytesPerParty Bytes `yaml:"max_bytes_per_party,omitempty"`
	// MaxJobMemory is the estimated peak at a party of the largest job that a policy makes; default 8GiB.
	MaxJobMemory Bytes `yaml:"max_job_memory,omitempty"`
	// MaxJobs of policies that run or wait at the same time, 1 to MaxJobs; default max_concurrent.
	MaxJobs int `yaml:"max_jobs,omitempty"`
}

// StockName is who submits the jobs of policies; no client has this name.
const StockName = "stock"

const (
	defaultStockBytes     = Bytes(16 << 30)
	defaultStockJobMemory = Bytes(8 << 30)
)

// stock fills in and checks the limits of policies.
func (c *check) stock(l *StockLimits, concurrent int) {
	if l.MaxBytesPerParty == 0 {
		l.MaxBytesPerParty = defaultStockBytes
	}
	if l.MaxJobMemory == 0 {
		l.MaxJobMemory = defaultStockJobMemory
	}
	if l.MaxJobs == 0 {
		l.MaxJobs = min(max(1, concurrent), MaxJobs)
	}
	if l.MaxJobs < 1 || l.MaxJobs > MaxJobs {
		c.failf("stock.max_jobs: %d; 1 to %d jobs of policies run or wait at the same time", l.MaxJobs, MaxJobs)
	}
}

// LoadCoordinator reads and checks the coordinator's file, with the environment's settings and then these, and its roster.
func LoadCoordinator(path string, set ...string) (*CoordinatorFile, error) {
	f := new(CoordinatorFile)
	var err error
	if f.Settings, err = decodeSet(path, f, set); err != nil {
		return nil, err
	}
	c, dir := new(check), filepath.Dir(path)
	c.path(dir, "roster", &f.RosterFile, false)
	c.path(dir, "data_dir", &f.DataDir, false)
	c.address("listen", f.Listen, false)
	c.address("metrics_listen", f.MetricsListen, true)
	c.address("health_listen", f.HealthListen, true)
	c.tls(dir, &f.TLS)
	c.clients(f.Clients, PermStatus, PermSubmit, PermReserve, PermPolicy)
	c.params(f.Params)
	c.oidc(dir, f.OIDC, f.Clients)
	if f.JobTimeout == 0 {
		f.JobTimeout = defaultJobTimeout
	}
	if f.MaxConcurrent == 0 {
		f.MaxConcurrent = defaultConcurrent
	}
	if f.MaxConcurrent < 1 || f.MaxConcurrent > MaxJobs {
		c.failf("max_concurrent: %d; 1 to %d jobs run at the same time", f.MaxConcurrent, MaxJobs)
	}
	c.stock(&f.Stock, f.MaxConcurrent)
	for i, cl := range f.Clients {
		if cl.Name == StockName {
			c.failf("clients[%d].name: %q is the name under which policies submit jobs", i, cl.Name)
		}
	}
	if err := c.err(path); err != nil {
		return nil, err
	}
	if f.Roster, err = LoadRoster(f.RosterFile); err != nil {
		return nil, err
	}
	if _, err = f.Directory(); err != nil {
		return nil, fmt.Errorf("config: %s: %w", path, err)
	}
	return f, nil
}

// Directory of those who may call the coordinator. Parties do not.
func (f *CoordinatorFile) Directory() (*rpc.Directory, error) {
	return f.Roster.directory(CoordinatorName, f.Clients)
}

// Tenants are those that a client acts for.
func (f *CoordinatorFile) Tenants() (list []string) {
	for _, c := range f.Clients {
		for _, t := range c.Tenants {
			if !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}
