package main

import (
	"path/filepath"
	"testing"
)

// A reservation that all parties delivered is consumed, in lists and in the stock, before its lease ends.
func TestDelivered(t *testing.T) {
	l := startLive(t)
	dir := t.TempDir()
	id := read[reservationRecord](l, append([]string{"reserve", "--count", "40"}, class()...)...).ID
	other := read[reservationRecord](l, append([]string{"reserve", "--count", "7"}, class()...)...).ID
	type reservations struct {
		Reservations []reservationRecord `json:"reservations"`
	}
	state := func(id string) (found reservationRecord) {
		for _, r := range read[reservations](l, "reservations", "list", "--open").Reservations {
			if r.ID == id {
				found = r
			}
		}
		return found
	}
	stock := func() StockLevel { return *read[stockList](l, "stock").Stock[0].StockLevel }
	l.eventually(func() bool { return stock().Reserved == 47 })

	l.ok("fetch", id, "--party", "p0", "--out", filepath.Join(dir, "p0"))
	if r := state(id); r.State != "reserved" {
		t.Errorf("delivered by one of two parties: %+v", r)
	}
	l.ok("fetch", id, "--party", "p1", "--out", filepath.Join(dir, "p1"))
	if r := state(id); r.State != "consumed" || r.Client != "client-p0,client-p1" || r.Delivered == "" || r.Lease == "" {
		t.Errorf("delivered: %+v", r)
	}
	if r := state(other); r.State != "reserved" || r.Client != "" {
		t.Errorf("another: %+v", r)
	}
	l.eventually(func() bool { x := stock(); return x.Reserved == 7 && x.Consumed == 40 })
	l.shows([]string{"reservations", "list"}, "consumed  scalar", "client-p0,client-p1\n")
	l.shows([]string{"reservations", "show", id}, "state        consumed", "fetched by   client-p0,client-p1")
	l.shows([]string{"release", id, "--dry-run"}, "all parties have delivered their shares, so the tuples of this reservation would be erased")
	l.shows([]string{"release", id}, "is over; its shares are erased, or will be")
	if r := state(id); r.State != "" {
		t.Errorf("an open one: %+v", r)
	}
	l.shows([]string{"reservations", "show", id}, "state        erased", "fetched by   client-p0,client-p1")
	l.eventually(func() bool { x := stock(); return x.Reserved == 7 && x.Consumed == 40 })
}
