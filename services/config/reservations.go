package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ReserveLimits bound what a client holds of the stock for a tenant. A value that is left out is that of the next more
// general limits, and in the end the default.
type ReserveLimits struct {
	// MaxOpen is how many reservations may be open that not all parties have delivered; default 10000.
	MaxOpen int `yaml:"max_open,omitempty"`
	// MaxTuples is how many tuples these hold; default 16777216.
	MaxTuples uint64 `yaml:"max_tuples,omitempty"`
	// MaxShare is what part these hold of the tuples of a class that are in stock or reserved, above 0 and up to 1; default 1.
	MaxShare float64 `yaml:"max_share,omitempty"`
	// MaxLease of a reservation, up to 168h; default 4h.
	MaxLease Duration `yaml:"max_lease,omitempty"`
	// PerSecond is how often the client may ask for a reservation, in the long run; default 100.
	PerSecond float64 `yaml:"per_second,omitempty"`
	// Burst is how often it may at once; default 1000.
	Burst int `yaml:"burst,omitempty"`
}

var defaultReservations = ReserveLimits{
	MaxOpen: 10_000, MaxTuples: 1 << 24, MaxShare: 1, MaxLease: Duration(4 * time.Hour), PerSecond: 100, Burst: 1000,
}

// longestLease is what parties accept.
const longestLease = Duration(7 * 24 * time.Hour)

// or fills in what is left out.
func (l ReserveLimits) or(more ReserveLimits) ReserveLimits {
	return ReserveLimits{
		MaxOpen: cmp.Or(l.MaxOpen, more.MaxOpen), MaxTuples: cmp.Or(l.MaxTuples, more.MaxTuples), MaxShare: cmp.Or(l.MaxShare, more.MaxShare),
		MaxLease: cmp.Or(l.MaxLease, more.MaxLease), PerSecond: cmp.Or(l.PerSecond, more.PerSecond), Burst: cmp.Or(l.Burst, more.Burst),
	}
}

// ReserveLimits are those of a client that reserves for a tenant.
func (f *CoordinatorFile) ReserveLimits(client, tenant string) ReserveLimits {
	var own ReserveLimits
	for i := range f.Clients {
		if f.Clients[i].Name == client && f.Clients[i].Reservations != nil {
			own = *f.Clients[i].Reservations
		}
	}
	return own.or(f.TenantReservations[tenant]).or(f.Reservations).or(defaultReservations)
}

// reservations checks all limits on reservations.
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
		c.failf("%s: max_open and burst are positive, and burst is at most %d", key, maxBurst)
	}
	if !(l.MaxShare >= 0 && l.MaxShare <= 1) {
		c.failf("%s.max_share: %g; write a part above 0 and up to 1", key, l.MaxShare)
	}
	if l.MaxLease < 0 || l.MaxLease > longestLease {
		c.failf("%s.max_lease: %s; parties accept at most %s", key, time.Duration(l.MaxLease), time.Duration(longestLease))
	}
	if !(l.PerSecond >= 0 && l.PerSecond <= maxRate) {
		c.failf("%s.per_second: %g; write a rate up to %g", key, l.PerSecond, maxRate)
	}
}
