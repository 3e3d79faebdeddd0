package health

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
)

const (
	serving = healthpb.HealthCheckResponse_SERVING
	not     = healthpb.HealthCheckResponse_NOT_SERVING
	unknown = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
)

// newServer serves on a socket and returns a function that connects to it.
func newServer(t *testing.T) (*Server, func() *grpc.ClientConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(l, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Stop)
	return s, func() *grpc.ClientConn {
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func ask(ctx context.Context, conn *grpc.ClientConn, service string) (healthpb.HealthCheckResponse_ServingStatus, error) {
	r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	return r.GetStatus(), err
}

// A process is alive from the start, and ready from the call of Ready until it stops.
func TestCheck(t *testing.T) {
	s, dial := newServer(t)
	conn, ctx := dial(), limited(t)
	expect := func(when string, ready healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for service, want := range map[string]healthpb.HealthCheckResponse_ServingStatus{Live: serving, Ready: ready} {
			if got, err := ask(ctx, conn, service); err != nil || got != want {
				t.Errorf("%s: %q is %s, %v", when, service, got, err)
			}
		}
		all, err := healthpb.NewHealthClient(conn).List(ctx, &healthpb.HealthListRequest{})
		if err != nil || len(all.GetStatuses()) != 2 || all.GetStatuses()[Live].GetStatus() != serving || all.GetStatuses()[Ready].GetStatus() != ready {
			t.Errorf("%s: %v, %v", when, all, err)
		}
	}
	expect("before it is open", not)
	s.Ready(func() bool { return true })
	expect("open", serving)
	s.Ready(func() bool { return false })
	expect("in quarantine", not)
	s.Ready(func() bool { return true })
	expect("after it", serving)
	s.Ready(nil)
	expect("stopping", not)
	if _, err := ask(ctx, conn, "lodge.tuples.v1.TuplesService"); status.Code(err) != codes.NotFound {
		t.Errorf("another service: %v", err)
	}
	var none *Server
	none.Ready(nil)
	none.Stop()
	if off, err := Start("", nil); off != nil || err != nil {
		t.Errorf("without an address: %v, %v", off, err)
	}
}

// Watch sends only changes.
func TestWatch(t *testing.T) {
	s, dial := newServer(t)
	conn, ctx := dial(), limited(t)
	watch := func(service string) grpc.ServerStreamingClient[healthpb.HealthCheckResponse] {
		w, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	expect := func(w grpc.ServerStreamingClient[healthpb.HealthCheckResponse], want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if r, err := w.Recv(); err != nil || r.GetStatus() != want {
			t.Errorf("%v, %v; want %s", r, err, want)
		}
	}
	ready := watch(Ready)
	expect(ready, not)
	s.Ready(func() bool { return true })
	expect(ready, serving)
	s.Ready(nil)
	expect(ready, not)
	expect(watch("nothing"), unknown)
	s.Stop()
	if _, err := ready.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("in the end: %v", err)
	}
}

// The rate of queries to the store is bounded for any number of checks.
func TestQuestionsAreFew(t *testing.T) {
	s, dial := newServer(t)
	conn, ctx := dial(), limited(t)
	var asked atomic.Int64
	begun := time.Now()
	s.Ready(func() bool { asked.Add(1); return true })
	for range 200 {
		if got, err := ask(ctx, conn, Ready); err != nil || got != serving {
			t.Fatal(got, err)
		}
	}
	if most := int64(time.Since(begun)/fresh) + 1; asked.Load() > most {
		t.Errorf("200 checks asked %d times, more than %d", asked.Load(), most)
	}
}

// No other services are available, and the resources of callers are bounded.
func TestBounds(t *testing.T) {
	_, dial := newServer(t)
	conn, ctx := dial(), limited(t)
	if _, err := statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("another method: %v", err)
	}
	if err := conn.Invoke(ctx, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("reflection: %v", err)
	}
	if _, err := ask(ctx, conn, strings.Repeat("x", maxMessage)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large message: %v", err)
	}
	large := metadata.AppendToOutgoingContext(ctx, "x-large", strings.Repeat("x", maxHeaders))
	if _, err := ask(large, conn, Live); err == nil {
		t.Error("large headers are accepted")
	}
	hold, release := context.WithCancel(ctx)
	defer release()
	for range maxStreams {
		w, err := healthpb.NewHealthClient(conn).Watch(hold, &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = w.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := ask(short, conn, Live); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a stream too many: %v", err)
	}
	release()
	if _, err := ask(ctx, conn, Live); err != nil {
		t.Errorf("when the others are gone: %v", err)
	}
}

// Open connections do not lock out a supervisor: the oldest connection is closed.
func TestConnections(t *testing.T) {
	_, dial := newServer(t)
	ctx := limited(t)
	var held []net.Conn
	for range 3 * maxConns {
		c, err := net.Dial("tcp", strings.TrimPrefix(dial().Target(), "passthrough:///"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	if got, err := ask(ctx, dial(), Live); err != nil || got != serving {
		t.Errorf("with %d connections held: %s, %v", len(held), got, err)
	}
	if err := held[0].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, held[0]); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest connection is still open: %v", err)
	}
}
