package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// CoordinatorName names the coordinator where parties are named by the roster.
const CoordinatorName = "coordinator"

// MaxJobs is the most that a coordinator runs at the same time.
const MaxJobs = 16

const (
	defaultJobTimeout = Duration(time.Hour)
	defaultConcurrent = 2
	// A network that is cut for half a minute costs no job: connections are found broken, and made again, within seconds.
	defaultPartyTimeout = Duration(time.Minute)
)

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
	Callers       Callers  `yaml:"callers,omitempty"`
	// Params that jobs may name, with the hash that goes into every session.
	Params []ParamsPin `yaml:"params"`
	// JobTimeout caps every attempt at a job, from its beginning on; default 1 h. A job may have a time of its own, which
	// counts from its submission.
	JobTimeout Duration `yaml:"job_timeout,omitempty"`
	// PartyTimeout is how long a party may be out of reach, when a job begins and in the middle of it; default 1 m.
	PartyTimeout Duration `yaml:"party_timeout,omitempty"`
	// StopAfter is how long jobs that run may go on when the process is told to stop; default 20 s.
	StopAfter Duration `yaml:"stop_after,omitempty"`
	// LogLevel is one of logs.Levels, until it is changed in the process; default info.
	LogLevel string  `yaml:"log_level,omitempty"`
	Tracing  Tracing `yaml:"tracing,omitempty"`
	// MaxConcurrent is how many jobs run at the same time, 1 to MaxJobs; default 2. Parties bound theirs on their own.
	MaxConcurrent int  `yaml:"max_concurrent,omitempty"`
	Reflection    bool `yaml:"reflection,omitempty"`
	// Stock bounds what the policies of the stock make.
	Stock StockLimits `yaml:"stock,omitempty"`
	Disk  Disk        `yaml:"disk,omitempty"`
	// Reservations bound what every client holds of the stock. TenantReservations take their place for a tenant, and those
	// of a client for a client, value by value.
	Reservations       ReserveLimits            `yaml:"reservations,omitempty"`
	TenantReservations map[string]ReserveLimits `yaml:"tenant_reservations,omitempty"`

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
	c.clients(f.Clients, PermStatus, PermSubmit, PermReserve, PermPolicy, PermOperate)
	c.params(f.Params)
	c.oidc(dir, f.OIDC, f.Clients)
	if f.JobTimeout == 0 {
		f.JobTimeout = defaultJobTimeout
	}
	if f.PartyTimeout == 0 {
		f.PartyTimeout = defaultPartyTimeout
	}
	if f.PartyTimeout < 0 {
		c.failf("party_timeout: %s; how long a party may be out of reach, such as 1m", time.Duration(f.PartyTimeout))
	}
	c.callers(f.Callers)
	c.stopAfter(&f.StopAfter)
	c.logLevel(&f.LogLevel)
	c.tracing(dir, &f.Tracing)
	if f.MaxConcurrent == 0 {
		f.MaxConcurrent = defaultConcurrent
	}
	if f.MaxConcurrent < 1 || f.MaxConcurrent > MaxJobs {
		c.failf("max_concurrent: %d; 1 to %d jobs run at the same time", f.MaxConcurrent, MaxJobs)
	}
	c.stock(&f.Stock, f.MaxConcurrent)
	c.reservations(f)
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
