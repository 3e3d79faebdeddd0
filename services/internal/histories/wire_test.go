package histories

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// process is a running process, from its start to its end.
type process struct {
	desc   *grpc.ServiceDesc
	server any
	ctx    context.Context
	end    context.CancelFunc
}

func (p *process) running() bool { return p != nil && p.ctx.Err() == nil }

// conn connects two processes within this test process, but encodes every message. A call goes to
// the process that runs at the other end when the call begins.
type conn struct {
	caller rpc.Principal
	to     func() *process      // nil: no process runs
	up     func() bool          // whether the network is up
	lose   func() bool          // whether the network loses the response to this call
	late   func() time.Duration // the delay of a call; nil: no delay
	// heard observes each completed call; sent observes each message of a stream when it is sent.
	heard func(method string, req, resp any, err error)
	sent  func(ctx context.Context, p *process, req *tuplesv1.FetchRequest) func(*tuplesv1.FetchResponse)
}

var errDown = rpc.Errorf(rpc.Unavailable, "", "the network is down")

// over returns an error as the receiver of a call sees it.
func over(err error) error {
	if err == nil {
		return nil
	}
	return status.FromProto(rpc.FromError(err).GRPCStatus().Proto()).Err()
}

// recode encodes and decodes a message.
func recode(from, to any) error {
	b, err := proto.Marshal(from.(proto.Message))
	if err != nil {
		return err
	}
	return proto.Unmarshal(b, to.(proto.Message))
}

// within returns the context of a handler, which ends with the call and with the process.
func (c *conn) within(ctx context.Context, p *process) (context.Context, func()) {
	ctx, cancel := context.WithCancel(rpc.WithCaller(ctx, c.caller))
	stop := context.AfterFunc(p.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Invoke makes a call. A delayed call arrives even if the caller has given up.
func (c *conn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	late := time.Duration(0)
	if c.late != nil {
		late = c.late()
	}
	if late == 0 {
		return c.invoke(ctx, method, args, reply)
	}
	type answer struct {
		reply proto.Message
		err   error
	}
	came := make(chan answer, 1)
	go func() {
		time.Sleep(late)
		a := answer{reply: reply.(proto.Message).ProtoReflect().New().Interface()}
		a.err = c.invoke(context.WithoutCancel(ctx), method, args, a.reply)
		came <- a
	}()
	select {
	case a := <-came:
		if a.err != nil {
			return a.err
		}
		return recode(a.reply, reply)
	case <-ctx.Done():
		return over(ctx.Err())
	}
}

func (c *conn) invoke(ctx context.Context, method string, args, reply any) error {
	p := c.to()
	if !c.up() || !p.running() {
		return over(errDown)
	}
	if ctx.Err() != nil {
		return over(ctx.Err())
	}
	name := method[strings.LastIndexByte(method, '/')+1:]
	for _, m := range p.desc.Methods {
		if m.MethodName != name {
			continue
		}
		inner, done := c.within(ctx, p)
		defer done()
		var req any
		resp, err := m.Handler(p.server, inner, func(in any) error { req = in; return recode(args, in) }, nil)
		if !p.running() {
			return over(errDown)
		}
		if c.heard != nil {
			c.heard(name, req, resp, err)
		}
		switch {
		case !c.up() || c.lose != nil && c.lose():
			return over(errDown)
		case err != nil:
			return over(err)
		}
		return recode(resp, reply)
	}
	return over(rpc.Errorf(rpc.Internal, "", "no method %s", method))
}

// stream is both ends of a server stream.
type stream struct {
	conn    *conn
	ctx     context.Context // context of the caller
	method  string
	process *process
	req     *tuplesv1.FetchRequest
	once    sync.Once
	out     chan *tuplesv1.FetchResponse
	ended   chan struct{}
	err     error
}

func (c *conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	p := c.to()
	if !c.up() || !p.running() {
		return nil, over(errDown)
	}
	return &stream{conn: c, ctx: ctx, method: method[strings.LastIndexByte(method, '/')+1:], process: p,
		out: make(chan *tuplesv1.FetchResponse, 1), ended: make(chan struct{})}, nil
}

func (s *stream) SendMsg(m any) error {
	s.req = new(tuplesv1.FetchRequest)
	return recode(m, s.req)
}

func (s *stream) CloseSend() error {
	s.once.Do(func() {
		go func() {
			defer close(s.ended)
			inner, done := s.conn.within(s.ctx, s.process)
			defer done()
			for _, d := range s.process.desc.Streams {
				if d.StreamName == s.method {
					s.err = d.Handler(s.process.server, &handled{s, inner, s.conn.sent(inner, s.process, s.req)})
				}
			}
			if !s.process.running() {
				s.err = errDown
			}
		}()
	})
	return nil
}

func (s *stream) RecvMsg(m any) error {
	select {
	case r := <-s.out:
		return recode(r, m)
	default:
	}
	select {
	case r := <-s.out:
		return recode(r, m)
	case <-s.ended:
		select {
		case r := <-s.out:
			return recode(r, m)
		default:
		}
		if s.err != nil {
			return over(s.err)
		}
		return io.EOF
	}
}

func (s *stream) Header() (metadata.MD, error) { return nil, nil }
func (s *stream) Trailer() metadata.MD         { return nil }
func (s *stream) Context() context.Context     { return s.ctx }

// handled is the handler's end of a stream.
type handled struct {
	s    *stream
	ctx  context.Context
	sent func(*tuplesv1.FetchResponse)
}

func (h *handled) RecvMsg(m any) error { return recode(h.s.req, m) }

func (h *handled) SendMsg(m any) error {
	if !h.s.process.running() || !h.s.conn.up() {
		return errDown
	}
	if err := h.ctx.Err(); err != nil {
		return err
	}
	r := new(tuplesv1.FetchResponse)
	if err := recode(m, r); err != nil {
		return err
	}
	h.sent(r)
	select {
	case h.s.out <- r:
		return nil
	case <-h.ctx.Done():
		return h.ctx.Err()
	}
}

func (h *handled) Context() context.Context     { return h.ctx }
func (h *handled) SetHeader(metadata.MD) error  { return nil }
func (h *handled) SendHeader(metadata.MD) error { return nil }
func (h *handled) SetTrailer(metadata.MD)       {}
