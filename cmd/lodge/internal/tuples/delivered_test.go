package tuples_test

import (
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/tuples"
)

// A reservation that all parties delivered is consumed, in lists and in the stock, before its lease
// ends.
func TestDelivered(t *testing.T) {
	l := lodgetest.Start(t)
	dir := t.TempDir()
	id := lodgetest.Read[tuples.ReservationRecord](l, append([]string{"reserve", "--count", "40"}, lodgetest.Class()...)...).ID
	other := lodgetest.Read[tuples.ReservationRecord](l, append([]string{"reserve", "--count", "7"}, lodgetest.Class()...)...).ID
	type reservations struct {
		Reservations []tuples.ReservationRecord `json:"reservations"`
	}
	state := func(id string) (found tuples.ReservationRecord) {
		for _, r := range lodgetest.Read[reservations](l, "reservations", "list", "--open").Reservations {
			if r.ID == id {
				found = r
			}
		}
		return found
	}
	stock := func() jobs.StockLevel { return *lodgetest.Read[jobs.StockList](l, "stock").Stock[0].StockLevel }
	l.Eventually(func() bool { return stock().Reserved == 47 })

	l.OK("fetch", id, "--party", "p0", "--out", filepath.Join(dir, "p0"))
	if r := state(id); r.State != "reserved" {
		t.Errorf("delivered by one of two parties: %+v", r)
	}
	l.OK("fetch", id, "--party", "p1", "--out", filepath.Join(dir, "p1"))
	if r := state(id); r.State != "consumed" || r.Client != "client-p0,client-p1" || r.Delivered == "" || r.Lease == "" {
		t.Errorf("delivered: %+v", r)
	}
	if r := state(other); r.State != "reserved" || r.Client != "" {
		t.Errorf("another: %+v", r)
	}
	l.Eventually(func() bool { x := stock(); return x.Reserved == 7 && x.Consumed == 40 })
	l.Shows([]string{"reservations", "list"}, "consumed  scalar", "client-p0,client-p1\n")
	l.Shows([]string{"reservations", "show", id}, "state        consumed", "fetched by   client-p0,client-p1")
	l.Shows([]string{"release", id, "--dry-run"}, "all parties have delivered their shares, so the tuples of this reservation would be erased")
	l.Shows([]string{"release", id}, "is over; its shares are erased, or will be")
	if r := state(id); r.State != "" {
		t.Errorf("an open one: %+v", r)
	}
	l.Shows([]string{"reservations", "show", id}, "state        erased", "fetched by   client-p0,client-p1")
	l.Eventually(func() bool { x := stock(); return x.Reserved == 7 && x.Consumed == 40 })
}
