package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// CoordinatorName is the coordinator's name. No party may have it.
const CoordinatorName = "coordinator"

// MaxJobs is the largest number of jobs that a coordinator runs concurrently.
const MaxJobs = 16

const (
	defaultJobTimeout = Duration(time.Hour)
	defaultConcurrent = 2
	// Long enough to survive a network outage of 30 s: broken connections are detected and
	// re-established within seconds.
	defaultPartyTimeout = Duration(time.Minute)
)

// CoordinatorFile is the coordinator's configuration.
type CoordinatorFile struct {
	RosterFile    string   `yaml:"roster"`                   // roster file, the same at every process
	Listen        string   `yaml:"listen"`                   // host:port of the gRPC server
	MetricsListen string   `yaml:"metrics_listen,omitempty"` // host:port of Prometheus metrics, plaintext
	HealthListen  string   `yaml:"health_listen,omitempty"`  // host:port of the health check, plaintext
	TLS           TLS      `yaml:"tls"`
	OIDC          *OIDC    `yaml:"oidc,omitempty"`
	DataDir       string   `yaml:"data_dir"` // directory of jobs and stock records
	Clients       []Client `yaml:"clients"`
	Callers       Callers  `yaml:"callers,omitempty"`
	// Params are the parameter sets that jobs may name, with the hash that goes into every session.
	Params []ParamsPin `yaml:"params"`
	// JobTimeout limits every attempt at a job, counted from its start; default 1h.
	JobTimeout Duration `yaml:"job_timeout,omitempty"`
	// PartyTimeout is how long a party may be unreachable before or during a job; default 1m.
	PartyTimeout Duration `yaml:"party_timeout,omitempty"`
	// StopAfter is how long running work may continue when the process is told to stop; default
	// 20s.
	StopAfter Duration `yaml:"stop_after,omitempty"`
	// LogLevel is debug, info, warn or error; default info.
	LogLevel string  `yaml:"log_level,omitempty"`
	Tracing  Tracing `yaml:"tracing,omitempty"`
	// MaxConcurrent is the number of concurrent jobs, 1 to 16; default 2. Parties have separate
	// limits.
	MaxConcurrent int  `yaml:"max_concurrent,omitempty"`
	Reflection    bool `yaml:"reflection,omitempty"` // serve gRPC reflection
	// Stock limits the jobs of stock policies.
	Stock StockLimits `yaml:"stock,omitempty"`
	Disk  Disk        `yaml:"disk,omitempty"`
	// Reservations limit the stock that every client holds. TenantReservations override them for a
	// tenant, and those of a client for a client, value by value.
	Reservations ReserveLimits `yaml:"reservations,omitempty"`
	// TenantReservations overrides reservations for a tenant.
	TenantReservations map[string]ReserveLimits `yaml:"tenant_reservations,omitempty"`

	Roster   *Roster   `yaml:"-"`
	Settings []Setting `yaml:"-"` // settings that override the file's values
}

// StockLimits limits the jobs of stock policies. Jobs of clients are not counted.
type StockLimits struct {
	// MaxBytesPerParty limits the tuples at a party, including those of clients' jobs, up to which
	// policies make more; default 16GiB.
	MaxBytesPerParty Bytes `yaml:"max_bytes_per_party,omitempty"`
	// MaxJobMemory limits the estimated peak memory at a party of a policy's job; default 8GiB.
	MaxJobMemory Bytes `yaml:"max_job_memory,omitempty"`
	// MaxJobs limits the jobs of policies that run or wait, 1 to 16; default max_concurrent.
	MaxJobs int `yaml:"max_jobs,omitempty"`
}

// StockName is the submitter's name of policies' jobs. No client may have it.
const StockName = "stock"

const (
	defaultStockBytes     = Bytes(16 << 30)
	defaultStockJobMemory = Bytes(8 << 30)
)

// stock sets defaults and validates the limits of policies.
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
		c.failf("stock.max_jobs: %d; must be 1 to %d jobs of policies that run or wait", l.MaxJobs, MaxJobs)
	}
}

// LoadCoordinator reads and validates the coordinator's file and its roster. Settings of the
// environment override the file, and set (KEY=VALUE) overrides both.
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
		c.failf("party_timeout: %s; write how long a party may be unreachable, such as 1m", time.Duration(f.PartyTimeout))
	}
	c.callers(f.Callers)
	c.stopAfter(&f.StopAfter)
	c.logLevel(&f.LogLevel)
	c.tracing(dir, &f.Tracing)
	if f.MaxConcurrent == 0 {
		f.MaxConcurrent = defaultConcurrent
	}
	if f.MaxConcurrent < 1 || f.MaxConcurrent > MaxJobs {
		c.failf("max_concurrent: %d; must be 1 to %d concurrent jobs", f.MaxConcurrent, MaxJobs)
	}
	c.stock(&f.Stock, f.MaxConcurrent)
	c.reservations(f)
	for i, cl := range f.Clients {
		if cl.Name == StockName {
			c.failf("clients[%d].name: %q is reserved for the jobs of policies", i, cl.Name)
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

// Directory returns the clients that may call the coordinator. Parties may not.
func (f *CoordinatorFile) Directory() (*rpc.Directory, error) {
	return f.Roster.directory(CoordinatorName, f.Clients)
}

// Tenants returns the tenants of the coordinator's clients.
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
