// Package rpc serves and calls gRPC for all of Lodge's processes: TLS 1.3 with certificates on both
// sides, identities pinned by configuration, methods denied unless a rule allows them, limits on
// messages, deadlines, one error type, health, and a graceful stop that first reports not ready.
package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// MaxMessage is the largest message in bytes: a frame of 4 MiB and its envelope.
const MaxMessage = 4<<20 + 64<<10

// Flow-control windows: bytes that a caller may send on a stream, and on a connection, before a
// handler reads them. A frame of an exchange must fit. On a link with 50 ms latency one stream
// reaches 80 MB/s.
const (
	streamWindow     = 4 << 20
	connectionWindow = 16 << 20
)

// maxHeaders limits the headers of a call in bytes, including a token.
const maxHeaders = 2 * MaxToken

// Options configure a server.
type Options struct {
	Credentials *Credentials // required
	Directory   *Directory   // required
	// Tokens verifies clients' bearer tokens. If nil, tokens are rejected and every caller needs a
	// certificate.
	Tokens Tokens
	Rules  Rules // a method without a rule is rejected
	// UnaryTimeout limits the deadline of unary calls; 0 means 30 s.
	UnaryTimeout time.Duration
	// RequestTimeout limits the time in which the message of a call must arrive; 0 means 10 s.
	RequestTimeout time.Duration
	// Limits on the calls and connections of callers.
	Limits Limits
	// Refused, if set, is called with one of Refusals when a limit rejects something.
	Refused func(reason string)
	// Connected, if set, is called when callers open (1) and close (-1) connections.
	Connected func(role Role, n int)
	// StallTimeout ends the stream of a client or coordinator that stops receiving; 0 means 30 s.
	StallTimeout time.Duration
	// Observe, if set, is called once per call; the method of a call that no service implements is
	// "unknown".
	Observe func(method string, role Role, code string, took time.Duration)
	// Streams, if set, is called when streams begin (1) and end (-1).
	Streams func(role Role, n int)
	Log     *slog.Logger // nil discards all messages
	// Reflection lets authenticated callers list the services.
	Reflection bool
	// Inner handlers wrap the handlers of admitted calls, the first outermost.
	Inner []Inner
	// Gateway lists the methods that Server.Gateway serves.
	Gateway []string
}

// Inner wraps handlers, for example in a test that delays them. Both fields are required.
type Inner struct {
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
}

// Server is a gRPC server with Lodge's rules. Register services on it, then Serve.
type Server struct {
	grpc    *grpc.Server
	gateway *grpc.Server // nil without Options.Gateway
	health  *health.Server
	ready   atomic.Bool
	opts    Options

	calls       *places
	streams     *places
	passed      *places // streams of the gateway
	connections *connections
	buckets     buckets
	refusals    *rate.Limiter // limits log lines about rejected calls
}

// NewServer returns a server that is not ready until SetReady(true).
func NewServer(o Options) (*Server, error) {
	if o.Credentials == nil {
		return nil, errors.New("rpc: a server needs TLS credentials")
	}
	if m := o.Credentials.current.Load(); m == nil || m.certificate == nil {
		return nil, errors.New("rpc: a server needs a certificate")
	}
	if o.Directory == nil {
		return nil, errors.New("rpc: a server needs a directory of identities")
	}
	if err := o.Limits.Valid(); err != nil {
		return nil, fmt.Errorf("rpc: limits: %w", err)
	}
	o.fill()
	s := &Server{
		opts: o, health: health.NewServer(), buckets: newBuckets(o.Directory), refusals: rate.NewLimiter(10, 100),
		calls:   newPlaces(o.Limits.Calls, o.Limits.CallsPerClient, memberCalls),
		streams: newPlaces(o.Limits.Calls, min(clientStreams, o.Limits.CallsPerClient), memberStreams),
		passed:  newPlaces(gatewayStreams, gatewayStreamsOne, gatewayStreamsOne),
	}
	s.connections = &connections{
		places:   newPlaces(o.Limits.Connections, o.Limits.ConnectionsPerClient, memberConnections),
		identify: s.identify, refused: o.Refused, tell: o.Connected,
	}
	s.grpc = grpc.NewServer(
		grpc.Creds(handshaker{credentials.NewTLS(o.Credentials.Server(o.Tokens != nil)), s.connections}),
		grpc.ForceServerCodecV2(Codec),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		// With dynamic windows gRPC would buffer up to 16 MiB of every stream that a handler does
		// not read.
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.MaxConcurrentStreams(512),
		grpc.NumStreamWorkers(32), // reuses grown stacks; each further stream gets a new goroutine
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(s.tap),
		grpc.UnknownServiceHandler(s.unknown),
	)
	if len(o.Gateway) > 0 {
		s.gateway = grpc.NewServer(grpc.ForceServerCodecV2(Codec), grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))
	}
	healthpb.RegisterHealthServer(s, s.health)
	s.SetReady(false)
	if o.Reflection {
		reflection.Register(struct {
			grpc.ServiceRegistrar
			reflection.ServiceInfoProvider
		}{s, s.grpc})
	}
	return s, nil
}

// fill sets defaults.
func (o *Options) fill() {
	o.UnaryTimeout = cmp.Or(o.UnaryTimeout, 30*time.Second)
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 10*time.Second)
	o.StallTimeout = cmp.Or(o.StallTimeout, 30*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Streams == nil {
		o.Streams = func(Role, int) {}
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	if o.Connected == nil {
		o.Connected = func(Role, int) {}
	}
	o.Limits = o.Limits.filled()
	const health, small = "/grpc.health.v1.Health/", 1 << 10
	rules := Rules{
		health + "Check": Anyone.Bounded(small),
		health + "List":  Anyone.Bounded(small),
		health + "Watch": Anyone.Bounded(small),
	}
	if o.Reflection {
		rules["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] = Anyone.Bounded(small)
		rules["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] = Anyone.Bounded(small)
	}
	maps.Copy(rules, o.Rules)
	o.Rules = rules
}

// SetReady sets the response to health checks.
func (s *Server) SetReady(ready bool) {
	s.ready.Store(ready)
	st := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		st = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", st)
}

// Ready reports the value of SetReady.
func (s *Server) Ready() bool { return s.ready.Load() }

// Serve accepts connections until Stop. It returns an error at once if a registered method has no
// rule, or a rule has no method.
func (s *Server) Serve(l net.Listener) error {
	if err := s.checkRules(); err != nil {
		return err
	}
	return s.grpc.Serve(s.connections.listener(l))
}

func (s *Server) checkRules() error {
	methods := map[string]bool{}
	var missing []string
	for service, info := range s.grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			full := "/" + service + "/" + m.Name
			methods[full] = true
			if _, ok := s.opts.Rules[full]; !ok {
				missing = append(missing, full)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("rpc: no rule for %s", strings.Join(missing, ", "))
	}
	for m := range s.opts.Rules {
		if !methods[m] {
			return fmt.Errorf("rpc: a rule names %s, which no service implements", m)
		}
	}
	return nil
}

// Stop reports not ready, waits for running calls until ctx is done, then cancels them.
func (s *Server) Stop(ctx context.Context) {
	s.health.Shutdown()
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
	}
}
