package rpc

import (
	"context"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// tap authenticates and authorises one call when its headers have come, before any message of it is read.
func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	start := time.Now()
	p, refused := s.authenticate(ctx, info.Header)
	if refused == nil {
		refused = s.buckets.take(p, start)
	}
	if refused == nil {
		refused = s.opts.Rules.check(info.FullMethodName, p)
	}
	if refused != nil {
		return ctx, s.finish(info.FullMethodName, p, start, refused)
	}
	return WithCaller(ctx, p), nil
}

// errUntapped refuses what did not come through tap.
var errUntapped = Errorf(Unauthenticated, "", "no caller")

// finish turns what a handler returned into what the caller may see, and observes it.
func (s *Server) finish(method string, p Principal, start time.Time, err error) error {
	code, out := s.public(method, p, err)
	if s.opts.Observe != nil {
		if _, served := s.opts.Rules[method]; !served { // whoever calls what there is not chooses its name
			method = "unknown"
		}
		s.opts.Observe(method, p.Role, code, time.Since(start))
	}
	return out
}

// public keeps typed errors and gRPC statuses; anything else is logged here
// and hidden from the caller.
func (s *Server) public(method string, p Principal, err error) (string, error) {
	if err == nil {
		return "ok", nil
	}
	e := FromError(err)
	if _, isStatus := status.FromError(err); !isStatus && e.Code == Internal {
		s.opts.Log.Error("call failed", "method", method, "caller", p.Name, "error", err)
		e = &Error{Code: Internal, What: "the server failed; its log says more"}
	}
	if (e.Code == Forbidden || e.Code == Unauthenticated) && s.refusals.Allow() { // whoever is refused does not fill the log
		s.opts.Log.Warn("call refused", "method", method, "caller", p.Name, "reason", e.What)
	}
	return string(e.Code), e.GRPCStatus().Err()
}

// recovered turns a panic of a handler into an internal error. The value of
// the panic is not logged: it might hold what must not be.
func (s *Server) recovered(method string, err *error) {
	if r := recover(); r != nil {
		s.opts.Log.Error("handler panicked", "method", method, "stack", string(debug.Stack()))
		*err = &Error{Code: Internal, What: "the server failed; its log says more"}
	}
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	start := time.Now()
	p, ok := Caller(ctx)
	if !ok {
		return nil, s.finish(info.FullMethod, p, start, errUntapped)
	}
	if refused := small(req); refused != nil {
		return nil, s.finish(info.FullMethod, p, start, refused)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.UnaryTimeout)
	defer cancel()
	resp, err := func() (resp any, err error) {
		defer s.recovered(info.FullMethod, &err)
		return h(ctx, req)
	}()
	if err = s.finish(info.FullMethod, p, start, err); err != nil {
		return nil, err
	}
	return resp, nil
}

func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	start := time.Now()
	p, ok := Caller(ss.Context())
	if !ok {
		return s.finish(info.FullMethod, p, start, errUntapped)
	}
	leave, refused := s.streams.enter(p)
	if refused != nil {
		return s.finish(info.FullMethod, p, start, refused)
	}
	defer leave()
	if p.Role != Peer { // a session has clocks of its own for its peers
		ss = &bounded{ServerStream: ss, stall: s.opts.StallTimeout, upload: info.IsClientStream}
	}
	err := func() (err error) {
		defer s.recovered(info.FullMethod, &err)
		return h(srv, ss)
	}()
	return s.finish(info.FullMethod, p, start, err)
}
