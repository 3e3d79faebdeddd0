package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ReserveLimits limits the reservations of a client for a tenant. A missing value comes from the
// next more general limits: client, tenant, coordinator, defaults.
type ReserveLimits struct {
	// MaxOpen limits the client's reservations that are open and not delivered by all parties;
	// default 10000.
	MaxOpen int `yaml:"max_open,omitempty"`
	// MaxTuples limits the tuples in these reservations; default 16777216.
	MaxTuples uint64 `yaml:"max_tuples,omitempty"`
	// MaxShare limits these reservations to a fraction of a class, of all tuples in stock or
	// reserved, above 0 and up to 1; default 0.5 for a tenant that several clients reserve for,
	// otherwise 1.
	MaxShare float64 `yaml:"max_share,omitempty"`
	// MaxLease is the longest lease of a reservation, up to 168h; default 4h.
	MaxLease Duration `yaml:"max_lease,omitempty"`
	// PerSecond is the sustained rate of reservations that the client does not fetch; default 5.
	PerSecond float64 `yaml:"per_second,omitempty"`
	// Burst is the number of these that the client may make at once; default 500.
	Burst int `yaml:"burst,omitempty"`
}

// defaultReservations are chosen so that a client that only reserves and releases grows no store by
// more than a few dozen megabytes: a party remembers a released reservation for an hour after its
// lease, so 5 a second with leases of four hours are at most 90,000 records.
var defaultReservations = ReserveLimits{
	MaxOpen: 10_000, MaxTuples: 1 << 24, MaxShare: 1, MaxLease: Duration(4 * time.Hour), PerSecond: 5, Burst: 500,
}

// sharedTenant is the default MaxShare where several clients reserve for a tenant: no client can
// reserve all stock, so the others are served however often it reserves.
const sharedTenant = 0.5

// longestLease is the longest lease that parties accept.
const longestLease = Duration(7 * 24 * time.Hour)

// or returns l with missing values taken from more.
func (l ReserveLimits) or(more ReserveLimits) ReserveLimits {
	return ReserveLimits{
		MaxOpen: cmp.Or(l.MaxOpen, more.MaxOpen), MaxTuples: cmp.Or(l.MaxTuples, more.MaxTuples), MaxShare: cmp.Or(l.MaxShare, more.MaxShare),
		MaxLease: cmp.Or(l.MaxLease, more.MaxLease), PerSecond: cmp.Or(l.PerSecond, more.PerSecond), Burst: cmp.Or(l.Burst, more.Burst),
	}
}

// ReserveLimits returns the limits of a client that reserves for a tenant.
func (f *CoordinatorFile) ReserveLimits(client, tenant string) ReserveLimits {
	var own ReserveLimits
	reserving := 0
	for i := range f.Clients {
		c := &f.Clients[i]
		if c.Name == client && c.Reservations != nil {
			own = *c.Reservations
		}
		if slices.Contains(c.Permissions, PermReserve) && slices.Contains(c.Tenants, tenant) {
			reserving++
		}
	}
	last := defaultReservations
	//lodge:check config/reserve-shared run=TestReserveShared one of several clients of a tenant reserves all of its stock
	if reserving > 1 {
		last.MaxShare = sharedTenant
	}
	return own.or(f.TenantReservations[tenant]).or(f.Reservations).or(last)
}

// reservations validates all limits on reservations.
func (c *check) reservations(f *CoordinatorFile) {
	c.reserveLimits("reservations", f.Reservations)
	for _, tenant := range slices.Sorted(maps.Keys(f.TenantReservations)) {
		c.name("tenant_reservations", tenant)
		c.reserveLimits("tenant_reservations."+tenant, f.TenantReservations[tenant])
	}
	for i := range f.Clients {
		if l := f.Clients[i].Reservations; l != nil {
			c.reserveLimits(fmt.Sprintf("clients[%d].reservations", i), *l)
		}
	}
}

func (c *check) reserveLimits(key string, l ReserveLimits) {
	if l.MaxOpen < 0 || l.Burst < 0 || l.Burst > maxBurst {
		c.failf("%s: max_open and burst must be positive, and burst at most %d", key, maxBurst)
	}
	if !(l.MaxShare >= 0 && l.MaxShare <= 1) {
		c.failf("%s.max_share: %g; must be above 0 and at most 1", key, l.MaxShare)
	}
	if l.MaxLease < 0 || l.MaxLease > longestLease {
		c.failf("%s.max_lease: %s; parties accept at most %s", key, time.Duration(l.MaxLease), time.Duration(longestLease))
	}
	if !(l.PerSecond >= 0 && l.PerSecond <= maxRate) {
		c.failf("%s.per_second: %g; must be at most %g", key, l.PerSecond, maxRate)
	}
}
