// Package cluster runs a coordinator and its parties as child processes, for demonstrations,
// development and benchmarks. It holds the secrets of all parties, as devnet writes them.
//
// A child is this program started again with the arguments "coordinator --config FILE" or "party
// --config FILE". The main function must serve both, and so must TestMain of a package that tests
// with a cluster.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Cluster is a running cluster with connections to its processes.
type Cluster struct {
	Net       *devnet.Cluster // its files
	Dir       string          // of logs, and of temporary files
	Keep      bool            // Stop leaves Dir
	Progress  *terminal.Progress
	Processes []*Process         // the coordinator, then the parties; empty if the cluster was not started here
	Operator  *grpc.ClientConn   // to the coordinator, as the operator
	Clients   []*grpc.ClientConn // to each party, as that party's client
}

// Options describe a new cluster.
type Options struct {
	Parties     int
	Set         string                      // parameter set
	Multikey    bool                        // the roster pins Set as the set of multi-key ciphertexts
	Keep        bool                        // Stop leaves the working directory
	Memory      uint64                      // limit of a party's sessions in bytes, at least DefaultMemory
	Prepare     func(*devnet.Cluster) error // changes the files before the processes start; may be nil
	NoSacrifice bool                        // parties accept jobs without a sacrifice
	Measured    bool                        // parties serve metrics, and party i uses only CPU i if there is a CPU for each party
}

// DefaultMemory is the memory limit of a party's sessions, in bytes.
const DefaultMemory = 6 << 30

// Start writes a new cluster to a temporary directory, starts its processes and waits until they
// serve. The caller must call Stop.
func Start(ctx context.Context, p *terminal.Progress, o Options) (_ *Cluster, err error) {
	s, err := plan.Lookup(o.Set)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lodge-demo-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Keep: o.Keep, Progress: p}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	c.Progress.Say("writing a cluster of %d parties", o.Parties)
	options := devnet.Options{
		Parties: o.Parties, Params: []string{o.Set}, Dev: true, Insecure: s.Insecure, MaxMemory: max(o.Memory, DefaultMemory), Metrics: o.Measured,
		NoSacrifice: o.NoSacrifice,
	}
	if o.Multikey {
		options.Multikey = o.Set
	}
	if c.Net, err = devnet.Write(filepath.Join(dir, "cluster"), options); err != nil {
		return nil, err
	}
	if o.Prepare != nil {
		if err := o.Prepare(c.Net); err != nil {
			return nil, err
		}
	}
	return c, c.serve(ctx, o.Measured && o.Parties <= runtime.NumCPU())
}

// Open starts the processes of a cluster that devnet wrote and waits until they serve. Stop keeps
// the cluster's directory. The caller must call Stop.
func Open(ctx context.Context, p *terminal.Progress, net *devnet.Cluster) (_ *Cluster, err error) {
	c := &Cluster{Net: net, Dir: net.Dir, Keep: true, Progress: p}
	if err := c.serve(ctx, false); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Attach connects to the processes of a cluster that already runs. Only a development cluster has
// the secrets of all clients, which Attach needs. The caller must call Stop, which does not stop
// those processes.
func Attach(ctx context.Context, p *terminal.Progress, dir string) (_ *Cluster, err error) {
	roster, err := config.LoadRoster(filepath.Join(dir, "roster.yaml"))
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "lodge-demo-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Net: &devnet.Cluster{Dir: dir, Roster: roster}, Dir: work, Progress: p}
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	return c, c.connect(ctx)
}

// serve starts the processes, party i on CPU i alone if they are pinned, and waits until all of
// them serve.
func (c *Cluster) serve(ctx context.Context, pinned bool) error {
	if err := c.start("coordinator", "coordinator", c.Net.Coordinator, anyCPU); err != nil {
		return err
	}
	for i, file := range c.Net.Parties {
		cpu := anyCPU
		if pinned {
			cpu = i
		}
		if err := c.start(c.Net.Roster.Parties[i].Name, "party", file, cpu); err != nil {
			return err
		}
	}
	return c.connect(ctx)
}

// start starts a process on one CPU or on anyCPU.
func (c *Cluster) start(name, role, config string, cpu int) error {
	p, err := Process{Name: name, role: role, config: config, cpu: cpu, Log: filepath.Join(c.Dir, name+".log")}.run()
	if err != nil {
		return err
	}
	c.Processes = append(c.Processes, p)
	return nil
}

// connect connects as the operator and as each party's client, and waits until all processes serve.
func (c *Cluster) connect(ctx context.Context) (err error) {
	r := c.Net.Roster
	if c.Operator, err = Dial(c.Net, devnet.Operator, r.Coordinator.Address, r.Coordinator.Identity); err != nil {
		return err
	}
	for i, m := range r.Parties {
		conn, err := Dial(c.Net, devnet.ClientName(i), m.Address, m.Identity)
		if err != nil {
			return err
		}
		c.Clients = append(c.Clients, conn)
	}
	for i, conn := range append([]*grpc.ClientConn{c.Operator}, c.Clients...) {
		p := &Process{Name: "a process of " + c.Net.Dir}
		if len(c.Processes) > 0 {
			p = c.Processes[i]
		}
		if err := ready(ctx, p, conn); err != nil {
			return err
		}
	}
	return nil
}

// Dial connects to a process of the cluster as one of its clients.
func Dial(net *devnet.Cluster, client, address, identity string) (*grpc.ClientConn, error) {
	credentials, err := net.Credentials(client)
	if err != nil {
		return nil, err
	}
	return rpc.Dial(address, identity, credentials)
}

// Client loads the configuration of a client, for the Go client packages.
func (c *Cluster) Client(name string) (lodge.Config, error) {
	return lodge.Load(filepath.Join(c.Net.Dir, "clients", name+".yaml"))
}

// ready waits until a process serves. p.done is nil for a process that was not started here.
func ready(ctx context.Context, p *Process, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
		if err == nil && r.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return nil
		}
		select {
		case <-p.done:
			return errors.New(p.ending())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", p.Name, errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Party returns the process of a party.
func (c *Cluster) Party(i int) *Process { return c.Processes[1+i] }

// stopTimeout is how long Stop waits for a process before it sends SIGKILL.
const stopTimeout = 10 * time.Second

// Stop closes the connections, stops the processes that were started here and removes Dir unless
// Keep is set.
func (c *Cluster) Stop() {
	c.Progress.Done()
	for _, conn := range append(c.Clients, c.Operator) {
		if conn != nil {
			conn.Close()
		}
	}
	for _, p := range c.Processes {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range c.Processes {
		select {
		case <-p.done:
		case <-time.After(stopTimeout):
			_ = p.Kill()
		}
	}
	if c.Keep {
		c.Progress.Say("kept %s", c.Dir)
		c.Progress.Done()
		return
	}
	_ = os.RemoveAll(c.Dir)
}
