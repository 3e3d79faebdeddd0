// Package stock is the coordinator's service for tuples. It tracks the tuples at the parties,
// reserves tuples at all parties, and returns or discards the remains of reservations. It sees no
// shares and makes no security decision: each party independently refuses to deliver tuples that it
// must not deliver, and the parties compare reservations with each other.
package stock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

const prefix = "/lodge.stock.v1.StockService/"

// Rules maps each method to the permission that a caller needs.
var Rules = rpc.Rules{
	prefix + "Reserve":          rpc.Allow(rpc.Client).With(config.PermReserve),
	prefix + "Release":          rpc.Allow(rpc.Client).With(config.PermReserve),
	prefix + "GetReservation":   rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "ListReservations": rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "GetStock":         rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "WatchStock":       rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "ListPolicies":     rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "SetPolicy":        rpc.Allow(rpc.Client).With(config.PermPolicy),
	prefix + "DeletePolicy":     rpc.Allow(rpc.Client).With(config.PermPolicy),
}

// Party is the coordinator's connection to a party.
type Party struct {
	Name string
	Conn grpc.ClientConnInterface
}

// Service implements lodge.stock.v1.
type Service struct {
	stockv1.UnimplementedStockServiceServer
	parties []*proposer
	records *records
	view    *view
	log     *slog.Logger
	resync  chan struct{}
	life    atomic.Pointer[context.Context] // context of Run
	stopped chan struct{}                   // closed soon after life ends

	syncing chan struct{} // the goroutine that sends a token polls the parties, exclusively
	synced  time.Time     // time of the last poll
	syncErr error

	away atomic.Pointer[error] // why the last poll failed; nil if all parties responded

	mu      sync.Mutex
	pending map[string]*pending // reservations being made, by client and idempotency key

	limits    *limiter
	queue     Queue
	ceilings  Ceilings
	metrics   *metrics.Metrics
	tenants   []string // tenants that metrics name
	changed   chan struct{}
	epochs    []activeEpoch       // newest first; used only by the keeping goroutine
	said      [][]*keygenv1.Epoch // each party's last report; used only by the keeping goroutine
	estimates map[string]estimate // used only by the keeping goroutine
	counted   map[string]bool     // jobs whose tuples are in flows; used only by the keeping goroutine

	keeping  sync.Mutex
	policies map[string]*policy // by id
	kept     kept

	flowing sync.Mutex
	flows   *flows
}

// Options configures a service.
type Options struct {
	Dir      string // directory of the records
	Parties  []Party
	Queue    Queue
	Ceilings Ceilings
	Metrics  *metrics.Metrics
	Tenants  []string                           // tenants that metrics may name; others are aggregated
	Limits   func(client, tenant string) Limits // nil: no limits
	Log      *slog.Logger
}

// Open opens the records in a directory.
func Open(o Options) (*Service, error) {
	in, err := store.OpenDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("stock: %w", err)
	}
	s := OpenIn(in, o.Parties, o.Log)
	s.queue, s.ceilings, s.metrics, s.tenants = o.Queue, o.Ceilings, o.Metrics, o.Tenants
	s.Limit(o.Limits)
	list, err := s.records.policies()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, p := range list {
		s.policies[p.id] = p
	}
	return s, nil
}

// OpenIn opens the records in a store, which the service owns afterwards. Without a queue of jobs
// the service follows no policies.
func OpenIn(in store.Store, parties []Party, log *slog.Logger) *Service {
	s := &Service{
		records: &records{in}, view: newView(), log: log, resync: make(chan struct{}, 1), stopped: make(chan struct{}), syncing: make(chan struct{}, 1), pending: map[string]*pending{},
		limits: newLimiter(), queue: idle{}, changed: make(chan struct{}, 1), estimates: map[string]estimate{}, counted: map[string]bool{},
		policies: map[string]*policy{}, flows: newFlows(time.Now()),
	}
	for i, p := range parties {
		s.parties = append(s.parties, newProposer(i, p))
	}
	s.recallDelivered()
	s.recallHolds()
	return s
}

// Close closes the records.
func (s *Service) Close() error { return s.records.close() }

// Intervals and timeouts of the service.
const (
	callTime  = 5 * time.Second
	syncEvery = 5 * time.Second
	awayEvery = time.Second // while a party is unavailable
	dueEvery  = time.Second
	leastRest = 100 * time.Millisecond // minimum time between two plans, to combine several changes
)

// Run keeps the view up to date, and settles reservations whose leases have ended, until ctx is
// done.
func (s *Service) Run(ctx context.Context) {
	s.life.Store(&ctx)
	var wg sync.WaitGroup
	for _, p := range s.parties {
		wg.Go(func() { p.run(ctx) })
	}
	wg.Go(func() { s.settleDue(ctx) })
	wg.Go(func() { s.adopt(ctx) })
	wg.Go(func() { s.follow(ctx) })
	context.AfterFunc(ctx, func() { close(s.stopped) })
	s.recall()
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	again := time.NewTimer(awayEvery)
	defer again.Stop()
	var known map[string]bool
	var away error
	for ask := true; ctx.Err() == nil; {
		if ask {
			known = s.completed()
			away = s.findEpochs(ctx, s.sync(ctx))
			if away != nil && ctx.Err() == nil {
				s.log.Debug("cannot read the stock of a party", "error", away)
			}
		}
		s.keep(ctx, known, away)
		s.measure()
		if again.Stop(); away != nil {
			again.Reset(awayEvery)
		}
		ask = s.rest(ctx, tick.C, again.C)
	}
	wg.Wait()
}

// rest waits until there is work, and reports whether to poll the parties.
func (s *Service) rest(ctx context.Context, tick, again <-chan time.Time) (ask bool) {
	for gathering := (<-chan struct{})(nil); ; {
		select {
		case <-ctx.Done():
			return false
		case <-s.resync:
			return true
		case <-tick:
			return true
		case <-again:
			return true
		case <-gathering:
			return false
		case <-s.changed:
			if gathering == nil {
				gathering = after(leastRest)
			}
		}
	}
}

// Refresh polls the parties, so that the tuples of a job are visible before the job is reported as
// complete.
func (s *Service) Refresh(ctx context.Context) {
	if err := s.sync(ctx); err != nil {
		s.log.Debug("cannot read the stock of a party", "error", err)
	}
}

// Changed schedules a new plan: a job has begun or ended, or tuples were reserved.
func (s *Service) Changed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Sync schedules a poll of the parties.
func (s *Service) Sync() {
	select {
	case s.resync <- struct{}{}:
	default:
	}
}

// sync polls all parties for their stock. If a party cannot be reached, nothing can be reserved and
// the error is an awayError. Concurrent callers share a poll that started after their calls.
func (s *Service) sync(ctx context.Context) error {
	came := time.Now()
	select {
	case s.syncing <- struct{}{}:
		defer func() { <-s.syncing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.synced.After(came) {
		return s.syncErr
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a caller that gives up must not leave a view without parties
	defer cancel()
	go func() {
		select {
		case <-s.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.synced = time.Now()
	n := s.view.ask()
	reports, errs := make([][]*tuplesv1.Batch, len(s.parties)), make(awayError, len(s.parties))
	var wg sync.WaitGroup
	for i, p := range s.parties {
		wg.Go(func() {
			revive(ctx, p.Conn)
			if reports[i], errs[i] = p.batches(ctx); errs[i] != nil {
				e := rpc.FromError(errs[i])
				reports[i], errs[i] = nil, rpc.Errorf(e.Code, e.Next, "%s: %s", p, e.What)
			}
		})
	}
	wg.Wait()
	err := errs.or()
	if s.syncErr = err; err == nil {
		s.view.set(reports, n, time.Now())
		s.away.Store(nil)
		return nil
	}
	s.away.Store(&err)
	var away []*stockv1.AwayParty
	for i, p := range s.parties {
		if errs[i] != nil {
			away = append(away, &stockv1.AwayParty{Party: uint32(p.index), Name: p.Name, Reason: oneLine(rpc.FromError(errs[i]).What)})
		}
	}
	s.view.lose(away, reports)
	return err
}

// reviveTime limits the time for reconnecting to a party.
const reviveTime = 500 * time.Millisecond

// revive reconnects immediately to a party that was unreachable. Otherwise the connection returns
// its last error until its next attempt to connect, although the party may be back.
func revive(ctx context.Context, c grpc.ClientConnInterface) {
	conn, ok := c.(*grpc.ClientConn)
	if !ok || conn.GetState() != connectivity.TransientFailure {
		return
	}
	conn.ResetConnectBackoff()
	ctx, cancel := context.WithTimeout(ctx, reviveTime)
	defer cancel()
	conn.WaitForStateChange(ctx, connectivity.TransientFailure)
}
