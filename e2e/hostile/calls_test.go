package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/rpc/rpctest"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

const (
	// ceiling is the maximum growth of a process's resident set under attack, in bytes. An attack of 460
	// calls added 2 GB before calls were limited.
	ceiling = 192 << 20
	// patience is the maximum duration of a call without messages: more than the server's limit of 10 s.
	patience = 25 * time.Second
)

var buildLodge = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "lodge")
	args := []string{"build", "-o", path}
	if own, ok := debug.ReadBuildInfo(); ok { // with the same kernels as these tests
		for _, s := range own.Settings {
			if s.Key == "-tags" && s.Value != "" {
				args = append(args, "-tags", s.Value)
			}
		}
	}
	out, err := exec.Command("go", append(args, "github.com/lodge-mpc/lodge/cmd/lodge")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// target is a process under attack.
type target struct {
	t        *testing.T
	name     string
	identity string // of the process
	address  string
	health   string
	cluster  *devnet.Cluster
	pid      int
	exited   chan struct{} // closed when the process has exited
	log      *bytes.Buffer // read it only after exit
}

// targets starts a party and a coordinator. Client `app` can call both but has no permissions.
func targets(t *testing.T) []*target {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	lodge, err := buildLodge()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := devnet.Write(filepath.Join(t.TempDir(), "cluster"), devnet.Options{Parties: 2, Params: []string{"insecure-6"}, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	party, coordinator := cluster.Roster.Parties[0], cluster.Roster.Coordinator
	list := []*target{
		{name: "party", identity: party.Identity, address: party.Address},
		{name: "coordinator", identity: coordinator.Identity, address: coordinator.Address},
	}
	for i, file := range []string{cluster.Parties[0], cluster.Coordinator} {
		x := list[i]
		x.t, x.cluster, x.exited, x.log = t, cluster, make(chan struct{}), new(bytes.Buffer)
		x.health = disarm(t, file)
		cmd := exec.Command(lodge, x.name, "--config", file)
		cmd.Stdout, cmd.Stderr = x.log, x.log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		x.pid = cmd.Process.Pid
		go func() {
			defer close(x.exited)
			_ = cmd.Wait() // it was killed
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have exited already
			<-x.exited
			if t.Failed() {
				t.Logf("%s: %s", x.name, x.log)
			}
		})
	}
	for _, x := range list {
		x.serves("at the start")
	}
	return list
}

// disarm removes all permissions of client `app` and enables the process's probes. It returns the address
// of the probes.
func disarm(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	if err := yaml.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	clients := []any{map[string]any{"name": devnet.App, "identity": "spiffe://lodge/app", "permissions": []string{}}}
	for _, c := range f["clients"].([]any) {
		if c.(map[string]any)["name"] != devnet.App {
			clients = append(clients, c)
		}
	}
	f["clients"] = clients
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f["health_listen"] = l.Addr().String()
	if b, err = yaml.Marshal(f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// tls returns the TLS configuration of a client of the cluster.
func (x *target) tls(client string) *tls.Config {
	x.t.Helper()
	c, err := x.cluster.Credentials(client)
	if err != nil {
		x.t.Fatal(err)
	}
	return c.Client(x.identity)
}

func (x *target) dial(client string) *rpctest.Conn {
	x.t.Helper()
	conn, err := rpctest.Dial(x.t.Context(), x.address, x.tls(client))
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { conn.Close() })
	return conn
}

// serves checks that the process still responds to another client.
func (x *target) serves(when string) {
	x.t.Helper()
	creds, err := x.cluster.Credentials(devnet.Operator)
	if err != nil {
		x.t.Fatal(err)
	}
	conn, err := rpc.Dial(x.address, x.identity, creds)
	if err != nil {
		x.t.Fatal(err)
	}
	defer conn.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(x.t.Context(), 5*time.Second)
		_, err = statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
		cancel()
		select {
		case <-x.exited:
			x.t.Fatalf("%s: the %s has ended", when, x.name)
		default:
		}
		if err == nil {
			return
		}
		if when != "at the start" || time.Now().After(end) {
			x.t.Fatalf("%s: the %s does not serve another client: %v", when, x.name, err)
		}
	}
}

// memory returns the current and the peak resident set of the process in bytes.
func (x *target) memory() (now, peak int64) {
	x.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.pid))
	if err != nil {
		x.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "VmRSS:" && fields[0] != "VmHWM:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			x.t.Fatal(err)
		}
		if fields[0] == "VmRSS:" {
			now = kib << 10
		} else {
			peak = kib << 10
		}
	}
	return now, peak
}

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

const getStatus = "/lodge.status.v1.StatusService/GetStatus"

// An identity that may only call GetStatus makes thousands of calls that never complete, or announce and
// send the largest messages. The process must stay small, serve another client, and end the calls.
func TestCallsWithoutPermission(t *testing.T) {
	full := append(rpctest.Prefix(rpc.MaxMessage), make([]byte, 4<<20)...)
	partial := append(rpctest.Prefix(rpc.MaxRequest), make([]byte, 60<<10)...)
	attacks := []attack{
		{name: "headers only", method: getStatus, conns: 8, calls: 250},
		{name: "half a prefix", method: getStatus, conns: 2, calls: 250, send: []byte{0, 0}, size: 2},
		{name: "part of a message", method: getStatus, conns: 2, calls: 250, send: partial, size: 1 << 14},
		{name: "part of a message in frames of one byte", method: getStatus, conns: 2, calls: 10, send: partial, size: 1},
		{name: "the largest messages", method: getStatus, conns: 2, calls: 100, send: full, size: 1 << 14},
		{name: "the largest messages, complete", method: getStatus, conns: 1, calls: 60, send: full, size: 1 << 14, last: true},
		{name: "a method without permission", method: "/lodge.tuples.v1.TuplesService/ReportFailedCheck", conns: 2, calls: 100, send: full[:1<<20], size: 1 << 14},
		{name: "a stream without permission", method: "/lodge.decryption.v1.DecryptionService/DecryptShare", conns: 2, calls: 100, send: full[:1<<20], size: 1 << 14},
		{name: "a method that is not there", method: "/a.B/C", conns: 2, calls: 250, send: full[:1<<16], size: 1 << 14},
	}
	for _, x := range targets(t) {
		t.Run(x.name, func(t *testing.T) {
			x.t = t
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

// An identity without permission makes complete calls with large headers, and has no flow-control window for the responses.
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
						call, err := conn.Open(getStatus, "x-filler", filler)
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

// An identity without permissions opens hundreds of connections, in addition to anonymous connections.
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
