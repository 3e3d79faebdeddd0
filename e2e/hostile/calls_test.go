package hostile

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/rpc/rpctest"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

const (
	// ceiling is the maximum growth of a process's resident set under attack, in bytes. An attack
	// of 460 calls added 2 GB before calls were limited.
	ceiling = 192 << 20
	// patience is the maximum duration of a call without messages: more than the server's limit of
	// 10 s.
	patience = 25 * time.Second
)

// attack describes many calls of one kind.
type attack struct {
	name   string
	method string
	conns  int
	calls  int // calls per connection
	send   []byte
	size   int // of a frame
	last   bool
}

// run starts the calls and returns them.
func (a attack) run(x *target) []*rpctest.Call {
	x.t.Helper()
	var mu sync.Mutex
	var list []*rpctest.Call
	var all sync.WaitGroup
	for range a.conns {
		conn := x.dial(devnet.App)
		all.Go(func() {
			for range a.calls {
				call, err := conn.Open(a.method)
				if err == nil && len(a.send) > 0 {
					err = call.Send(a.send, a.size, a.last)
				}
				if err != nil {
					return // the server has closed the connection
				}
				mu.Lock()
				list = append(list, call)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return list
}

const (
	getStatus   = "/lodge.status.v1.StatusService/GetStatus"
	getCapacity = "/lodge.evaluator.v1.EvaluatorService/GetCapacity"
)

// An identity that may call at most GetStatus makes thousands of calls that never complete, or
// announce and send the largest messages. The process must stay small, serve another client, and
// end the calls.
func TestCallsWithoutPermission(t *testing.T) {
	full := append(rpctest.Prefix(rpc.MaxMessage), make([]byte, 4<<20)...)
	partial := append(rpctest.Prefix(rpc.MaxRequest), make([]byte, 60<<10)...)
	for _, x := range targets(t) {
		t.Run(x.name, func(t *testing.T) {
			x.t = t
			attacks := []attack{
				{name: "headers only", method: x.unary, conns: 8, calls: 250},
				{name: "half a prefix", method: x.unary, conns: 2, calls: 250, send: []byte{0, 0}, size: 2},
				{name: "part of a message", method: x.unary, conns: 2, calls: 250, send: partial, size: 1 << 14},
				{name: "part of a message in frames of one byte", method: x.unary, conns: 2, calls: 10, send: partial, size: 1},
				{name: "the largest messages", method: x.unary, conns: 2, calls: 100, send: full, size: 1 << 14},
				{name: "the largest messages, complete", method: x.unary, conns: 1, calls: 60, send: full, size: 1 << 14, last: true},
				{name: "a method without permission", method: x.denied, conns: 2, calls: 100, send: full[:1<<20], size: 1 << 14},
				{name: "a stream without permission", method: x.stream, conns: 2, calls: 100, send: full[:1<<20], size: 1 << 14},
				{name: "a method that is not there", method: "/a.B/C", conns: 2, calls: 250, send: full[:1<<16], size: 1 << 14},
			}
			before, _ := x.memory()
			var calls []*rpctest.Call
			for _, a := range attacks {
				calls = append(calls, a.run(x)...)
				x.serves("during " + a.name)
			}
			left := 0
			for end := time.Now().Add(patience); len(calls) > 0; calls = calls[1:] {
				st := calls[0].Status(max(0, time.Until(end)))
				if st == nil {
					left++
				}
			}
			if left > 0 {
				t.Errorf("%d calls have not ended", left)
			}
			x.serves("after the attacks")
			_, peak := x.memory()
			t.Logf("memory: %d MiB before, %d MiB at the peak", before>>20, peak>>20)
			if peak-before > ceiling {
				t.Errorf("the attacks added %d MiB to %d MiB", (peak-before)>>20, before>>20)
			}
		})
	}
}

// An identity without permission makes complete calls with large headers, and has no flow-control
// window for the responses.
func TestResponsesNobodyTakes(t *testing.T) {
	filler := strings.Repeat("x", 15<<10)
	for _, x := range targets(t) {
		t.Run(x.name, func(t *testing.T) {
			x.t = t
			before, _ := x.memory()
			var all sync.WaitGroup
			for range 40 {
				conn := x.dial(devnet.App)
				if err := conn.Window(0); err != nil {
					t.Fatal(err)
				}
				all.Go(func() {
					for range 500 {
						call, err := conn.Open(x.unary, "x-filler", filler)
						if err == nil {
							err = call.Send(rpctest.Prefix(0), 5, true)
						}
						if err != nil {
							return // the server has closed the connection
						}
					}
				})
			}
			all.Wait()
			x.serves("while responses are not received")
			_, peak := x.memory()
			t.Logf("memory: %d MiB before, %d MiB at the peak", before>>20, peak>>20)
			if peak-before > ceiling {
				t.Errorf("the attack added %d MiB to %d MiB", (peak-before)>>20, before>>20)
			}
		})
	}
}

// An identity without permissions opens hundreds of connections, in addition to anonymous
// connections.
func TestConnectionsWithoutPermission(t *testing.T) {
	for _, x := range targets(t) {
		t.Run(x.name, func(t *testing.T) {
			x.t = t
			before, _ := x.memory()
			var silent []net.Conn
			for range 300 {
				c, err := net.Dial("tcp", x.address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				silent = append(silent, c)
			}
			config, refused := x.tls(devnet.App), 0
			for range 200 {
				conn, err := rpctest.Dial(t.Context(), x.address, config)
				if err != nil {
					refused++
					continue
				}
				defer conn.Close()
			}
			x.serves("beside the connections")
			open := 0
			for _, c := range silent {
				if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
					open++
				}
			}
			if open > 128 {
				t.Errorf("%d connections are open without a handshake", open)
			}
			_, peak := x.memory()
			t.Logf("memory: %d MiB before, %d MiB at the peak; %d connections could not be made, %d are open without a handshake",
				before>>20, peak>>20, refused, open)
			if peak-before > ceiling {
				t.Errorf("the connections added %d MiB to %d MiB", (peak-before)>>20, before>>20)
			}
		})
	}
}

// Any client can connect to the port for probes.
func TestProbes(t *testing.T) {
	for _, x := range targets(t) {
		t.Run(x.name, func(t *testing.T) {
			x.t = t
			before, _ := x.memory()
			full := append(rpctest.Prefix(4<<20), make([]byte, 1<<20)...)
			var calls []*rpctest.Call
			for i := range 60 {
				conn, err := rpctest.Dial(t.Context(), x.health, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				for range 8 {
					call, err := conn.Open(healthpb.Health_Check_FullMethodName)
					if err == nil && i%2 == 1 {
						err = call.Send(full, 1<<14, false)
					}
					if err != nil {
						break // the server has closed the connection
					}
					calls = append(calls, call)
				}
			}
			for _, call := range calls {
				if call.Status(10*time.Second) == nil {
					t.Fatal("a call goes on")
				}
			}
			conn, err := rpctest.Dial(t.Context(), x.health, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			call, err := conn.Open(healthpb.Health_Check_FullMethodName)
			if err == nil {
				err = call.Send(rpctest.Prefix(0), 5, true)
			}
			if err != nil {
				t.Fatal(err)
			}
			if st := call.Status(5 * time.Second); st.Code() != codes.OK {
				t.Errorf("a probe after the attack: %v", st)
			}
			_, peak := x.memory()
			t.Logf("memory: %d MiB before, %d MiB at the peak", before>>20, peak>>20)
			if peak-before > ceiling {
				t.Errorf("the attack added %d MiB to %d MiB", (peak-before)>>20, before>>20)
			}
		})
	}
}
