// Package stock is the coordinator's side of tuples: what there is at the parties, reserving it at all of them at once,
// and putting back or discarding what reservations leave. It sees no share and decides nothing about safety: each party
// refuses on its own what it must not give, and the parties compare reservations among themselves.
package stock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

const prefix = "/lodge.stock.v1.StockService/"

// Rules say who may call what.
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

// Party is one party, as the coordinator reaches it.
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
	stopped chan struct{}

	syncing sync.Mutex
	synced  time.Time // when the parties were asked last
	syncErr error

	mu      sync.Mutex
	pending map[string]*pending // reservations being made, by client and idempotency key
}

// Open reads the records in dir.
func Open(dir string, parties []Party, log *slog.Logger) (*Service, error) {
	s, err := store.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("stock: %w", err)
	}
	return OpenIn(s, parties, log), nil
}

// OpenIn reads the records in a store, which is the service's from then on.
func OpenIn(in store.Store, parties []Party, log *slog.Logger) *Service {
	s := &Service{records: &records{in}, view: newView(), log: log, resync: make(chan struct{}, 1), stopped: make(chan struct{}), pending: map[string]*pending{}}
	for i, p := range parties {
		s.parties = append(s.parties, newProposer(i, p))
	}
	return s
}

// Close ends the use of the records.
func (s *Service) Close() error { return s.records.close() }

// The times of the service.
const (
	callTime  = 5 * time.Second
	syncEvery = 5 * time.Second
	dueEvery  = time.Second
)

// Run keeps the view, and settles reservations whose leases have ended, until ctx is done.
func (s *Service) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range s.parties {
		wg.Go(func() { p.run(ctx) })
	}
	wg.Go(func() { s.settleDue(ctx) })
	context.AfterFunc(ctx, func() { close(s.stopped) })
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := s.sync(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("the stock of a party is unknown", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-s.resync:
		case <-tick.C:
		}
	}
	wg.Wait()
}

// Sync has the parties asked soon what they have.
func (s *Service) Sync() {
	select {
	case s.resync <- struct{}{}:
	default:
	}
}

// sync asks all parties what they have. One that cannot be reached has nothing that could be reserved. Callers at the
// same time share the answers that were asked for after they came.
func (s *Service) sync(ctx context.Context) error {
	came := time.Now()
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.synced.After(came) {
		return s.syncErr
	}
	s.synced = time.Now()
	n := s.view.ask()
	reports, errs := make([][]*tuplesv1.Batch, len(s.parties)), make([]error, len(s.parties))
	var wg sync.WaitGroup
	for i, p := range s.parties {
		wg.Go(func() {
			if reports[i], errs[i] = p.batches(ctx); errs[i] != nil {
				reports[i], errs[i] = nil, fmt.Errorf("%s: %w", p, errs[i])
			}
		})
	}
	wg.Wait()
	s.view.set(reports, n, time.Now())
	s.syncErr = errors.Join(errs...)
	return s.syncErr
}
