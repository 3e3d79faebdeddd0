// Package tuples serves a party's tuples: it lists them, records the coordinator's reservations,
// and delivers the party's shares to the party's clients. It believes nothing of the coordinator
// that it can check: tuples go to at most one reservation, ever, which this party's vault sees to;
// and no byte leaves before every peer has confirmed that it has recorded the same reservation.
package tuples

import (
	"context"
	"log/slog"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
)

const prefix = "/lodge.tuples.v1.TuplesService/"

// Rules say who may call what.
var Rules = rpc.Rules{
	prefix + "Fetch":             rpc.Allow(rpc.Client).With(config.PermFetch),
	prefix + "GetReservation":    rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
	prefix + "ListReservations":  rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
	prefix + "ListBatches":       rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
	prefix + "ListMacKeys":       rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
	prefix + "DrawMacKey":        rpc.Allow(rpc.Client).With(config.PermMACKey),
	prefix + "ReportFailedCheck": rpc.Allow(rpc.Client).With(config.PermMACKey),
	prefix + "Revoke":            rpc.Allow(rpc.Client).With(config.PermRetire),
	prefix + "Propose":           rpc.Allow(rpc.Coordinator),
	prefix + "Withdraw":          rpc.Allow(rpc.Coordinator),
	prefix + "Release":           rpc.Allow(rpc.Coordinator),
	prefix + "Acknowledge":       rpc.Allow(rpc.Peer),
	prefix + "Confirm":           rpc.Allow(rpc.Peer),
}

// Config of the service.
type Config struct {
	Vault   Vault
	Audit   *audit.Log
	Quota   *quota.Book
	Metrics *metrics.Metrics
	Log     *slog.Logger
	Peers   *Peers
	// MACKeyShare gives the canonical encoding of this party's share of an active MAC key.
	MACKeyShare func(keys.MACKey) ([]byte, error)
	// MayRetire returns an error if the caller may not retire the epoch.
	MayRetire func(ctx context.Context, epoch uint64) error
	// Retire erases an epoch, also in memory, and returns when that is in the audit log.
	Retire func(ctx context.Context, epoch uint64, reason string) (batches int, err error)
}

// Service implements lodge.tuples.v1.
type Service struct {
	tuplesv1.UnsafeTuplesServiceServer
	Config
	pooling chan struct{} // holds one while a share is taken that is to be pooled
}

// New makes the service. Run must run concurrently.
func New(c Config) *Service { return &Service{Config: c, pooling: make(chan struct{}, 1)} }

// sweepEvery is how often leases are looked at.
const sweepEvery = time.Second

// Run sees to leases and to the peers until ctx is done.
func (s *Service) Run(ctx context.Context) {
	go s.Peers.run(ctx)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	defer s.rememberAudit()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.Vault.Sweep(); err != nil {
			s.Log.Error("sweeping reservations", "error", err)
		}
		s.rememberAudit()
	}
}

func (s *Service) rememberAudit() {
	head := s.Audit.Head()
	if head.Seq == 0 {
		return
	}
	if err := s.Vault.RememberAudit(head.Hash.String()); err != nil {
		s.Log.Error("remembering the audit log", "error", err)
	}
}

// entry of the audit log about something that a caller did.
func entry(e audit.Event, p rpc.Principal, tenant string, objects ...string) audit.Entry {
	return audit.Entry{Event: e, Actor: p.Name, Auth: audit.Auth(p.Auth), Tenant: tenant, Objects: objects}
}

// caller of a handler.
func caller(ctx context.Context) (rpc.Principal, error) {
	p, ok := rpc.Caller(ctx)
	if !ok {
		return p, rpc.Errorf(rpc.Unauthenticated, "", "no caller")
	}
	return p, nil
}

// sees reports whether a caller may know of a tenant's tuples.
func sees(p rpc.Principal, tenant string) bool { return p.Role != rpc.Client || p.Serves(tenant) }
