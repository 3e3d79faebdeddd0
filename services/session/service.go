package session

import (
	"context"

	"google.golang.org/grpc"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Service implements the calls that all protocol services have in common. Each of them embeds it.
type Service struct {
	Sessions *Registry
	protocol jobv1.Protocol
	run      func(spec *jobv1.SessionSpec) Protocol
}

// NewService serves the sessions of one protocol; run makes the work of one.
func NewService(sessions *Registry, p jobv1.Protocol, run func(spec *jobv1.SessionSpec) Protocol) Service {
	return Service{sessions, p, run}
}

// Rules returns the rules of the gRPC service with this prefix: those for the common calls, and
// own.
func Rules(prefix string, own rpc.Rules) rpc.Rules {
	rules := rpc.Rules{
		prefix + "Start":     rpc.Allow(rpc.Coordinator),
		prefix + "GetStatus": rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
		prefix + "Watch":     rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
		prefix + "Cancel":    rpc.Allow(rpc.Coordinator),
		prefix + "Activate":  rpc.Allow(rpc.Coordinator),
	}
	for method, rule := range own {
		rules[prefix+method] = rule
	}
	return rules
}

// Start begins a session, or returns the status of the session that began with the same spec.
func (s Service) Start(_ context.Context, r *jobv1.StartRequest) (*jobv1.StartResponse, error) {
	st, err := s.Sessions.Start(s.protocol, r.GetSpec(), s.run(r.GetSpec()))
	return &jobv1.StartResponse{Status: st}, err
}

// visible returns a session if the caller may see it. A client acts for its tenants: sessions that
// make tuples for other tenants are not found. Sessions that make keys have no tenant.
func (s Service) visible(ctx context.Context, ref *jobv1.SessionRef) (*Entry, error) {
	x, err := s.Sessions.Get(ref)
	if err != nil {
		return nil, err
	}
	p, _ := rpc.Caller(ctx)
	tenant := x.Spec.GetTenant()
	//lodge:check session/tenant run=TestSessionsOfATenant a client sees the sessions of other tenants
	if p.Role == rpc.Client && tenant != "" && !p.Serves(tenant) {
		return nil, noSession(ref)
	}
	return x, nil
}

// GetStatus of a session.
func (s Service) GetStatus(ctx context.Context, r *jobv1.GetStatusRequest) (*jobv1.GetStatusResponse, error) {
	x, err := s.visible(ctx, r.GetRef())
	if err != nil {
		return nil, err
	}
	return &jobv1.GetStatusResponse{Status: x.Status()}, nil
}

// Watch streams the status of a session until it ends.
func (s Service) Watch(r *jobv1.WatchRequest, stream grpc.ServerStreamingServer[jobv1.WatchResponse]) error {
	x, err := s.visible(stream.Context(), r.GetRef())
	if err != nil {
		return err
	}
	return x.Watch(stream.Context(), func(st *jobv1.SessionStatus) error {
		return stream.Send(&jobv1.WatchResponse{Status: st})
	})
}

// Cancel ends a session that is not active yet, and waits for its end.
func (s Service) Cancel(ctx context.Context, r *jobv1.CancelRequest) (*jobv1.CancelResponse, error) {
	x, err := s.Sessions.Get(r.GetRef())
	if err != nil {
		return nil, err
	}
	st, err := x.Cancel(ctx, r.GetReason())
	return &jobv1.CancelResponse{Status: st}, err
}

// Activate unlocks a session's stored results.
func (s Service) Activate(_ context.Context, r *jobv1.ActivateRequest) (*jobv1.ActivateResponse, error) {
	x, err := s.Sessions.Get(r.GetRef())
	if err != nil {
		return nil, err
	}
	st, err := x.Activate(r.GetDigest())
	return &jobv1.ActivateResponse{Status: st}, err
}
