// Package rpc is the one way in which Lodge's processes serve and call gRPC:
// TLS 1.3 with certificates on both sides, identities pinned by configuration,
// methods denied unless a rule allows them, bounded messages, deadlines, one
// error type, health, and a graceful stop that first stops being ready.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// MaxMessage bounds every message in bytes: a frame of 4 MiB and its envelope.
const MaxMessage = 4<<20 + 64<<10

// maxHeaders bounds the headers of a call in bytes, with a token among them.
const maxHeaders = 2 * MaxToken

// Options of a server.
type Options struct {
	Credentials *Credentials // required
	Directory   *Directory   // required
	// Tokens verifies bearer tokens of clients; nil takes none, and every caller has a certificate.
	Tokens Tokens
	Rules  Rules // what is not here is refused
	// UnaryTimeout caps a unary call whose caller allows more; 0 means 30 s.
	UnaryTimeout time.Duration
	// StallTimeout ends the stream of a client or coordinator that takes nothing of what is sent; 0 means 30 s.
	StallTimeout time.Duration
	// Observe is called once per call, if set; the method of a call that nothing serves is "unknown".
	Observe func(method string, role Role, code string, took time.Duration)
	// Streams is told of streams that begin (1) and end (-1), if set.
	Streams func(role Role, n int)
	Log     *slog.Logger // nil: discard
	// Reflection lets authenticated callers list the services.
	Reflection bool
	// Inner run around the handlers of calls that were let in, the first outermost.
	Inner []Inner
}

// Inner is what a program puts around handlers, such as a test that holds them. Both are required.
type Inner struct {
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
}

// Server is a gRPC server with Lodge's rules. Register services on it, then Serve.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
	ready  atomic.Bool
	opts   Options

	streams  streams
	buckets  buckets
	refusals *rate.Limiter // of lines in the log about refused calls
}

// NewServer makes a server that is not ready until SetReady(true).
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
	if o.UnaryTimeout == 0 {
		o.UnaryTimeout = 30 * time.Second
	}
	if o.StallTimeout == 0 {
		o.StallTimeout = 30 * time.Second
	}
	if o.Streams == nil {
		o.Streams = func(Role, int) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	rules := Rules{
		"/grpc.health.v1.Health/Check": Anyone,
		"/grpc.health.v1.Health/List":  Anyone,
		"/grpc.health.v1.Health/Watch": Anyone,
	}
	if o.Reflection {
		rules["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] = Anyone
		rules["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] = Anyone
	}
	for m, r := range o.Rules {
		rules[m] = r
	}
	o.Rules = rules
	s := &Server{
		opts: o, health: health.NewServer(), streams: streams{open: map[caller]int{}, tell: o.Streams}, buckets: newBuckets(o.Directory),
		refusals: rate.NewLimiter(10, 100),
	}
	unary, stream := []grpc.UnaryServerInterceptor{s.unary}, []grpc.StreamServerInterceptor{s.stream}
	for _, i := range o.Inner {
		unary, stream = append(unary, i.Unary), append(stream, i.Stream)
	}
	s.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(o.Credentials.Server(o.Tokens != nil))),
		grpc.ForceServerCodecV2(Codec),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(512),
		grpc.NumStreamWorkers(32), // stacks that have grown are used again; streams beyond these have goroutines of their own
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(s.tap),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
	)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	s.SetReady(false)
	if o.Reflection {
		reflection.Register(s.grpc)
	}
	return s, nil
}

// RegisterService makes Server a grpc.ServiceRegistrar.
func (s *Server) RegisterService(d *grpc.ServiceDesc, impl any) { s.grpc.RegisterService(d, impl) }

// SetReady sets the answer to health checks.
func (s *Server) SetReady(ready bool) {
	s.ready.Store(ready)
	st := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		st = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", st)
}

// Ready is what SetReady set.
func (s *Server) Ready() bool { return s.ready.Load() }

// Serve accepts connections until Stop. It refuses to start when a registered
// method has no rule, or a rule has no method.
func (s *Server) Serve(l net.Listener) error {
	if err := s.checkRules(); err != nil {
		return err
	}
	return s.grpc.Serve(l)
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
			return fmt.Errorf("rpc: a rule for %s, which is not served", m)
		}
	}
	return nil
}

// Stop stops being ready, lets running calls end until ctx is done, then cuts them.
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
