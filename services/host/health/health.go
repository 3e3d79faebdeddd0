// Package health tells a supervisor whether a process is alive and ready. It serves only
// grpc.health.v1, in plaintext. Its responses are not secret, and requests cannot change any state.
// A supervisor has no certificate, so this service is not part of package rpc. Connections,
// streams, messages and queries to the store are bounded, and a new connection is always accepted,
// even if clients hold all others open.
package health

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// Names of the services in health checks.
const (
	Live  = ""      // the process responds
	Ready = "ready" // the process is usable: its store is open and not in quarantine, and it is not stopping
)

// Limits on the resources of callers.
const (
	maxMessage = 1 << 10 // bytes
	maxHeaders = 4 << 10 // bytes
	maxStreams = 4       // per connection
	maxConns   = 16
	idleTime   = 30 * time.Second // per connection
	sendTime   = 2 * time.Second  // for receiving the message of a call and sending the response
	window     = 64 << 10         // bytes of a stream that are buffered before its handler reads them
	fresh      = time.Second      // validity of a cached readiness result
)

// Server serves health checks. The methods of a nil Server do nothing.
type Server struct {
	healthpb.UnimplementedHealthServer
	grpc  *grpc.Server
	ready atomic.Pointer[func() bool]
	ended <-chan struct{} // closed when the server stops
	end   func()

	mu     sync.Mutex
	of     *func() bool // the function that was called last
	at     time.Time
	answer bool
}

// Start listens and serves. It returns nil if the address is empty. The process is alive, but not
// ready before a call of Ready.
func Start(address string, log *slog.Logger) (*Server, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return serve(l, log), nil
}

func serve(l net.Listener, log *slog.Logger) *Server {
	ctx, end := context.WithCancel(context.Background())
	s := &Server{ended: ctx.Done(), end: end, grpc: grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ConnectionTimeout(5*time.Second),
		grpc.InTapHandle(limit),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: idleTime, Timeout: 5 * time.Second}),
	)}
	healthpb.RegisterHealthServer(s.grpc, s)
	go func() {
		if err := s.grpc.Serve(Bounded(l)); err != nil {
			log.Error("health", "error", err)
		}
	}()
	return s
}

// limit sets a deadline for a call when its headers have arrived. Watch has no deadline: it lasts
// until the caller ends it or loses its connection to a newer one.
func limit(ctx context.Context, info *tap.Info) (context.Context, error) {
	//lodge:check health/deadline run=TestCallsWithoutMessages a caller that sends no message keeps a call open without limit
	if info.FullMethodName != healthpb.Health_Watch_FullMethodName {
		limited, cancel := context.WithTimeout(ctx, sendTime)
		context.AfterFunc(limited, cancel)
		ctx = limited
	}
	return ctx, nil
}

// Ready sets the function that decides whether the process is ready; with nil it is not ready.
func (s *Server) Ready(f func() bool) {
	switch {
	case s == nil:
	case f == nil:
		s.ready.Store(nil)
	default:
		s.ready.Store(&f)
	}
}

// Stop immediately ends all calls and connections.
func (s *Server) Stop() {
	if s != nil {
		s.end()
		s.grpc.Stop()
	}
}

// able reports whether the process is ready, from a result that is at most fresh old.
func (s *Server) able() bool {
	f := s.ready.Load()
	if f == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of != f || time.Since(s.at) >= fresh {
		s.answer = (*f)()
		s.of, s.at = f, time.Now()
	}
	return s.answer && s.ready.Load() == f // Ready may have been called in the meantime
}

func (s *Server) status(service string) healthpb.HealthCheckResponse_ServingStatus {
	switch {
	case service == Live || service == Ready && s.able():
		return healthpb.HealthCheckResponse_SERVING
	case service == Ready:
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
}

// Check implements the service.
func (s *Server) Check(_ context.Context, q *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	st := s.status(q.GetService())
	if st == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Error(codes.NotFound, `health: ask about "" or "ready"`)
	}
	return &healthpb.HealthCheckResponse{Status: st}, nil
}

// List implements the service.
func (s *Server) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	return &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{
		Live: {Status: s.status(Live)}, Ready: {Status: s.status(Ready)},
	}}, nil
}

// Watch implements the service: it sends the result of Check, and again whenever it changes.
func (s *Server) Watch(q *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	tick := time.NewTicker(fresh)
	defer tick.Stop()
	for last := healthpb.HealthCheckResponse_ServingStatus(-1); ; {
		if st := s.status(q.GetService()); st != last {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: st}); err != nil {
				return err
			}
			last = st
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return status.Error(codes.Unavailable, "health: the process ends")
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

// Bounded is a listener with at most 16 connections: a new connection closes the oldest. It is for
// ports without authentication.
func Bounded(l net.Listener) net.Listener { return &bounded{Listener: l} }

type bounded struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn // oldest first
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.conns) >= maxConns {
		b.conns[0].Close()
		b.conns = b.conns[1:]
	}
	b.conns = append(b.conns, c)
	return &conn{Conn: c, from: b}, nil
}

// conn is removed from its listener when it is closed.
type conn struct {
	net.Conn
	from *bounded
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.from.mu.Lock()
	c.from.conns = slices.DeleteFunc(c.from.conns, func(x net.Conn) bool { return x == c.Conn })
	c.from.mu.Unlock()
	return c.Conn.Close()
}
