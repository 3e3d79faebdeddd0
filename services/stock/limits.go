package stock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// Limits bound what one client reserves for one tenant. A zero is no bound.
type Limits struct {
	Open      int           // reservations that are open and that not all parties are known to have delivered
	Tuples    uint64        // of these, in all classes
	Share     float64       // of these, in one class, of all that is there or reserved
	Lease     time.Duration // of one reservation
	PerSecond float64       // attempts to reserve, with Burst at once
	Burst     int
}

// limiter knows what every client holds. It is rebuilt from the records when the coordinator starts.
type limiter struct {
	of func(client, tenant string) Limits // nil: no bounds

	mu      sync.Mutex
	holds   map[string]hold // by reservation
	buckets map[[2]string]*rate.Limiter
}

// hold is an open reservation that is not delivered.
type hold struct {
	client, tenant string
	class          key
	tuples         uint64
	until          time.Time
}

func newLimiter() *limiter {
	return &limiter{holds: map[string]hold{}, buckets: map[[2]string]*rate.Limiter{}}
}

func (l *limiter) limits(client, tenant string) Limits {
	if l.of == nil {
		return Limits{}
	}
	return l.of(client, tenant)
}

// attempt counts an attempt to reserve against the client's rate.
func (l *limiter) attempt(client, tenant string, now time.Time) error {
	x := l.limits(client, tenant)
	if x.PerSecond <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[[2]string{client, tenant}]
	if b == nil {
		b = rate.NewLimiter(rate.Limit(x.PerSecond), max(1, x.Burst))
		l.buckets[[2]string{client, tenant}] = b
	}
	r := b.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	//lodge:check stock/reserve-rate run=TestReserveLimits a client reserves and releases without end, and fills the disks of all parties
	if wait > 0 {
		r.CancelAt(now)
		e := rpc.Errorf(rpc.RateLimited, fmt.Sprintf("try again in %s", wait.Round(time.Millisecond)),
			"client %s may reserve %g times a second for tenant %q, and %d times at once", client, x.PerSecond, tenant, max(1, x.Burst))
		e.Retry = wait
		return e
	}
	return nil
}

// lease checks the length of a lease.
func (l *limiter) lease(client, tenant string, asked time.Duration) error {
	most := l.limits(client, tenant).Lease
	//lodge:check stock/reserve-lease run=TestReserveLimits a client keeps stock from all others for a week
	if most > 0 && asked > most {
		return rpc.Errorf(rpc.OverQuota, fmt.Sprintf("ask for at most %s", most), "client %s may reserve for at most %s, and asks for %s", client, most, asked)
	}
	return nil
}

// take records a reservation that is about to be made as held, or refuses it with over_quota. free is how many tuples of
// its class can be reserved, these aside.
func (l *limiter) take(r *tuplesv1.Reservation, free uint64, now time.Time) error {
	client, tenant := r.GetOwner(), r.GetClass().GetTenant()
	x, c := l.limits(client, tenant), keyOf(r.GetClass())
	l.mu.Lock()
	defer l.mu.Unlock()
	var open int
	var tuples, ofClass, all uint64
	soonest := now.Add(maxLease)
	for _, h := range l.holds {
		if h.class == c {
			all += h.tuples
		}
		if h.client != client || h.tenant != tenant {
			continue
		}
		open++
		tuples += h.tuples
		if h.class == c {
			ofClass += h.tuples
		}
		if h.until.Before(soonest) {
			soonest = h.until
		}
	}
	over := func(limit, used, asked any, what string) error {
		e := rpc.Errorf(rpc.OverQuota, fmt.Sprintf("fetch or release what is reserved, or try again after %s, when the first lease ends", soonest.UTC().Format(time.RFC3339)),
			"client %s may hold %v %s of tenant %q, holds %v, and asks for %v", client, limit, what, tenant, used, asked)
		e.Retry = max(time.Second, soonest.Sub(now))
		return e
	}
	n := r.GetCount()
	switch {
	//lodge:check stock/reserve-open run=TestReserveLimits a client makes reservations without end
	case x.Open > 0 && open >= x.Open:
		return over(x.Open, open, 1, "open reservations")
	//lodge:check stock/reserve-tuples run=TestReserveLimits a client reserves all that there is
	case x.Tuples > 0 && (tuples > x.Tuples || n > x.Tuples-tuples):
		return over(x.Tuples, tuples, n, "reserved tuples")
	//lodge:check stock/reserve-share run=TestReserveLimits a client reserves all of a class that other clients need
	case x.Share > 0 && x.Share < 1 && float64(ofClass)+float64(n) > x.Share*(float64(all)+float64(n)+float64(free)):
		return over(fmt.Sprintf("%g %%", 100*x.Share), ofClass, n, "of the tuples of a class")
	}
	l.holds[r.GetId()] = hold{client, tenant, c, n, r.GetLease().AsTime()}
	return nil
}

// drop forgets reservations that were delivered or have ended.
func (l *limiter) drop(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		delete(l.holds, id)
	}
}

// held returns the reservations of a client for a tenant, at most most.
func (l *limiter) held(client, tenant string, most int) (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, h := range l.holds {
		if h.client == client && h.tenant == tenant && len(ids) < most {
			ids = append(ids, id)
		}
	}
	return ids
}

// recallHolds counts the open reservations of the records as held.
func (s *Service) recallHolds() {
	err := s.records.open(func(_ string, r *tuplesv1.Reservation) bool {
		if r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED {
			s.limits.holds[r.GetId()] = hold{r.GetOwner(), r.GetClass().GetTenant(), keyOf(r.GetClass()), r.GetCount(), r.GetLease().AsTime()}
		}
		return true
	})
	if err != nil {
		s.log.Error("looking for open reservations", "error", err)
	}
}

// admit takes a reservation into what its client holds. What parties have delivered counts no more, and the coordinator
// may not know yet: before it refuses, it asks them.
func (s *Service) admit(ctx context.Context, r *tuplesv1.Reservation) error {
	if s.limits.of == nil {
		return nil
	}
	free := s.view.freeOf(keyOf(r.GetClass()))
	err := s.limits.take(r, free, time.Now())
	if err == nil {
		return nil
	}
	var ask []*tuplesv1.Reservation
	for _, id := range s.limits.held(r.GetOwner(), r.GetClass().GetTenant(), maxFollowed) {
		if x, err := s.records.get(id); err == nil {
			ask = append(ask, x)
		}
	}
	s.lookAt(ctx, ask, listTime)
	return s.limits.take(r, free, time.Now())
}

// freeOf is how many tuples of a class can be reserved, under all epochs and MAC keys.
func (v *view) freeOf(c key) (n uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, x := range v.shelves {
		if x.class == c {
			n += x.free.Count()
		}
	}
	return n
}
