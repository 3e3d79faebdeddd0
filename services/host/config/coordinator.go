package config

import (
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// CoordinatorName is the coordinator's name. No party may have it.
const CoordinatorName = "coordinator"

// MaxJobs is the largest number of jobs that a coordinator runs concurrently.
const MaxJobs = 16

// CoordinatorFile is the coordinator's configuration.
type CoordinatorFile struct {
	RosterFile    string   `yaml:"roster" check:"path"`                       // roster file, the same at every process
	Listen        string   `yaml:"listen" check:"address"`                    // host:port of the gRPC server
	MetricsListen string   `yaml:"metrics_listen,omitempty" check:"address?"` // host:port of Prometheus metrics, plaintext
	HealthListen  string   `yaml:"health_listen,omitempty" check:"address?"`  // host:port of the health check, plaintext
	TLS           TLS      `yaml:"tls"`
	OIDC          *OIDC    `yaml:"oidc,omitempty"`
	DataDir       string   `yaml:"data_dir" check:"path"` // directory of jobs and stock records
	Clients       []Client `yaml:"clients"`
	Callers       Callers  `yaml:"callers,omitempty"`
	// Params are the parameter sets that jobs may name, with the hash that goes into every session.
	Params []ParamsPin `yaml:"params"`
	// JobTimeout limits every attempt at a job, counted from its start; default 1h.
	JobTimeout Duration `yaml:"job_timeout,omitempty" default:"1h"`
	// PartyTimeout is how long a party may be unreachable before or during a job; default 1m, so
	// that a network outage of 30s costs no job.
	PartyTimeout Duration `yaml:"party_timeout,omitempty" default:"1m"`
	// StopAfter is how long running work may continue when the process is told to stop; default
	// 20s.
	StopAfter Duration `yaml:"stop_after,omitempty" default:"20s"`
	// LogLevel is debug, info, warn or error; default info.
	LogLevel string  `yaml:"log_level,omitempty" default:"info" oneof:"debug,info,warn,error"`
	Tracing  Tracing `yaml:"tracing,omitempty"`
	Console  Console `yaml:"console,omitempty"`
	// MaxConcurrent is the number of concurrent jobs, 1 to 16; default 2. Parties have separate
	// limits.
	MaxConcurrent int  `yaml:"max_concurrent,omitempty" default:"2" range:"1..16"`
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
	MaxBytesPerParty Bytes `yaml:"max_bytes_per_party,omitempty" default:"16GiB"`
	// MaxJobMemory limits the estimated peak memory at a party of a policy's job; default 8GiB.
	MaxJobMemory Bytes `yaml:"max_job_memory,omitempty" default:"8GiB"`
	// MaxJobs limits the jobs of policies that run or wait, 1 to 16; default max_concurrent.
	MaxJobs int `yaml:"max_jobs,omitempty"`
}

// StockName is the submitter's name of policies' jobs. No client may have it.
const StockName = "stock"

// stock sets the default number of jobs of policies, and validates it.
func (c *check) stock(l *StockLimits, concurrent int) {
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
	c, err := load(path, f, set, &f.Settings)
	if err != nil {
		return nil, err
	}
	c.clients(f.Clients, PermStatus, PermSubmit, PermReserve, PermPolicy, PermOperate)
	c.params(f.Params)
	c.oidc(f.OIDC, f.Clients)
	c.callers(f.Callers)
	c.tracing(&f.Tracing)
	c.console(&f.Console, f.OIDC)
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
