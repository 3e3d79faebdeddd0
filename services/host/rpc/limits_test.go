package rpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc/rpctest"
)

// attacked is a server that counts rejections, with raw connections to it below gRPC.
type attacked struct {
	*world
	address string
	server  *Server

	mu    sync.Mutex
	count map[string]int
}

// attack serves GetStatus to clients. get is its handler; nil responds immediately.
func attack(t *testing.T, o Options, get func(context.Context) (*statusv1.GetStatusResponse, error)) *attacked {
	t.Helper()
	a := &attacked{world: newWorld(t), count: map[string]int{}}
	if get == nil {
		get = whoami
	}
	o.Refused = func(reason string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.count[reason]++
	}
	if o.Rules == nil {
		o.Rules = Rules{statusMethod: Anyone}
	}
	a.address, a.server = a.serve(o, get)
	return a
}

func (a *attacked) refused(reason string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[reason]
}

func (a *attacked) dial(identity string) *rpctest.Conn {
	a.t.Helper()
	conn, err := rpctest.Dial(a.t.Context(), a.address, a.credentials(a.ca, pki.Leaf{Identity: identity}).Client(alice))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { conn.Close() })
	return conn
}

func (a *attacked) open(c *rpctest.Conn, method string, headers ...string) *rpctest.Call {
	a.t.Helper()
	call, err := c.Open(method, headers...)
	if err != nil {
		a.t.Fatal(err)
	}
	return call
}

// ends waits for a call to end with a code; "" is success.
func (a *attacked) ends(name string, call *rpctest.Call, want Code) {
	a.t.Helper()
	st := call.Status(10 * time.Second)
	if st == nil {
		a.t.Errorf("%s: the call goes on", name)
		return
	}
	e := FromError(st.Err())
	if want == "" && e != nil || want != "" && (e == nil || e.Code != want) {
		a.t.Errorf("%s: %v, want %q", name, e, want)
	}
	if (want == Busy || want == TimedOut) && e != nil && e.Next == "" {
		a.t.Errorf("%s: %v does not say what to do", name, e)
	}
}

const lone = "spiffe://lodge/client/lone" // a client without permissions

// message returns a message with its prefix.
func message(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return append(rpctest.Prefix(len(b)), b...)
}

// The messages of a call and the pauses between them are limited.
func TestReceive(t *testing.T) {
	a := attack(t, Options{RequestTimeout: 100 * time.Millisecond, Rules: Rules{statusMethod: Anyone.Bounded(100)}}, nil)
	conn := a.dial(lone)
	good := message(&statusv1.GetStatusRequest{})
	for _, c := range []struct {
		name    string
		headers []string
		send    []byte
		last    bool
		want    Code
		reason  string
	}{
		{name: "a message", send: good, last: true},
		{name: "headers only", want: TimedOut, reason: RefusedSlow},
		{name: "headers only, with a deadline of years", headers: []string{"grpc-timeout", "99999999H"}, want: TimedOut, reason: RefusedSlow},
		{name: "half a prefix", send: good[:3], want: TimedOut, reason: RefusedSlow},
		{name: "half a message", send: append(rpctest.Prefix(50), 1, 2, 3), want: TimedOut, reason: RefusedSlow},
		{name: "a message, and no end", send: good, want: TimedOut, reason: RefusedSlow},
		{name: "a length beyond the method's", send: rpctest.Prefix(101), want: TooLarge, reason: RefusedMessage},
		{name: "the largest length", send: []byte{0, 255, 255, 255, 255}, want: TooLarge, reason: RefusedMessage},
		{name: "no message", last: true, want: Invalid},
		{name: "two messages", send: append(slices.Clone(good), good...), last: true, want: Invalid},
		{name: "no protobuf", send: append(rpctest.Prefix(3), 255, 255, 255), last: true, want: Invalid},
		{name: "less than the length", send: append(rpctest.Prefix(50), 1), last: true, want: Internal},
	} {
		before := a.refused(c.reason)
		call := a.open(conn, statusMethod, c.headers...)
		if len(c.send) > 0 || c.last {
			if err := call.Send(c.send, 1<<14, c.last); err != nil {
				t.Fatal(err)
			}
		}
		a.ends(c.name, call, c.want)
		if c.reason != "" && a.refused(c.reason) != before+1 {
			t.Errorf("%s: %d refusals for %s", c.name, a.refused(c.reason)-before, c.reason)
		}
	}
	eventually(t, "calls that have ended keep their places", func() bool { return a.server.calls.empty() })
}

// A message that arrives byte by byte has one deadline as a whole.
func TestTrickle(t *testing.T) {
	a := attack(t, Options{RequestTimeout: 200 * time.Millisecond}, nil)
	call := a.open(a.dial(lone), statusMethod)
	if err := call.Send(rpctest.Prefix(1000), 1, false); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for call.Status(20*time.Millisecond) == nil && time.Since(start) < 5*time.Second {
		if err := call.Send([]byte{0}, 1, false); err != nil {
			t.Fatal(err)
		}
	}
	a.ends("a trickle", call, TimedOut)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Compressed messages are refused, because their length does not limit the size of the decoded
// message.
func TestCompressed(t *testing.T) {
	a := attack(t, Options{}, nil)
	conn := a.dial(lone)
	call := a.open(conn, statusMethod, "grpc-encoding", "identity")
	if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
		t.Fatal(err)
	}
	a.ends("identity", call, "")
	// gRPC refuses encodings that are not registered, so the test registers one.
	registerCompressor()
	call = a.open(conn, statusMethod, "grpc-encoding", compressorName)
	if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
		t.Fatal(err)
	}
	a.ends("compressed", call, Invalid)
	call = a.open(conn, statusMethod)
	if err := call.Send([]byte{1, 0, 0, 0, 0}, 100, true); err != nil {
		t.Fatal(err)
	}
	a.ends("the flag alone", call, Invalid)
}

// A message in frames of one byte takes no more memory than its length.
func TestSmallFrames(t *testing.T) {
	a := attack(t, Options{RequestTimeout: 30 * time.Second}, nil)
	conn := a.dial(lone)
	const calls, size = 8, 32 << 10
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	open := make([]*rpctest.Call, calls)
	body := append(rpctest.Prefix(size), bytes.Repeat([]byte{0x0a}, size-1)...)
	var all sync.WaitGroup
	for i := range open {
		open[i] = a.open(conn, statusMethod)
	}
	for _, call := range open {
		all.Go(func() {
			if err := call.Send(body, 1, false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	time.Sleep(200 * time.Millisecond) // the server reads the sent data
	if grown := heap() - before; grown > 8*calls*size {
		t.Errorf("%d bytes of messages take %d", calls*size, grown)
	}
}

// holding returns a handler that holds calls until end is called.
func holding() (get func(context.Context) (*statusv1.GetStatusResponse, error), end func()) {
	c := make(chan struct{})
	return func(ctx context.Context) (*statusv1.GetStatusResponse, error) {
		select {
		case <-c:
		case <-ctx.Done():
		}
		return &statusv1.GetStatusResponse{}, nil
	}, sync.OnceFunc(func() { close(c) })
}

func TestCallsOfOneClient(t *testing.T) {
	get, end := holding()
	a := attack(t, Options{Limits: Limits{CallsPerClient: 3}, RequestTimeout: time.Minute}, get)
	defer end()
	one, other := a.dial(lone), a.dial(lone)
	// Calls count before their message has arrived, and over all connections.
	for i := range 3 {
		call := a.open([]*rpctest.Conn{one, other}[i%2], statusMethod)
		if i > 0 {
			if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "three calls run", func() bool { return a.server.calls.of(caller{Client, "lone"}) == 3 })
	a.ends("one more", a.open(other, statusMethod), Busy)
	if a.refused(RefusedCall) != 1 {
		t.Errorf("%d refusals", a.refused(RefusedCall))
	}
	call := a.open(a.dial("spiffe://lodge/client/mpc"), statusMethod)
	if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
		t.Fatal(err)
	}
	end()
	a.ends("another client", call, "")
	one.Close()
	eventually(t, "calls that have ended keep their places", func() bool { return a.server.calls.empty() })
	call = a.open(other, statusMethod)
	if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
		t.Fatal(err)
	}
	a.ends("after the others", call, "")
}

func TestCallsOfAllClients(t *testing.T) {
	get, end := holding()
	a := attack(t, Options{Limits: Limits{Calls: 3, CallsPerClient: 2}, RequestTimeout: time.Minute}, get)
	defer end()
	one, other, peer := a.dial(lone), a.dial("spiffe://lodge/client/mpc"), a.dial("spiffe://lodge/party/bob")
	for _, conn := range []*rpctest.Conn{one, one, other} {
		a.open(conn, statusMethod)
	}
	eventually(t, "three calls run", func() bool { return a.server.calls.total() == 3 })
	a.ends("one more", a.open(other, statusMethod), Busy)
	call := a.open(peer, statusMethod)
	if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
		t.Fatal(err)
	}
	end()
	a.ends("a peer", call, "")
}

func TestConnectionsOfOneClient(t *testing.T) {
	a := attack(t, Options{Limits: Limits{ConnectionsPerClient: 2}}, nil)
	get := func(c *rpctest.Conn) *rpctest.Call {
		call := a.open(c, statusMethod)
		if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
			t.Fatal(err)
		}
		return call
	}
	one, two, three := a.dial(lone), a.dial(lone), a.dial(lone)
	a.ends("the first", get(one), "")
	a.ends("the second", get(two), "")
	a.ends("the third", get(three), Busy)
	a.ends("another client", get(a.dial("spiffe://lodge/client/mpc")), "")
	if a.refused(RefusedConnection) < 1 {
		t.Error("no refusal is counted")
	}
	one.Close()
	eventually(t, "a connection that has ended keeps its place", func() bool { return a.server.connections.places.of(caller{Client, "lone"}) == 1 })
	a.ends("the third, when the first has ended", get(three), "")
}

// The oldest connections without an identity are closed for new ones.
func TestPending(t *testing.T) {
	a := attack(t, Options{}, nil)
	var conns []net.Conn
	for range mostPending + 5 {
		c, err := net.Dial("tcp", a.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	eventually(t, "the oldest are closed", func() bool { return a.refused(RefusedHandshake) == 5 })
	if err := conns[0].SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conns[0].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the oldest: %v", err)
	}
	call := a.open(a.dial(lone), statusMethod)
	if err := call.Send(message(&statusv1.GetStatusRequest{}), 100, true); err != nil {
		t.Fatal(err)
	}
	a.ends("a client beside them", call, "")
}

func TestLoose(t *testing.T) {
	a := attack(t, Options{}, nil)
	config := a.credentials(a.ca, pki.Leaf{Identity: "spiffe://lodge/client/stranger"}).Client(alice)
	config.NextProtos = []string{"h2"}
	var conns []*tls.Conn
	for range mostLoose + 3 {
		c, err := tls.Dial("tcp", a.address, config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	eventually(t, "the oldest are closed", func() bool { return a.refused(RefusedStranger) == 3 })
	a.server.connections.mu.Lock()
	n := len(a.server.connections.loose)
	a.server.connections.mu.Unlock()
	if n != mostLoose {
		t.Errorf("%d strangers", n)
	}
	for _, c := range conns {
		c.Close()
	}
	eventually(t, "closed connections of strangers are counted", func() bool {
		a.server.connections.mu.Lock()
		defer a.server.connections.mu.Unlock()
		return len(a.server.connections.loose)+len(a.server.connections.pending) == 0
	})
}

// A rejected caller leaves no goroutine or timer behind, with any deadline. gRPC keeps a timer for
// each call that a tap refuses.
func TestRefusedCallsLeaveNothing(t *testing.T) {
	a := attack(t, Options{Rules: Rules{statusMethod: Allow(Peer)}}, nil)
	conn := a.dial(lone)
	flood := func(n int) {
		for range n {
			call := a.open(conn, statusMethod, "grpc-timeout", "99999999H")
			if st := call.Status(10 * time.Second); st == nil || FromError(st.Err()).Code != Forbidden {
				t.Fatal(st)
			}
		}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	flood(500)
	before := heap()
	flood(5000)
	if grown := heap() - before; grown > 5000*100 {
		t.Errorf("5000 calls that were refused leave %d bytes", grown)
	}
}

func TestLimitsAreValid(t *testing.T) {
	for l, want := range map[Limits]bool{
		{}: true, {Calls: 10}: false, {Calls: 10, CallsPerClient: 10}: true, {CallsPerClient: -1}: false,
		{Connections: 3, ConnectionsPerClient: 4}: false, {ConnectionsPerClient: 512}: true, {ConnectionsPerClient: 513}: false,
	} {
		if err := l.Valid(); (err == nil) != want {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// eventually waits for an asynchronous effect.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 10 s: " + what)
		}
	}
}

func (p *places) of(c caller) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[c]
}

func (p *places) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients
}

func (p *places) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held) == 0 && p.clients == 0
}
