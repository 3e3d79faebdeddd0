package rpc

import (
	"context"
	"io"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// RegisterService makes Server a grpc.ServiceRegistrar. The server wraps each method's handler: it
// authenticates, authorises and counts the caller before it reads the message.
func (s *Server) RegisterService(d *grpc.ServiceDesc, impl any) {
	all := func(string) bool { return true }
	s.grpc.RegisterService(s.wrapped(d, s.admit, s.streams, all), impl)
	if s.gateway != nil {
		if own := s.wrapped(d, s.admitProof, s.passed, s.opts.serves); len(own.Methods)+len(own.Streams) > 0 {
			s.gateway.RegisterService(own, impl)
		}
	}
}

// admission authenticates and authorises a call of a method. The caller calls leave once.
type admission func(ctx context.Context, method string, now time.Time) (p Principal, inside context.Context, leave func(), refused *Error)

// wrapped returns the methods of a service that serves reports, with wrapped handlers. The streams
// of their callers take places in streams.
func (s *Server) wrapped(d *grpc.ServiceDesc, admit admission, streams *places, serves func(method string) bool) *grpc.ServiceDesc {
	own := *d
	own.Methods, own.Streams = nil, nil
	for _, m := range d.Methods {
		if method := "/" + d.ServiceName + "/" + m.MethodName; serves(method) {
			m.Handler = s.unary(method, m.Handler, admit)
			own.Methods = append(own.Methods, m)
		}
	}
	for _, m := range d.Streams {
		if method := "/" + d.ServiceName + "/" + m.StreamName; serves(method) {
			m.Handler = s.stream(method, m, admit, streams)
			own.Streams = append(own.Streams, m)
		}
	}
	return &own
}

// admit authenticates and authorises a call, and counts it among the running calls.
func (s *Server) admit(ctx context.Context, method string, now time.Time) (p Principal, inside context.Context, leave func(), refused *Error) {
	from, refused := connectionOf(ctx)
	if refused != nil {
		return p, nil, nil, refused
	}
	header := headersOf(ctx)
	p, proof, refused := s.authenticate(ctx, from, header)
	if refused != nil {
		return p, nil, nil, refused
	}
	//lodge:check rpc/rate run=TestRateOf|TestRefusedCalls a client calls more often than it may
	if refused = s.buckets.take(p, now); refused != nil {
		return p, nil, nil, refused
	}
	//lodge:check rpc/checked run=TestWhoMayCall|TestEveryMethod|TestRequests calls are not authorised
	if refused = s.opts.Rules.check(method, p); refused != nil {
		return p, nil, nil, refused
	}
	//lodge:check rpc/connections run=TestConnectionsOfOneClient an identity has any number of connections
	if refused = s.connections.settle(from.from, caller{p.Role, p.Name}); refused != nil {
		return p, nil, nil, refused
	}
	place, refused := s.enter(p, "calls", s.calls)
	if refused != nil {
		return p, nil, nil, refused
	}
	from.from.wire.began()
	return p, WithProof(WithCaller(ctx, p), proof), func() { from.from.wire.ended(place) }, nil
}

func (s *Server) unary(method string, h grpc.MethodHandler, admit admission) grpc.MethodHandler {
	inner := s.innerUnary()
	return func(srv any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		start := time.Now()
		p, inside, leave, refused := admit(ctx, method, start)
		if refused != nil {
			return nil, s.finish(method, p, start, refused)
		}
		defer leave()
		ctx, cancel := context.WithTimeout(inside, s.opts.UnaryTimeout)
		defer cancel()
		from, refused := s.receiver(ctx, s.opts.Rules[method].most(MaxRequest))
		if refused != nil {
			return nil, s.finish(method, p, start, refused)
		}
		response, err := func() (response any, err error) {
			defer s.recovered(method, &err)
			return h(srv, ctx, from.only, inner)
		}()
		if err = s.finish(method, p, start, err); err != nil {
			return nil, err
		}
		return response, nil
	}
}

func (s *Server) stream(method string, d grpc.StreamDesc, admit admission, streams *places) grpc.StreamHandler {
	h := s.innerStream(d.Handler, &grpc.StreamServerInfo{FullMethod: method, IsClientStream: d.ClientStreams, IsServerStream: d.ServerStreams})
	most := MaxRequest
	if d.ClientStreams {
		most = MaxMessage
	}
	return func(srv any, ss grpc.ServerStream) error {
		start := time.Now()
		p, ctx, leave, refused := admit(ss.Context(), method, start)
		if refused != nil {
			return s.finish(method, p, start, refused)
		}
		defer leave()
		end, refused := s.enter(p, "streams", streams)
		//lodge:check rpc/streams run=TestStreamsOfOneClient a client has a message of 4 MiB underway in every call
		if refused != nil {
			return s.finish(method, p, start, refused)
		}
		defer end()
		from, refused := s.receiver(ctx, s.opts.Rules[method].most(most))
		if refused != nil {
			return s.finish(method, p, start, refused)
		}
		b := &bounded{ServerStream: ss, ctx: ctx, from: from, stall: s.opts.StallTimeout, upload: d.ClientStreams}
		if d.ClientStreams {
			from.first, from.slow = s.opts.StallTimeout, s.opts.StallTimeout
		}
		if p.Role == Peer { // sessions have their own deadlines for peers
			b.stall, from.first, from.slow = 0, 0, 0
		}
		defer s.openStream(p)()
		err := func() (err error) {
			defer s.recovered(method, &err)
			return h(srv, b)
		}()
		return s.finish(method, p, start, err)
	}
}

// openStream counts an open stream until ended is called.
func (s *Server) openStream(p Principal) (ended func()) {
	s.opts.Streams(p.Role, 1)
	return func() { s.opts.Streams(p.Role, -1) }
}

// unknown rejects a call of a method that no service implements.
func (s *Server) unknown(_ any, ss grpc.ServerStream) error {
	start := time.Now()
	method, _ := grpc.MethodFromServerStream(ss)
	p, _, leave, refused := s.admit(ss.Context(), method, start)
	if refused == nil { // cannot happen: no rule names the method
		leave()
		refused = Errorf(Forbidden, "", "no caller may call %s", method)
	}
	return s.finish(method, p, start, refused)
}

// innerUnary returns Options.Inner for unary methods; nil if there is none.
func (s *Server) innerUnary() grpc.UnaryServerInterceptor {
	if len(s.opts.Inner) == 0 {
		return nil
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		for i := len(s.opts.Inner) - 1; i >= 0; i-- {
			around, next := s.opts.Inner[i].Unary, h
			h = func(ctx context.Context, req any) (any, error) { return around(ctx, req, info, next) }
		}
		return h(ctx, req)
	}
}

// innerStream wraps the handler of a stream in Options.Inner.
func (s *Server) innerStream(h grpc.StreamHandler, info *grpc.StreamServerInfo) grpc.StreamHandler {
	for i := len(s.opts.Inner) - 1; i >= 0; i-- {
		around, next := s.opts.Inner[i].Stream, h
		h = func(srv any, ss grpc.ServerStream) error { return around(srv, ss, info, next) }
	}
	return h
}

// finish converts a handler's error into the error that the caller may see, and observes the call.
func (s *Server) finish(method string, p Principal, start time.Time, err error) error {
	code, out := s.public(method, p, err)
	if s.opts.Observe != nil {
		if _, served := s.opts.Rules[method]; !served { // callers must not choose the names of metrics
			method = "unknown"
		}
		s.opts.Observe(method, p.Role, code, time.Since(start))
	}
	return out
}

// public keeps typed errors and gRPC statuses. It logs any other error and hides it from the
// caller.
func (s *Server) public(method string, p Principal, err error) (string, error) {
	if err == nil {
		return "ok", nil
	}
	e := FromError(err)
	if _, isStatus := status.FromError(err); !isStatus && e.Code == Internal {
		s.opts.Log.Error("call failed", "method", method, "caller", p.Name, "error", err)
		e = &Error{Code: Internal, What: "the server failed; its log says more"}
	}
	if (e.Code == Forbidden || e.Code == Unauthenticated) && s.refusals.Allow() { // a rate limit: rejected callers must not fill the log
		s.opts.Log.Warn("call refused", "method", method, "caller", p.Name, "reason", e.What)
	}
	return string(e.Code), e.GRPCStatus().Err()
}

// recovered converts a panic of a handler into an internal error. It does not log the panic's
// value, which might hold a secret.
func (s *Server) recovered(method string, err *error) {
	if r := recover(); r != nil {
		s.opts.Log.Error("handler panicked", "method", method, "stack", string(debug.Stack()))
		*err = &Error{Code: Internal, What: "the server failed; its log says more"}
	}
}

// bounded is a server stream with limits on its messages. Unless the caller is a peer, it must also
// receive each message in time.
type bounded struct {
	grpc.ServerStream
	ctx    context.Context
	from   *receiver
	stall  time.Duration // 0 means no limit
	upload bool          // the caller streams
	took   bool          // the single message was read, if the caller does not stream
}

// Context returns a context with the caller of the stream.
func (b *bounded) Context() context.Context { return b.ctx }

// SendMsg returns an error if the caller has not received m in time. The handler then ends the
// stream, which also ends the send; m must not change until then.
func (b *bounded) SendMsg(m any) error {
	if b.stall == 0 {
		return b.ServerStream.SendMsg(m)
	}
	over := time.NewTimer(b.stall)
	defer over.Stop()
	late := Errorf(TimedOut, "read the stream continuously", "the caller received nothing for %s", b.stall)
	_, err := Within(over, late, func() (any, error) { return nil, b.ServerStream.SendMsg(m) })
	return err
}

// RecvMsg reads the caller's next message.
func (b *bounded) RecvMsg(m any) error {
	if b.upload {
		return b.from.message(m)
	}
	if b.took {
		return io.EOF
	}
	b.took = true
	return b.from.only(m)
}
