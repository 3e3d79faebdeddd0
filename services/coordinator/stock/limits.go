package stock

import (
	"context"
	"fmt"
	"sync"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Limits are the limits for the reservations of one client for one tenant. A zero means no limit.
type Limits struct {
	Open      int           // open reservations that not all parties are known to have delivered
	Tuples    uint64        // tuples in these reservations, over all classes
	Share     float64       // largest part of one class that these reservations hold, of all tuples in stock or reserved
	Lease     time.Duration // of one reservation
	PerSecond float64       // reservations made and not delivered, in the long run
	Burst     int           // how many of them at once
}

// LimitsOf returns the limits of a configuration.
func LimitsOf(l config.ReserveLimits) Limits {
	return Limits{Open: l.MaxOpen, Tuples: l.MaxTuples, Share: l.MaxShare, Lease: time.Duration(l.MaxLease), PerSecond: l.PerSecond, Burst: l.Burst}
}

// Limit sets the limits of clients, before the service is used; nil means none.
func (s *Service) Limit(of func(client, tenant string) Limits) { s.limits.of = of }

// The names in metrics of the limits by which a reservation is refused.
const (
	limitOpen   = "open"
	limitTuples = "tuples"
	limitShare  = "share"
	limitLease  = "lease"
	limitRate   = "rate"
)

// askEvery is the least time between queries to the parties about the reservations of a client that
// exceeds a limit.
const askEvery = time.Second

// limiter counts the reservations and tuples that every client holds. It is rebuilt from the
// records when the coordinator starts.
type limiter struct {
	of func(client, tenant string) Limits // nil: no limits

	mu      sync.Mutex
	holds   map[string]hold // by reservation
	owners  map[owner]*account
	classes map[key]uint64 // tuples that all clients hold
}

// owner is a client that acts for a tenant.
type owner struct{ client, tenant string }

// hold is an open reservation that is not delivered.
type hold struct {
	owner  owner
	class  key
	tuples uint64
	until  time.Time
}

// account has the reservations that an owner holds, and the tokens left of its rate.
type account struct {
	holds   map[string]hold
	tuples  uint64
	classes map[key]uint64

	tokens float64   // reservations that it may make, at filled; up to Limits.Burst
	filled time.Time // zero: never, so that all tokens are left
	asked  time.Time // when the parties were last asked about its reservations
}

// refusal is an error with the name of the exceeded limit.
type refusal struct {
	*rpc.Error
	limit string
}

func newLimiter() *limiter {
	return &limiter{holds: map[string]hold{}, owners: map[owner]*account{}, classes: map[key]uint64{}}
}

func (l *limiter) limits(o owner) Limits {
	if l.of == nil {
		return Limits{}
	}
	return l.of(o.client, o.tenant)
}

// account returns an owner's account. The caller holds the lock.
func (l *limiter) account(o owner) *account {
	a := l.owners[o]
	if a == nil {
		a = &account{holds: map[string]hold{}, classes: map[key]uint64{}}
		l.owners[o] = a
	}
	return a
}

// lease returns an error if a lease is too long.
func (l *limiter) lease(o owner, asked time.Duration) *refusal {
	most := l.limits(o).Lease
	//lodge:check stock/reserve-lease run=TestReserveLimits a client withholds stock from all others for a week
	if most > 0 && asked > most {
		return &refusal{rpc.Errorf(rpc.OverQuota, fmt.Sprintf("request at most %s", most), "the lease limit of client %s is %s, but the request is for %s", o.client, most, asked), limitLease}
	}
	return nil
}

// take counts a reservation that is about to be made as held, or returns why it may not be made.
// free is how many tuples of its class can be reserved, without those of the reservation.
func (l *limiter) take(r *tuplesv1.Reservation, free uint64, now time.Time) *refusal {
	h := holdOf(r)
	x := l.limits(h.owner)
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(h.owner)
	n, total := h.tuples, float64(l.classes[h.class])+float64(h.tuples)+float64(free)
	switch {
	//lodge:check stock/reserve-open run=TestReserveLimits a client makes reservations without end
	case x.Open > 0 && len(a.holds) >= x.Open:
		return a.over(h, now, limitOpen, x.Open, len(a.holds), 1, "open reservations")
	//lodge:check stock/reserve-tuples run=TestReserveLimits a client reserves the whole stock
	case x.Tuples > 0 && (a.tuples > x.Tuples || n > x.Tuples-a.tuples):
		return a.over(h, now, limitTuples, x.Tuples, a.tuples, n, "reserved tuples")
	//lodge:check stock/reserve-share run=TestReserveLimits a client reserves all of a class that other clients need
	case x.Share > 0 && x.Share < 1 && float64(a.classes[h.class])+float64(n) > x.Share*total:
		return a.over(h, now, limitShare, uint64(x.Share*total), a.classes[h.class], n, fmt.Sprintf("(%g %%) of the tuples of this class", 100*x.Share))
	}
	if wait := a.spend(x, now); wait > 0 {
		e := rpc.Errorf(rpc.RateLimited, fmt.Sprintf("try again in %s, or fetch the reserved tuples", wait.Round(time.Millisecond)),
			"client %s may make %g reservations a second for tenant %q that it does not fetch, and %d at once", h.owner.client, x.PerSecond, h.owner.tenant, max(1, x.Burst))
		e.Retry = wait
		return &refusal{e, limitRate}
	}
	l.add(r.GetId(), h)
	return nil
}

// over returns the error for a reservation beyond a limit. If the client holds nothing, only a
// smaller request helps, and waiting does not.
func (a *account) over(h hold, now time.Time, name string, limit, used, asked any, what string) *refusal {
	var soonest time.Time
	for _, x := range a.holds {
		if soonest.IsZero() || x.until.Before(soonest) {
			soonest = x.until
		}
	}
	next := "reserve fewer tuples at a time"
	if !soonest.IsZero() {
		next = fmt.Sprintf("fetch or release reservations, reserve fewer tuples, or try again after %s, when the first lease ends", soonest.UTC().Format(time.RFC3339))
	}
	e := rpc.Errorf(rpc.OverQuota, next, "client %s may hold %v %s for tenant %q, holds %v, and asks for %v", h.owner.client, limit, what, h.owner.tenant, used, asked)
	if !soonest.IsZero() {
		e.Retry = max(time.Second, soonest.Sub(now))
	}
	return &refusal{e, name}
}

// spend takes a token, or returns the time until the next one.
func (a *account) spend(x Limits, now time.Time) (wait time.Duration) {
	if x.PerSecond <= 0 {
		return 0
	}
	most := float64(max(1, x.Burst))
	if a.filled.IsZero() {
		a.tokens = most
	} else {
		a.tokens = min(most, a.tokens+x.PerSecond*max(0, now.Sub(a.filled).Seconds()))
	}
	a.filled = now
	//lodge:check stock/reserve-rate run=TestReserveLimits a client reserves and releases in a loop, and fills the disks of all parties
	if a.tokens < 1 {
		return max(time.Millisecond, time.Duration((1-a.tokens)/x.PerSecond*float64(time.Second)))
	}
	a.tokens--
	return 0
}

func holdOf(r *tuplesv1.Reservation) hold {
	return hold{owner{r.GetOwner(), r.GetClass().GetTenant()}, keyOf(r.GetClass()), r.GetCount(), r.GetLease().AsTime()}
}

// add counts a reservation as held. The caller holds the lock.
func (l *limiter) add(id string, h hold) {
	a := l.account(h.owner)
	l.holds[id], a.holds[id] = h, h
	a.tuples += h.tuples
	a.classes[h.class] += h.tuples
	l.classes[h.class] += h.tuples
}

// drop removes reservations that have ended.
func (l *limiter) drop(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.remove(id)
	}
}

// delivered removes a reservation that all parties have delivered. It does not count towards the
// rate, because the consumed tuples limit the number of such reservations.
func (l *limiter) delivered(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.remove(id); a != nil {
		a.tokens++ // spend cuts it to the burst
	}
}

// remove removes a reservation, and returns the account that held it or nil. The caller holds the
// lock.
func (l *limiter) remove(id string) *account {
	h, ok := l.holds[id]
	if !ok {
		return nil
	}
	a := l.owners[h.owner]
	delete(l.holds, id)
	delete(a.holds, id)
	a.tuples -= h.tuples
	for _, m := range []map[key]uint64{a.classes, l.classes} {
		if m[h.class] -= h.tuples; m[h.class] == 0 {
			delete(m, h.class)
		}
	}
	return a
}

// ask returns up to most reservations of an owner that the parties should be asked about, and none
// if they have just been.
func (l *limiter) ask(o owner, most int, now time.Time) (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(o)
	//lodge:check stock/reserve-ask run=TestAskedSeldom every refused request of a client makes the coordinator ask all parties hundreds of times
	if now.Sub(a.asked) < askEvery {
		return nil
	}
	a.asked = now
	for id := range a.holds {
		if len(ids) == most {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// open returns how many open reservations each client has, over all tenants.
func (l *limiter) open() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]int{}
	for o, a := range l.owners {
		counts[o.client] += len(a.holds)
	}
	return counts
}

// recallHolds counts the open reservations in the records as held.
func (s *Service) recallHolds() {
	err := s.records.open(func(_ string, r *tuplesv1.Reservation) bool {
		if r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED {
			s.limits.add(r.GetId(), holdOf(r))
		}
		return true
	})
	if err != nil {
		s.log.Error("cannot read open reservations", "error", err)
	}
}

// admit counts a reservation as held by its client, or returns why it may not be made. Reservations
// that the parties have delivered do not count. The coordinator may not know of a delivery yet, so
// it asks the parties before it refuses.
func (s *Service) admit(ctx context.Context, r *tuplesv1.Reservation) error {
	if s.limits.of == nil {
		return nil
	}
	free := s.view.freeOf(keyOf(r.GetClass()))
	why := s.limits.take(r, free, time.Now())
	if why == nil {
		return nil
	}
	var ask []*tuplesv1.Reservation
	for _, id := range s.limits.ask(holdOf(r).owner, maxFollowed, time.Now()) {
		if x, err := s.records.get(id); err == nil {
			ask = append(ask, x)
		}
	}
	if len(ask) > 0 && len(s.lookAt(ctx, ask, listTime)) > 0 {
		why = s.limits.take(r, free, time.Now())
	}
	return s.refused(why)
}

// refused counts a refusal by a limit, and returns it as an error.
func (s *Service) refused(why *refusal) error {
	if why == nil {
		return nil
	}
	s.metrics.Count(metrics.ReservationsRefused, 1, why.limit)
	return why.Error
}

// freeOf returns the number of available tuples of a class, under all epochs and MAC keys.
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
