package stock

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const (
	defaultLease = 10 * time.Minute
	maxLease     = 7 * 24 * time.Hour
	maxTries     = 3 // attempts to find ranges that no party refuses
	maxRanges    = 1024
)

// pending is a reservation that is being made for an idempotency key.
type pending struct {
	done chan struct{}
	r    *tuplesv1.Reservation
	err  error
}

// Reserve implements the service.
func (s *Service) Reserve(ctx context.Context, q *stockv1.ReserveRequest) (*stockv1.ReserveResponse, error) {
	began := time.Now()
	r, err := s.reserveFor(ctx, q)
	outcome := "reserved"
	if err != nil {
		outcome = string(rpc.FromError(err).Code)
	}
	s.metrics.Count(metrics.Reservations, 1, outcome)
	if !q.GetWait() {
		s.metrics.Observe(metrics.ReservationTime, time.Since(began))
	}
	return r, err
}

func (s *Service) reserveFor(ctx context.Context, q *stockv1.ReserveRequest) (*stockv1.ReserveResponse, error) {
	caller, _ := rpc.Caller(ctx)
	if err := s.check(caller, q); err != nil {
		return nil, err
	}
	if err := s.refused(s.limits.lease(owner{caller.Name, q.GetClass().GetTenant()}, lease(q))); err != nil {
		return nil, err
	}
	if q.GetIdempotencyKey() == "" {
		r, err := s.reserve(ctx, caller, q, "")
		return &stockv1.ReserveResponse{Reservation: r}, err
	}
	key := caller.Name + "/" + q.GetIdempotencyKey()
	r, err := s.once(ctx, key, func() (*tuplesv1.Reservation, error) { return s.reserve(ctx, caller, q, key) })
	if err == nil && !asked(r, q) {
		return nil, rpc.Errorf(rpc.Conflict, "use a new key", "reservation %s was made under this idempotency key with a different request", r.GetId())
	}
	return &stockv1.ReserveResponse{Reservation: r}, err
}

// check rejects requests that no stock could satisfy.
func (s *Service) check(caller rpc.Principal, q *stockv1.ReserveRequest) error {
	class := q.GetClass()
	switch {
	case masks(class):
		return rpc.Errorf(rpc.Invalid, "request a decryption from the parties of a quorum, which consumes masks", "masks cannot be reserved: only their quorum uses them, when it decrypts")
	case !caller.Serves(class.GetTenant()):
		return rpc.Errorf(rpc.Forbidden, "add the tenant to this client in the coordinator's configuration", "client %s does not act for tenant %q", caller.Name, class.GetTenant())
	case !job.MakesTuples(class.GetKind()):
		return rpc.Errorf(rpc.Invalid, "name a kind of tuples", "%s", job.NoTuples(class.GetKind()))
	case !caller.MayDraw(job.KindName(class.GetKind())):
		return rpc.Errorf(rpc.Forbidden, "add the kind to this client in the coordinator's configuration",
			"client %s may not reserve %s tuples", caller.Name, job.KindName(class.GetKind()))
	case len(class.GetQuorum()) > 0 || class.GetForm() != 0:
		return rpc.Errorf(rpc.Invalid, "omit them", "only masks have a quorum and a form")
	case !slices.Contains(config.Fields, class.GetField()):
		return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(config.Fields, ", "), "field %.20q", class.GetField())
	case q.GetCount() == 0:
		return rpc.Errorf(rpc.Invalid, "set count", "no count")
	case len(q.GetIdempotencyKey()) > 64:
		return rpc.Errorf(rpc.TooLarge, "", "an idempotency key has at most 64 characters")
	case strings.ContainsRune(q.GetIdempotencyKey(), 0):
		return rpc.Errorf(rpc.Invalid, "", "an idempotency key with a zero byte")
	case q.GetLease() != nil && (q.GetLease().CheckValid() != nil || q.GetLease().AsDuration() <= 0 || q.GetLease().AsDuration() > maxLease):
		return rpc.Errorf(rpc.Invalid, "omit it for 10 minutes", "a lease is between 0 and %s", maxLease)
	case len(q.GetClients()) > 1 && len(q.GetClients()) != len(s.parties):
		return rpc.Errorf(rpc.Invalid, "name no client, one client, or one for each party", "%d clients for %d parties", len(q.GetClients()), len(s.parties))
	}
	for _, c := range q.GetClients() {
		if !config.ValidName(c) {
			return rpc.Errorf(rpc.Invalid, "", "%q is not a valid client name", c)
		}
	}
	return nil
}

// asked reports whether a reservation matches a request.
func asked(r *tuplesv1.Reservation, q *stockv1.ReserveRequest) bool {
	if len(r.GetClients()) != len(q.GetClients()) {
		return false
	}
	for i, c := range q.GetClients() {
		if r.GetClients()[i] != c {
			return false
		}
	}
	return proto.Equal(r.GetClass(), q.GetClass()) && r.GetCount() == q.GetCount() && (q.GetEpoch() == 0 || q.GetEpoch() == r.GetEpoch())
}

// once makes the reservation of a key, returns the reservation that was already made, or waits for
// the one being made.
func (s *Service) once(ctx context.Context, key string, make func() (*tuplesv1.Reservation, error)) (*tuplesv1.Reservation, error) {
	var p *pending
	for {
		s.mu.Lock()
		other := s.pending[key]
		if other == nil {
			p = &pending{done: newDone()}
			s.pending[key] = p
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		select {
		case <-other.done:
			if other.err != nil && unreachable(other.err) && ctx.Err() == nil {
				continue // the earlier caller may have given up, or may have had a shorter deadline
			}
			return other.r, other.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if p.r, p.err = s.records.keyed(key); p.err == nil {
		p.err = s.held(ctx, p.r, key)
	}
	if errors.Is(p.err, errNoReservation) {
		p.r, p.err = make()
	}
	s.mu.Lock()
	delete(s.pending, key)
	s.mu.Unlock()
	close(p.done)
	return p.r, p.err
}

// held ensures that all parties hold a recorded reservation: this process may have stopped while it
// was proposing it. A party that does not know the reservation holds it from now on. held returns
// errNoReservation if a party refuses.
func (s *Service) held(ctx context.Context, r *tuplesv1.Reservation, key string) error {
	if r.GetState() != tuplesv1.ReservationState_RESERVATION_STATE_RESERVED || !r.GetLease().AsTime().After(time.Now()) {
		return nil // it has ended
	}
	answered, err := s.propose(ctx, r)
	if err == nil || unreachable(err) {
		return err
	}
	s.abandon(r, key, answered)
	return errNoReservation
}

func newDone() chan struct{} { return make(chan struct{}) }

// reserve finds tuples and reserves them at all parties.
func (s *Service) reserve(ctx context.Context, caller rpc.Principal, q *stockv1.ReserveRequest, key string) (*tuplesv1.Reservation, error) {
	var last error
	for try := 0; try < maxTries; {
		changed := s.view.watch()
		away := s.away.Load()
		g, ranges, has := s.view.pick(q.GetClass(), q.GetEpoch(), q.GetCount())
		switch {
		case len(ranges) > maxRanges:
			s.view.settle(ranges)
			s.Sync()
			return nil, rpc.Errorf(rpc.OutOfStock, "reserve fewer tuples at a time", "%d tuples consist of %d ranges; a reservation has at most %d", q.GetCount(), len(ranges), maxRanges)
		case len(ranges) == 0 && last != nil:
			if err := s.noEpoch(ctx, q, has); err != nil {
				return nil, err
			}
			return nil, last
		case len(ranges) == 0 && !q.GetWait() && away != nil:
			s.Sync() // for the next attempt
			return nil, unknown(*away)
		case len(ranges) == 0 && !q.GetWait():
			if err := s.noEpoch(ctx, q, has); err != nil {
				return nil, err
			}
			return nil, rpc.Errorf(rpc.OutOfStock, "reserve fewer tuples, wait, submit a job, or set a policy with higher marks",
				"%d tuples of this class are available under one MAC key; the request is for %d", has, q.GetCount())
		case len(ranges) == 0:
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				if away = s.away.Load(); away != nil {
					return nil, unknown(*away)
				}
				return nil, rpc.Errorf(rpc.OutOfStock, "wait longer, or run `lodge stock` to see why no job makes more",
					"%d tuples of this class were available by the deadline; the request is for %d", has, q.GetCount())
			case <-s.stopped:
				return nil, errStops
			}
		}
		r := &tuplesv1.Reservation{
			Id: s.newID(key, try), Class: q.GetClass(), Epoch: g.epoch, MacKeyId: g.macKey, Ranges: ranges, Count: q.GetCount(), Owner: caller.Name,
			Clients: q.GetClients(), Lease: timestamppb.New(time.Now().Add(lease(q))), State: tuplesv1.ReservationState_RESERVATION_STATE_RESERVED,
		}
		if n := (proposal{r: r}).size(); n > rpc.MaxRequest {
			s.view.settle(ranges)
			s.Sync()
			return nil, rpc.Errorf(rpc.OutOfStock, "reserve fewer tuples at a time", "%d tuples consist of %d ranges, too many for a message", q.GetCount(), len(ranges))
		}
		if err := s.admit(ctx, r); err != nil {
			s.view.settle(ranges)
			s.Sync()
			return nil, err
		}
		answered, err := s.hold(ctx, r, key)
		s.view.settle(ranges)
		if err == nil {
			s.took(r)
			return r, nil
		}
		s.abandon(r, key, answered)
		last = err
		if c := rpc.FromError(err).Code; c != rpc.Taken && c != rpc.Burnt && c != rpc.NotFound && c != rpc.Conflict {
			return nil, err
		}
		if err := s.sync(ctx); err != nil {
			return nil, rpc.Errorf(rpc.Unavailable, "try again when all parties can be reached", "%v", err)
		}
		try++
	}
	return nil, last
}

// unknown returns the error for a stock that is unknown because not all parties responded; it may
// suffice.
func unknown(away error) error {
	return rpc.Errorf(rpc.Unavailable, "try again when all parties can be reached", "the stock is not known: %s", oneLine(away.Error()))
}

func lease(q *stockv1.ReserveRequest) time.Duration {
	if q.GetLease() == nil {
		return defaultLease
	}
	return q.GetLease().AsDuration()
}

// newID returns the identifier of a reservation. The same key gives the same identifier, so that a
// coordinator without a record of it proposes the same reservation again, unless an attempt under
// that identifier has failed. Identifiers without a key cannot be guessed.
func (s *Service) newID(key string, try int) string {
	sum := sha256.Sum256(append([]byte("lodge reservation id\x00"+key), byte(try)))
	id := hex.EncodeToString(sum[:16])
	if key != "" {
		if _, err := s.records.get(id); errors.Is(err, errNoReservation) {
			return id
		}
	}
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// hold proposes a reservation to all parties, as propose does, and records it concurrently.
func (s *Service) hold(ctx context.Context, r *tuplesv1.Reservation, key string) (answered <-chan struct{}, err error) {
	recorded := make(chan error, 1)
	go func() { recorded <- s.records.add(r, key, time.Now()) }()
	answered, err = s.propose(ctx, r)
	return answered, cmp.Or(err, <-recorded)
}

// propose proposes a reservation to all parties. If ctx ends before all have responded, calls may
// still be in flight; answered is closed when none is.
func (s *Service) propose(ctx context.Context, r *tuplesv1.Reservation) (answered <-chan struct{}, err error) {
	type answer struct {
		party int
		err   error
	}
	answers, all := make(chan answer, len(s.parties)), make(chan struct{})
	var calls sync.WaitGroup
	for i, p := range s.parties {
		calls.Go(func() { answers <- answer{i, p.propose(ctx, r, s.stopped)} })
	}
	go func() { calls.Wait(); close(all) }()
	errs := make([]error, len(s.parties))
	for i, p := range s.parties {
		errs[i] = rpc.Errorf(rpc.Unavailable, "try again when it can be reached", "%s did not respond in time", p)
	}
	for waits := len(s.parties); waits > 0; waits-- {
		select {
		case a := <-answers:
			errs[a.party] = proposed(s.parties[a.party], r, a.err)
			continue
		case <-ctx.Done():
		}
		break
	}
	for _, err := range errs { // first the errors that other ranges cannot avoid
		if err != nil && rpc.FromError(err).Code == rpc.Unavailable {
			return all, err
		}
	}
	return all, cmp.Or(errs...)
}

// proposed translates a party's response for the caller.
func proposed(p *proposer, r *tuplesv1.Reservation, err error) error {
	switch {
	case err == nil:
		return nil
	case unreachable(err):
		return rpc.Errorf(rpc.Unavailable, "try again when it can be reached", "%s: %s", p, rpc.FromError(err).What)
	case rpc.FromError(err).Code == rpc.Expired && r.GetLease().AsTime().After(time.Now()):
		return rpc.Errorf(rpc.Unavailable, "set the clocks right (`lodge doctor` compares them), or ask for a longer lease",
			"the clock of %s is ahead of the coordinator's by more than the lease", p)
	}
	return err
}

func unreachable(err error) bool {
	c := rpc.FromError(err).Code
	return c == rpc.Unavailable || c == rpc.TimedOut || c == rpc.Cancelled
}

// abandon ends a reservation that not all parties hold, and frees its key, once no call in flight
// can still make a party hold it. If a party is unreachable now, the reservation is settled when
// its lease ends. A coordinator that is stopping leaves the reservation unchanged: the next process
// completes it when the client repeats its request.
func (s *Service) abandon(r *tuplesv1.Reservation, key string, answered <-chan struct{}) {
	s.limits.drop(r.GetId())
	if s.stops() {
		return
	}
	if key != "" {
		if err := s.records.unkey(key, r.GetId()); err != nil {
			s.log.Error("cannot free the key of a failed reservation", "reservation", r.GetId(), "error", err)
		}
	}
	go func() {
		select {
		case <-answered:
		case <-s.stopped:
		}
		if s.stops() { // the caller did not wait for the responses
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		defer cancel()
		if _, err := s.settle(ctx, []string{r.GetId()}); err != nil {
			s.log.Debug("a party still holds a failed reservation", "reservation", r.GetId(), "error", err)
		}
		s.Sync()
	}()
}

// stops reports whether the coordinator has begun to stop. It already returns true when the first
// call ends for this reason.
func (s *Service) stops() bool {
	life := s.life.Load()
	return life != nil && (*life).Err() != nil
}
