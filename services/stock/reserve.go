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
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/rpc"
)

const (
	defaultLease = 10 * time.Minute
	maxLease     = 7 * 24 * time.Hour
	maxTries     = 3 // to find ranges that no party refuses
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
	s.metrics.Reservation(outcome, time.Since(began), q.GetWait())
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
		return nil, rpc.Errorf(rpc.Conflict, "use a new key", "reservation %s was made under this idempotency key, and is of something else", r.GetId())
	}
	return &stockv1.ReserveResponse{Reservation: r}, err
}

// check refuses what no stock could satisfy.
func (s *Service) check(caller rpc.Principal, q *stockv1.ReserveRequest) error {
	class := q.GetClass()
	switch {
	case masks(class):
		return rpc.Errorf(rpc.Invalid, "ask the parties of a quorum to decrypt, which takes them", "masks are never reserved: only their quorum spends them, when it decrypts")
	case !caller.Serves(class.GetTenant()):
		return rpc.Errorf(rpc.Forbidden, "add the tenant to this client in the coordinator's configuration", "client %s does not act for tenant %q", caller.Name, class.GetTenant())
	case !job.MakesTuples(class.GetKind()):
		return rpc.Errorf(rpc.Invalid, "name a kind of tuples", "%s", job.NoTuples(class.GetKind()))
	case !caller.MayDraw(job.KindName(class.GetKind())):
		return rpc.Errorf(rpc.Forbidden, "add the kind to this client in the coordinator's configuration",
			"client %s may not reserve %s tuples", caller.Name, job.KindName(class.GetKind()))
	case len(class.GetQuorum()) > 0 || class.GetForm() != 0:
		return rpc.Errorf(rpc.Invalid, "leave them out", "only masks have a quorum and a form")
	case !slices.Contains(config.Fields, class.GetField()):
		return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(config.Fields, ", "), "field %.20q", class.GetField())
	case q.GetCount() == 0:
		return rpc.Errorf(rpc.Invalid, "say how many", "no count")
	case len(q.GetIdempotencyKey()) > 64:
		return rpc.Errorf(rpc.TooLarge, "", "an idempotency key has at most 64 characters")
	case strings.ContainsRune(q.GetIdempotencyKey(), 0):
		return rpc.Errorf(rpc.Invalid, "", "an idempotency key with a zero byte")
	case q.GetLease() != nil && (q.GetLease().CheckValid() != nil || q.GetLease().AsDuration() <= 0 || q.GetLease().AsDuration() > maxLease):
		return rpc.Errorf(rpc.Invalid, "leave it out for 10 minutes", "a lease is between 0 and %s", maxLease)
	case len(q.GetClients()) > 1 && len(q.GetClients()) != len(s.parties):
		return rpc.Errorf(rpc.Invalid, "name none, one, or one for each party", "%d clients for %d parties", len(q.GetClients()), len(s.parties))
	}
	for _, c := range q.GetClients() {
		if !config.ValidName(c) {
			return rpc.Errorf(rpc.Invalid, "", "%q is not the name of a client", c)
		}
	}
	return nil
}

// asked reports whether a reservation is what a request asks for.
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

// once makes the reservation of a key, or finds the one that was made, or waits for the one that is being made.
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
				continue // whoever asked first may have given up, or asked for less patience
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

// held makes sure that all parties hold a reservation that was recorded: this process may have ended in the middle of
// it. A party that has not heard of it holds it from now on. It gives errNoReservation when that is not to be.
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

// reserve finds tuples and holds them at all parties.
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
			return nil, rpc.Errorf(rpc.OutOfStock, "reserve less at a time", "%d tuples lie in %d pieces; a reservation has at most %d", q.GetCount(), len(ranges), maxRanges)
		case len(ranges) == 0 && last != nil:
			return nil, last
		case len(ranges) == 0 && !q.GetWait() && away != nil:
			s.Sync() // for the next try
			return nil, unknown(*away)
		case len(ranges) == 0 && !q.GetWait():
			return nil, rpc.Errorf(rpc.OutOfStock, "ask for less, wait, submit a job, or set a policy that keeps more",
				"%d tuples of this class can be reserved under one MAC key; %d are asked for", has, q.GetCount())
		case len(ranges) == 0:
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				if away = s.away.Load(); away != nil {
					return nil, unknown(*away)
				}
				return nil, rpc.Errorf(rpc.OutOfStock, "wait longer, or see why no job makes more: `lodge stock`",
					"%d tuples of this class could be reserved by the deadline; %d are asked for", has, q.GetCount())
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
			return nil, rpc.Errorf(rpc.OutOfStock, "reserve less at a time", "%d tuples lie in %d pieces, too many to name", q.GetCount(), len(ranges))
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

// unknown says that there may be enough, as not all parties could be asked.
func unknown(away error) error {
	return rpc.Errorf(rpc.Unavailable, "try again when all parties can be reached", "what there is is not known: %s", oneLine(away.Error()))
}

func lease(q *stockv1.ReserveRequest) time.Duration {
	if q.GetLease() == nil {
		return defaultLease
	}
	return q.GetLease().AsDuration()
}

// newID names a reservation: the same for the same key, so that a coordinator that forgot it asks the parties for the
// same again, unless an attempt under that name has failed. Nobody can guess those without a key.
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

// hold puts a reservation to all parties, as propose does, and records it at the same time.
func (s *Service) hold(ctx context.Context, r *tuplesv1.Reservation, key string) (answered <-chan struct{}, err error) {
	recorded := make(chan error, 1)
	go func() { recorded <- s.records.add(r, key, time.Now()) }()
	answered, err = s.propose(ctx, r)
	return answered, cmp.Or(err, <-recorded)
}

// propose puts a reservation to all parties. When ctx ends before all have answered, calls may still be on their way;
// answered is closed when none is.
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
		errs[i] = rpc.Errorf(rpc.Unavailable, "try again when it can be reached", "%s has not answered in time", p)
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
	for _, err := range errs { // what cannot be mended by other ranges first
		if err != nil && rpc.FromError(err).Code == rpc.Unavailable {
			return all, err
		}
	}
	return all, cmp.Or(errs...)
}

// proposed says what a party's answer means for the caller.
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

// abandon ends a reservation that not all parties hold, and frees its key, once no call can make a party hold it any
// more. If that cannot be done at the parties now, it is when the lease ends. A coordinator that stops leaves it as it is:
// the next one makes it whole when its client asks again.
func (s *Service) abandon(r *tuplesv1.Reservation, key string, answered <-chan struct{}) {
	s.limits.drop(r.GetId())
	if s.stops() {
		return
	}
	if key != "" {
		if err := s.records.unkey(key, r.GetId()); err != nil {
			s.log.Error("freeing the key of a reservation that failed", "reservation", r.GetId(), "error", err)
		}
	}
	go func() {
		select {
		case <-answered:
		case <-s.stopped:
		}
		if s.stops() { // and so nobody waited for the answers
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		defer cancel()
		if _, err := s.settle(ctx, []string{r.GetId()}); err != nil {
			s.log.Debug("a reservation that failed is still held by a party", "reservation", r.GetId(), "error", err)
		}
		s.Sync()
	}()
}

// stops reports whether the coordinator has begun to stop: at once, before calls end because of it.
func (s *Service) stops() bool {
	life := s.life.Load()
	return life != nil && (*life).Err() != nil
}
