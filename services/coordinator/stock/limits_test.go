package stock

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

func reserved(id, owner, field string, count uint64, lease time.Time) *tuplesv1.Reservation {
	return &tuplesv1.Reservation{Id: id, Owner: owner, Count: count, Class: &tuplesv1.Class{Tenant: "t", Kind: jobv1.Kind_KIND_SCALAR, Field: field},
		Lease: timestamppb.New(lease), State: tuplesv1.ReservationState_RESERVATION_STATE_RESERVED}
}

// Each limit rejects requests beyond it with its code, reports the usage and when to try again, and
// applies to one client only. Delivered, ended and refused reservations do not count.
func TestReserveLimits(t *testing.T) {
	now := time.Now()
	end := now.Add(time.Minute)
	over := func(name string, e *refusal, code rpc.Code, retry bool) {
		t.Helper()
		if e == nil || e.Code != code || e.Next == "" || retry != (e.Retry > 0) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	fine := func(name string, e *refusal) {
		t.Helper()
		if e != nil {
			t.Errorf("%s: %v", name, e.Error)
		}
	}
	with := func(x Limits) *limiter {
		l := newLimiter()
		l.of = func(client, _ string) Limits {
			if client == "free" {
				return Limits{}
			}
			return x
		}
		return l
	}
	l := with(Limits{Open: 2})
	fine("first", l.take(reserved("1", "c", "p64", 1, end), 9, now))
	fine("second", l.take(reserved("2", "c", "p64", 1, end), 9, now))
	over("open", l.take(reserved("3", "c", "p64", 1, end), 9, now), rpc.OverQuota, true)
	fine("another client", l.take(reserved("4", "d", "p64", 1, end), 9, now))
	for i := range 5 {
		fine("without limits", l.take(reserved(fmt.Sprint("f", i), "free", "p64", 1, end), 9, now))
	}
	l.drop("1")
	fine("after one was dropped", l.take(reserved("3", "c", "p64", 1, end), 9, now))

	l = with(Limits{Tuples: 10})
	fine("some", l.take(reserved("1", "c", "p64", 7, end), 99, now))
	over("tuples", l.take(reserved("2", "c", "p128", 4, end), 99, now), rpc.OverQuota, true)
	over("too many at once", l.take(reserved("2", "c", "p128", 1<<63, end), 99, now), rpc.OverQuota, true)
	fine("up to the limit", l.take(reserved("2", "c", "p128", 3, end), 99, now))

	l = with(Limits{Share: 0.5})
	fine("half", l.take(reserved("1", "c", "p64", 50, end), 50, now))
	over("more than half", l.take(reserved("2", "c", "p64", 1, end), 49, now), rpc.OverQuota, true)
	fine("of another class", l.take(reserved("3", "c", "p128", 1, end), 9, now))
	fine("another client's half", l.take(reserved("4", "d", "p64", 50, end), 0, now))

	l = with(Limits{Lease: time.Hour})
	fine("an hour", l.lease(owner{"c", "t"}, time.Hour))
	over("lease", l.lease(owner{"c", "t"}, time.Hour+1), rpc.OverQuota, false)
	fine("a lease without limits", l.lease(owner{"free", "t"}, maxLease))

	l = with(Limits{Share: 0.5})
	over("more than half, of a client that holds nothing", l.take(reserved("1", "c", "p64", 51, end), 49, now), rpc.OverQuota, false)

	l = with(Limits{PerSecond: 2, Burst: 3})
	made := 0
	one := func(client string, at time.Time) *refusal {
		made++
		return l.take(reserved(fmt.Sprint(made), client, "p64", 1, end), 9, at)
	}
	for range 3 {
		fine("burst", one("c", now))
	}
	over("rate", one("c", now), rpc.RateLimited, true)
	fine("another client's", one("d", now))
	half := now.Add(500 * time.Millisecond)
	fine("later", one("c", half))
	over("rate again", one("c", half), rpc.RateLimited, true)
	l.drop("1")
	over("releasing gives nothing back", one("c", half), rpc.RateLimited, true)
	l.delivered("2")
	fine("after a delivery", one("c", half))
	l.delivered("2")
	over("one delivery counts once", one("c", half), rpc.RateLimited, true)
}

// A client whose requests are refused again and again does not make the coordinator ask the parties
// each time.
func TestAskedSeldom(t *testing.T) {
	l, o, now := newLimiter(), owner{"c", "t"}, time.Now()
	for i := range 5 {
		l.add(fmt.Sprint(i), holdOf(reserved(fmt.Sprint(i), "c", "p64", 1, now)))
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 3}, {askEvery - 1, 0}, {askEvery, 3}, {askEvery + 1, 0}} {
		if ids := l.ask(o, 3, now.Add(c.after)); len(ids) != c.want {
			t.Errorf("after %s: %d are asked about, want %d", c.after, len(ids), c.want)
		}
	}
}

func testRecords(t *testing.T) (*records, store.Store) {
	t.Helper()
	in, err := store.OpenDir(t.TempDir() + "/stock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return &records{in}, in
}

// A restarted coordinator knows the reservations that clients hold.
func TestHoldsAfterRestart(t *testing.T) {
	r, in := testRecords(t)
	end := time.Now().Add(time.Hour)
	for i, state := range []tuplesv1.ReservationState{
		tuplesv1.ReservationState_RESERVATION_STATE_RESERVED, tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED, tuplesv1.ReservationState_RESERVATION_STATE_RESERVED,
	} {
		x := reserved(fmt.Sprint("r", i), "c", "p64", 3, end)
		x.State = state
		if err := r.add(x, "", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	s := OpenIn(in, nil, slog.New(slog.DiscardHandler))
	s.limits.of = func(string, string) Limits { return Limits{Open: 2} }
	if err := s.admit(t.Context(), reserved("new", "c", "p64", 1, end)); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.OverQuota {
		t.Errorf("%v", err)
	}
}

// Repeated releases do not make the records grow. Of the released reservations, compact keeps the
// newest, those with an idempotency key while their lease lasts, and those whose proposal may still
// reach a party. It deletes no delivered or open reservation.
func TestCompact(t *testing.T) {
	r, _ := testRecords(t)
	now := time.Now()
	add := func(id, key string, state tuplesv1.ReservationState, lease time.Duration, due bool) {
		t.Helper()
		x := reserved(id, "c", "p64", 1, now.Add(lease))
		if err := r.add(x, key, now.Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
		if x.State = state; state != tuplesv1.ReservationState_RESERVATION_STATE_RESERVED {
			if _, err := r.end(x, due); err != nil {
				t.Fatal(err)
			}
		}
	}
	const released, erased, open = tuplesv1.ReservationState_RESERVATION_STATE_RELEASED, tuplesv1.ReservationState_RESERVATION_STATE_ERASED, tuplesv1.ReservationState_RESERVATION_STATE_RESERVED
	add("zzopen", "", open, time.Hour, false)
	add("zzerased", "", erased, time.Hour, false)
	add("zzdue", "", released, time.Hour, true)
	add("zzkeyed", "c/k", released, time.Hour, false)
	add("zzkeyedover", "c/l", released, -time.Second, false)
	for round := range 6 {
		for i := range 500 {
			add(fmt.Sprintf("z%d-%03d", round, i), "", released, time.Hour, false)
		}
		if _, err := r.compact(now, 10); err != nil {
			t.Fatal(err)
		}
	}
	left := 0
	err := r.newest("", func(_ string, x *tuplesv1.Reservation) bool {
		left++
		return true
	})
	if err != nil || left > 10+4 {
		t.Errorf("%d are kept, %v", left, err)
	}
	for _, id := range []string{"zzopen", "zzerased", "zzdue", "zzkeyed"} {
		if _, err := r.get(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if x, err := r.keyed("c/k"); err != nil || x.GetId() != "zzkeyed" {
		t.Errorf("the key returns %v, %v", x, err)
	}
	if ids, err := r.due(now.Add(2*time.Hour), 100); err != nil || len(ids) != 2 {
		t.Errorf("due are %q, %v", ids, err)
	}
}
