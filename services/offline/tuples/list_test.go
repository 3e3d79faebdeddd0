package tuples

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// reserved records reservations r-00, r-01 and so on at a party, of one tuple of batch b each.
func (x *node) reserved(t *testing.T, count int) {
	t.Helper()
	for i := range count {
		_, err := x.vault.Reserve(reservationOf(reservation(fmt.Sprintf("r-%02d", i), uint64(i), 1)))
		must(t, err)
	}
}

var alice = whose["alice"]

// A page ends at the limits on records, bytes and records read, whatever the request says; and
// going on by next gives every record once.
func TestReservationsInPages(t *testing.T) {
	n := newNet(t)
	x := n.nodes[0]
	x.reserved(t, 30)
	for i := 3; i < 30; i += 10 {
		_, err := x.vault.Withdraw(fmt.Sprintf("r-%02d", i))
		must(t, err)
	}
	withdrawn := []tuplesv1.ReservationState{tuplesv1.ReservationState_RESERVATION_STATE_WITHDRAWN}
	released := []tuplesv1.ReservationState{tuplesv1.ReservationState_RESERVATION_STATE_RELEASED}
	const all = 1000
	for _, c := range []struct {
		name   string
		rest   page
		states []tuplesv1.ReservationState
		pages  string // records on each
	}{
		{"one page", page{records: 30, bytes: all * all, looks: all}, nil, "30"},
		{"records", page{records: 12, bytes: all * all, looks: all}, nil, "12 12 6"},
		{"bytes", page{records: all, bytes: 1, looks: all}, nil, strings.Repeat("1 ", 29) + "1"},
		{"looks", page{records: all, bytes: all * all, looks: 11}, nil, "11 11 8"},
		{"looks at the end", page{records: all, bytes: all * all, looks: 30}, nil, "30"},
		{"few", page{records: all, bytes: all * all, looks: 5}, withdrawn, "1 0 1 0 1 0"},
		{"few of them", page{records: 1, bytes: all * all, looks: 20}, withdrawn, "1 1 1"},
		{"none", page{records: 1, bytes: 1, looks: 10}, released, "0 0 0"},
	} {
		q := &tuplesv1.ListReservationsRequest{States: c.states}
		var pages []string
		last := ""
		for {
			rest := c.rest
			r, err := x.service.reservations(t.Context(), alice, q, &rest)
			must(t, err)
			pages = append(pages, fmt.Sprint(len(r.GetReservations())))
			for _, x := range r.GetReservations() {
				if x.GetId() <= last || c.states != nil && x.GetState() != c.states[0] {
					t.Errorf("%s: %s after %s, %s", c.name, x.GetId(), last, x.GetState())
				}
				last = x.GetId()
			}
			if r.GetNext() == "" {
				break
			}
			if r.GetNext() <= q.GetAfter() {
				t.Fatalf("%s: next is %s after %s", c.name, r.GetNext(), q.GetAfter())
			}
			q.After = r.GetNext()
		}
		if got := strings.Join(pages, " "); got != c.pages {
			t.Errorf("%s: pages of %s, want %s", c.name, got, c.pages)
		}
	}
}

// Large reservations, and batches in many pieces, come in pages that a message takes, over the
// wire.
func TestPagesFitMessages(t *testing.T) {
	n := newNet(t)
	x := n.nodes[0]
	const pieces = maxFree + 10
	x.fill(t, "c", 2*pieces, 32)
	c := n.as("alice", 0)
	var ranges []stock.Range
	for i := range uint64(pieces) {
		ranges = append(ranges, stock.Range{Batch: "c", Span: stock.Span{First: 2 * i, Count: 1}})
	}
	body := reservationOf(reservation("", 0, 1))
	for i := 0; len(ranges) > 0; i++ {
		k := min(len(ranges), stock.MaxRanges)
		body.ID, body.Ranges, ranges = fmt.Sprintf("r-%02d", i), ranges[:k], ranges[k:]
		body.Clients = nil
		for j := range 1000 { // with the longest names there may be
			body.Clients = append(body.Clients, fmt.Sprintf("%d%s", j, strings.Repeat("x", 250)))
		}
		_, err := x.vault.Reserve(body)
		must(t, err)
	}
	list, err := c.ListBatches(n.context(5*time.Second), &tuplesv1.ListBatchesRequest{After: "b", Limit: 1000})
	must(t, err)
	b := list.GetBatches()[0]
	if len(list.GetBatches()) != 1 || len(b.GetFree()) != maxFree || b.GetFree()[0].GetFirst() != 1 || list.GetNext() != "" {
		t.Errorf("%d batches, %d spans, next %q", len(list.GetBatches()), len(b.GetFree()), list.GetNext())
	}
	q := &tuplesv1.ListReservationsRequest{Limit: 1000}
	found, pages := 0, 0
	for {
		r, err := c.ListReservations(n.context(5*time.Second), q)
		must(t, err)
		found, pages = found+len(r.GetReservations()), pages+1
		if q.After = r.GetNext(); q.After == "" {
			break
		}
	}
	if want := pieces/stock.MaxRanges + 1; found != want || pages < 2 {
		t.Errorf("%d reservations on %d pages, want %d", found, pages, want)
	}
}

// Batches in pages, of those that were asked for.
func TestBatchesInPages(t *testing.T) {
	n := newNet(t)
	x := n.nodes[0]
	for _, id := range []string{"c", "d", "e"} {
		x.fill(t, id, 2, 32)
	}
	must(t, x.vault.RevokeBatch("d", "test"))
	available := []tuplesv1.BatchState{tuplesv1.BatchState_BATCH_STATE_AVAILABLE}
	for _, c := range []struct {
		rest page
		q    *tuplesv1.ListBatchesRequest
		want string
	}{
		{page{records: 4, bytes: 1 << 20, looks: 10}, &tuplesv1.ListBatchesRequest{}, "bcde"},
		{page{records: 3, bytes: 1 << 20, looks: 10}, &tuplesv1.ListBatchesRequest{}, "bcd e"},
		{page{records: 9, bytes: 1, looks: 10}, &tuplesv1.ListBatchesRequest{States: available}, "b c e"},
		{page{records: 9, bytes: 1 << 20, looks: 1}, &tuplesv1.ListBatchesRequest{States: available}, "b c  e"},
		{page{records: 9, bytes: 1 << 20, looks: 10}, &tuplesv1.ListBatchesRequest{After: "c"}, "de"},
		{page{records: 9, bytes: 1 << 20, looks: 10}, &tuplesv1.ListBatchesRequest{Epoch: 2}, ""},
	} {
		var pages []string
		for {
			rest := c.rest
			r, err := x.service.batches(t.Context(), alice, c.q, &rest)
			must(t, err)
			ids := ""
			for _, b := range r.GetBatches() {
				ids += b.GetId()
			}
			pages = append(pages, ids)
			if c.q.After = r.GetNext(); c.q.After == "" {
				break
			}
		}
		if got := strings.Join(pages, " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.rest, got, c.want)
		}
	}
	for _, after := range []string{"a\x00", strings.Repeat("x", 1025)} {
		_, err := n.as("alice", 0).ListBatches(n.context(5*time.Second), &tuplesv1.ListBatchesRequest{After: after})
		refusal(t, err, rpc.Invalid)
	}
}
