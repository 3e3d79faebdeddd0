package refusals

import (
	"bytes"
	"context"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// holdHeader is the metadata key that names a call's hold.
const holdHeader = "refusals-hold"

// patience is the time limit for expected events on a busy machine.
const patience = 10 * time.Second

// holds keeps calls that request it in their handlers until their contexts are done and their
// callers have seen the end, and then lets them continue.
type holds struct {
	mu    sync.Mutex
	calls map[string]*held
}

// held is one call, as its server sees it.
type held struct {
	once     sync.Once
	entered  chan struct{} // closed when the handler has the request
	goOn     chan struct{} // closed when the caller has the response, so that the handler cannot respond earlier
	ended    chan struct{} // closed when the handler has returned
	deadline time.Time     // of the call; zero: no deadline
	why      error         // error of the context when the hold ended
	err      error         // error that the handler returned
}

// stay is called after the request was received.
func (h *held) stay(ctx context.Context) {
	h.once.Do(func() {
		h.deadline, _ = ctx.Deadline()
		close(h.entered)
		<-ctx.Done()
		h.why = ctx.Err()
		<-h.goOn
	})
}

func (s *holds) add() (id string, h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h = &held{entered: make(chan struct{}), goOn: make(chan struct{}), ended: make(chan struct{})}
	id = strconv.Itoa(len(s.calls))
	s.calls[id] = h
	return id, h
}

// of returns the hold that a call requests, or nil.
func (s *holds) of(ctx context.Context) *held {
	id := strings.Join(metadata.ValueFromIncomingContext(ctx, holdHeader), "")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// inner holds unary calls before the handler's own code, and streams after the handler received the
// first message.
func (s *holds) inner() rpc.Inner {
	return rpc.Inner{
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			h := s.of(ctx)
			if h == nil {
				return handle(ctx, req)
			}
			defer close(h.ended)
			h.stay(ctx)
			out, err := handle(ctx, req)
			h.err = err
			return out, err
		},
		Stream: func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			h := s.of(stream.Context())
			if h == nil {
				return handle(srv, stream)
			}
			defer close(h.ended)
			h.err = handle(srv, &heldStream{stream, h})
			return h.err
		},
	}
}

type heldStream struct {
	grpc.ServerStream
	held *held
}

func (s *heldStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	s.held.stay(s.Context())
	return nil
}

// begin makes a call that is held.
func (s *server) begin(ctx context.Context, caller, name string, m protoreflect.MethodDescriptor) (*held, chan error) {
	id, h := s.holds.add()
	ctx = metadata.AppendToOutgoingContext(ctx, holdHeader, id)
	out := make(chan error, 1)
	go func() {
		defer close(h.goOn)
		out <- call(ctx, s.conns[caller], name, m, dynamicpb.NewMessage(m.Input()))
	}()
	return h, out
}

// over waits until both sides of a call have ended without leftovers: the caller must have the code
// want, and the server the code of the request or one equivalent to the caller's.
func (h *held) over(t *testing.T, what string, out chan error, want rpc.Code, r row) {
	t.Helper()
	select {
	case err := <-out:
		if code(err) != want {
			t.Errorf("%s: the caller sees %v, want %s", what, err, want)
		}
	case <-time.After(patience):
		t.Fatalf("%s: the caller still waits", what)
	}
	select {
	case <-h.ended:
	case <-time.After(patience):
		t.Fatalf("%s: the handler still runs", what)
	}
	if got := code(h.err); !slices.Contains([]rpc.Code{rpc.Cancelled, rpc.TimedOut, r.empty}, got) {
		t.Errorf("%s: the handler ended with %v", what, h.err)
	}
	nothingLeft(t, what)
}

// cancelled makes a call that its caller cancels while the handler runs.
func (s *server) cancelled(t *testing.T, caller, name string, m protoreflect.MethodDescriptor, r row) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, out := s.begin(ctx, caller, name, m)
	what := "cancelled, " + caller
	select {
	case <-h.entered:
	case err := <-out:
		t.Fatalf("%s: ends before its handler has it: %v", what, err)
	case <-time.After(patience):
		t.Fatalf("%s: does not reach its handler", what)
	}
	if len(running(t)) == 0 {
		t.Errorf("%s: no goroutine of the call runs", what)
	}
	cancel()
	h.over(t, what, out, rpc.Cancelled, r)
	if h.why != context.Canceled {
		t.Errorf("%s: at the server the call ended with %v", what, h.why)
	}
}

// late makes a call whose deadline passes while the handler runs. If the machine was too busy to
// deliver the call in time, it tries again with more time.
func (s *server) late(t *testing.T, caller, name string, m protoreflect.MethodDescriptor, r row) {
	t.Helper()
	what := "too late, " + caller
	for limit := 25 * time.Millisecond; limit < patience; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		deadline, _ := ctx.Deadline()
		h, out := s.begin(ctx, caller, name, m)
		select {
		case <-h.entered:
		case err := <-out:
			if code(err) != rpc.TimedOut {
				t.Fatalf("%s: ends before its handler has it: %v", what, err)
			}
			continue
		}
		h.over(t, what, out, rpc.TimedOut, r)
		if h.deadline.IsZero() || h.deadline.After(deadline.Add(time.Second)) {
			t.Errorf("%s: the deadline is %v at the caller, and %v at the server", what, deadline, h.deadline)
		}
		return
	}
	t.Fatalf("%s: does not reach its handler", what)
}

// running returns the stacks of all server goroutines that are in a call: those that serve its
// client, and those that send and receive for it.
func running(t *testing.T) []string {
	t.Helper()
	var b bytes.Buffer
	must(t, pprof.Lookup("goroutine").WriteTo(&b, 2))
	return slices.DeleteFunc(strings.Split(b.String(), "\n\n"), func(stack string) bool {
		return !strings.Contains(stack, "grpc.(*Server).handleStream") && !strings.Contains(stack, "rpc.(*bounded)") &&
			!strings.Contains(stack, "rpc.Upload")
	})
}

// nothingLeft waits until no call runs at any server; calls between servers are short.
func nothingLeft(t *testing.T, what string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		left := running(t)
		if len(left) == 0 {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: %d goroutines of calls remain:\n%s", what, len(left), strings.Join(left, "\n\n"))
		}
	}
}
