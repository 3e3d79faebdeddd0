package status

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/disk"
)

// patience bounds events that come within seconds. It allows for a busy machine.
const patience = 30 * time.Second

// asSelf is a stream of the process's own certificate.
type asSelf struct{ grpc.ServerStream }

func (s asSelf) Context() context.Context {
	return rpc.WithCaller(s.ServerStream.Context(), rpc.Principal{Role: rpc.Self, Name: "alice"})
}

// watchers serves a service on this machine, and returns connections to it.
func watchers(t *testing.T, s *Service) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
		return h(srv, asSelf{stream})
	}))
	statusv1.RegisterStatusServiceServer(server, s)
	healthpb.RegisterHealthServer(server, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return dial(t, l.Addr().String())
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// newService returns a service with one peer.
func newService(t *testing.T, running *atomic.Int64, peer *grpc.ClientConn, stopping chan struct{}) *Service {
	return &Service{
		Name: "alice", Started: time.Now(), Ready: func() bool { return true }, Running: func() int { return int(running.Load()) },
		Peers: []Link{{"bob", 1, peer}}, Certificate: func() time.Time { return time.Unix(1<<31, 0) }, Log: slog.New(slog.DiscardHandler),
		Disks: disk.New(0, disk.Volume{Name: disk.Audit, Dir: t.TempDir()}), Reports: NewReports(), Stopping: stopping,
	}
}

// A watcher gets the status at once, then each change, and nothing while only the memory and the
// clock change. It learns that the process stops.
func TestWatchStatus(t *testing.T) {
	var running atomic.Int64
	stopping := make(chan struct{})
	s := newService(t, &running, dial(t, "127.0.0.1:1"), stopping)
	stream, err := statusv1.NewStatusServiceClient(watchers(t, s)).WatchStatus(t.Context(), &statusv1.WatchStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	messages := make(chan *statusv1.GetStatusResponse, 100)
	var end error
	go func() {
		defer close(messages)
		for {
			m, err := stream.Recv()
			if err != nil {
				end = err
				return
			}
			messages <- m.GetStatus()
		}
	}()
	until := func(what string, holds func(*statusv1.GetStatusResponse) bool) (n int) {
		t.Helper()
		late := time.After(patience)
		for n = 1; ; n++ {
			select {
			case m, ok := <-messages:
				if !ok {
					t.Fatalf("%s: %v", what, end)
				}
				if holds(m) {
					return n
				}
			case <-late:
				t.Fatal(what)
			}
		}
	}
	until("the first status", func(m *statusv1.GetStatusResponse) bool { return m.GetName() == "alice" && m.GetNow() != nil })
	running.Store(2)
	until("a change", func(m *statusv1.GetStatusResponse) bool { return m.GetActiveSessions() == 2 })
	link := func(m *statusv1.GetStatusResponse) *statusv1.Link { return m.GetLinks()[0] }
	s.Reports.polled("bob", true, time.Millisecond)
	until("a peer comes", func(m *statusv1.GetStatusResponse) bool { return link(m).GetReachable() })
	s.Reports.said("bob", &statusv1.GetStatusResponse{Version: "v7", Ready: true})
	until("a peer says its version", func(m *statusv1.GetStatusResponse) bool { return link(m).GetVersion() == "v7" })
	s.Reports.polled("bob", false, 0)
	until("a peer goes", func(m *statusv1.GetStatusResponse) bool { return !link(m).GetReachable() && link(m).GetSince() != nil })
	// The state of the connection changes by itself, because nothing listens there; both states
	// count as one message each.
	begun := time.Now()
	n := until("an idle status", func(*statusv1.GetStatusResponse) bool { return time.Since(begun) > watchIdle })
	if n > 2*int(watchIdle/watchEvery)/3 {
		t.Errorf("%d messages without a change in %s", n, time.Since(begun))
	}
	close(stopping)
	for range messages {
	}
	if e := rpc.FromError(end); e.Code != rpc.Unavailable {
		t.Errorf("when the process stops: %v", end)
	}
}

// Watchers share a status for a short time, but none misses the change of a peer.
func TestSharedStatus(t *testing.T) {
	var running atomic.Int64
	s := newService(t, &running, dial(t, "127.0.0.1:1"), nil)
	first, _ := s.recent(true, s.Reports.change())
	again, _ := s.recent(true, s.Reports.change())
	if first != again && first.GetNow().AsTime().Add(watchEvery/2).After(again.GetNow().AsTime()) {
		t.Error("each watcher costs a status")
	}
	if other, _ := s.recent(false, s.Reports.change()); len(other.GetLinks()) != 0 {
		t.Error("a client without the permission gets the details that another watcher sees")
	}
	s.Reports.polled("bob", true, time.Millisecond)
	if after, _ := s.recent(true, s.Reports.change()); !after.GetLinks()[0].GetReachable() {
		t.Error("a watcher that was woken gets the old status")
	}
}

// relay passes bytes on until it hangs.
type relay struct {
	mu   sync.RWMutex // held for writing while the relay hangs
	addr string
}

// newRelay starts a relay to an address.
func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &relay{addr: l.Addr().String()}
	pass := func(from, to net.Conn) {
		defer from.Close()
		defer to.Close()
		b := make([]byte, 4096)
		for {
			n, err := from.Read(b)
			r.mu.RLock()
			_, failed := to.Write(b[:n])
			r.mu.RUnlock()
			if err != nil || failed != nil {
				return
			}
		}
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return r
}

// A peer that hangs, with its connection open, is seen to be down within five seconds, and so is
// its return.
func TestPeerHangs(t *testing.T) {
	if reachEvery+reachWait >= 5*time.Second {
		t.Errorf("a peer that hangs is seen after %s", reachEvery+reachWait)
	}
	var running atomic.Int64
	far := watchers(t, newService(t, &running, dial(t, "127.0.0.1:1"), nil))
	r := newRelay(t, far.Target())
	near := dial(t, r.addr)
	reports := NewReports()
	ctx, cancel := context.WithCancel(t.Context())
	var reaching sync.WaitGroup
	reaching.Go(func() { Reach(ctx, []Link{{"bob", 1, near}}, metrics.New("v1", metrics.Party), reports) })
	defer reaching.Wait()
	defer cancel()
	until := func(up bool) time.Duration {
		t.Helper()
		begun := time.Now()
		for {
			change := reports.change()
			var l statusv1.Link
			l.Name = "bob"
			reports.add(&l)
			if l.GetSince() != nil && l.GetReachable() == up {
				return time.Since(begun)
			}
			select {
			case <-change:
			case <-time.After(patience):
				t.Fatalf("not seen after %s", patience)
			}
		}
	}
	until(true)
	time.Sleep(500 * time.Millisecond) // the next check has not begun
	r.mu.Lock()
	down := until(false)
	r.mu.Unlock()
	back := until(true)
	t.Logf("down after %s, back after %s", down.Round(time.Millisecond), back.Round(time.Millisecond))
	if down > 8*time.Second || back > 8*time.Second { // five, on an idle machine
		t.Errorf("down after %s, back after %s", down, back)
	}
}
