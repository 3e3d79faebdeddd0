package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Limits of a client override those of a tenant, which override those of all, which override the
// defaults. An error about an invalid limit names its key.
func TestReserveLimits(t *testing.T) {
	f := &CoordinatorFile{
		Reservations:       ReserveLimits{MaxOpen: 5, MaxLease: Duration(time.Hour), PerSecond: 7},
		TenantReservations: map[string]ReserveLimits{"t": {MaxOpen: 6, MaxTuples: 60}},
		Clients:            []Client{{Name: "c", Reservations: &ReserveLimits{MaxTuples: 70}}},
	}
	d := defaultReservations
	for _, c := range []struct {
		client, tenant string
		want           ReserveLimits
	}{
		{"c", "t", ReserveLimits{6, 70, d.MaxShare, Duration(time.Hour), 7, d.Burst}},
		{"c", "u", ReserveLimits{5, 70, d.MaxShare, Duration(time.Hour), 7, d.Burst}},
		{"x", "t", ReserveLimits{6, 60, d.MaxShare, Duration(time.Hour), 7, d.Burst}},
		{"x", "u", ReserveLimits{5, d.MaxTuples, d.MaxShare, Duration(time.Hour), 7, d.Burst}},
	} {
		if got := f.ReserveLimits(c.client, c.tenant); got != c.want {
			t.Errorf("%s for %s: %+v, want %+v", c.client, c.tenant, got, c.want)
		}
	}
	if got := new(CoordinatorFile).ReserveLimits("c", "t"); got != defaultReservations {
		t.Errorf("without any: %+v", got)
	}
	dir := t.TempDir()
	bad := "reservations: {max_open: -1, max_share: 1.5, max_lease: 200h, per_second: -1}\ntenant_reservations: {t: {burst: -1}}\n"
	path := filepath.Join(dir, "coordinator.yaml")
	if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadCoordinator(path)
	for _, want := range []string{"reservations: max_open", "max_share", "max_lease", "per_second", "tenant_reservations.t"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s: %v", want, err)
		}
	}
}

// By default a client cannot reserve the whole stock of a tenant if and only if another client may
// reserve for that tenant.
func TestReserveShared(t *testing.T) {
	f := &CoordinatorFile{Clients: []Client{
		{Name: "c", Permissions: []string{PermReserve}, Tenants: []string{"t", "u"}},
		{Name: "d", Permissions: []string{PermReserve}, Tenants: []string{"t"}},
		{Name: "e", Permissions: []string{PermSubmit}, Tenants: []string{"u"}},
	}}
	for tenant, want := range map[string]float64{"t": 0.5, "u": 1} {
		if got := f.ReserveLimits("c", tenant).MaxShare; got != want {
			t.Errorf("tenant %s: a share of %g, want %g", tenant, got, want)
		}
	}
	f.TenantReservations = map[string]ReserveLimits{"t": {MaxShare: 0.8}}
	if got := f.ReserveLimits("d", "t").MaxShare; got != 0.8 {
		t.Errorf("a share of %g although the configuration says 0.8", got)
	}
}
