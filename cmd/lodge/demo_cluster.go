package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// cluster is a demonstration's processes and connections.
type cluster struct {
	dir      string
	keep     bool
	net      *devnet.Cluster
	progress *progress
	procs    []*process
	operator *grpc.ClientConn
	clients  []*grpc.ClientConn // of each party
}

// anyCPU leaves a process free to run on all CPUs.
const anyCPU = -1

// clusterOptions say what cluster to start.
type clusterOptions struct {
	parties     int
	set         string
	multikey    bool                        // set is one of multi-key ciphertexts, and the roster pins it
	keep        bool                        // the working directory
	memory      uint64                      // of a party's sessions; at least demoMemory
	before      func(*devnet.Cluster) error // what to do with its files before the processes start, or nil
	noSacrifice bool                        // parties allow products without a sacrifice
	measured    bool                        // parties serve metrics, and party i runs on CPU i alone, if there are as many CPUs as parties
}

// demoMemory is what a party's sessions may hold.
const demoMemory = 6 << 30

// startCluster writes a cluster and starts its processes.
func startCluster(cmd *cobra.Command, o clusterOptions) (_ *cluster, err error) {
	s, err := plan.Lookup(o.set)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lodge-demo-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, keep: o.keep, progress: newProgress(cmd.ErrOrStderr())}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	c.progress.say("writing a cluster of %d parties", o.parties)
	options := devnet.Options{
		Parties: o.parties, Params: []string{o.set}, Dev: true, Insecure: s.Insecure, MaxMemory: max(o.memory, demoMemory), Metrics: o.measured,
		NoSacrifice: o.noSacrifice,
	}
	if o.multikey {
		options.Multikey = o.set
	}
	net, err := devnet.Write(filepath.Join(dir, "cluster"), options)
	if err != nil {
		return nil, err
	}
	c.net = net
	if o.before != nil {
		if err := o.before(net); err != nil {
			return nil, err
		}
	}
	return c, c.serve(cmd.Context(), o.measured && o.parties <= runtime.NumCPU())
}

// serve starts the cluster's processes, party i on CPU i alone if they are pinned, and waits until all can be called.
func (c *cluster) serve(ctx context.Context, pinned bool) (err error) {
	net := c.net
	if err := c.start("coordinator", "coordinator", net.Coordinator, anyCPU); err != nil {
		return err
	}
	for i, file := range net.Parties {
		cpu := anyCPU
		if pinned {
			cpu = i
		}
		if err := c.start(net.Roster.Parties[i].Name, "party", file, cpu); err != nil {
			return err
		}
	}
	return c.connect(ctx, func(i int) *process { return c.procs[i] })
}

func dial(net *devnet.Cluster, client, address, identity string) (*grpc.ClientConn, error) {
	credentials, err := net.Credentials(client)
	if err != nil {
		return nil, err
	}
	return rpc.Dial(address, identity, credentials)
}

// start runs this program again as a coordinator or a party, on one CPU (see onCPU) or any.
func (c *cluster) start(name, role, file string, cpu int) error {
	p, err := process{name: name, role: role, file: file, cpu: cpu, log: filepath.Join(c.dir, name+".log")}.run()
	if err != nil {
		return err
	}
	c.procs = append(c.procs, p)
	return nil
}

// ready waits until a process serves.
func (c *cluster) ready(ctx context.Context, p *process, conn *grpc.ClientConn) error {
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
			return fmt.Errorf("%s is not ready: %w", p.name, errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends all processes and removes what they wrote.
func (c *cluster) stop() {
	c.progress.done()
	for _, conn := range append(c.clients, c.operator) {
		if conn != nil {
			conn.Close()
		}
	}
	for _, p := range c.procs {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range c.procs {
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
	if c.keep {
		c.progress.say("kept %s", c.dir)
		c.progress.done()
		return
	}
	_ = os.RemoveAll(c.dir)
}

// job submits a job and shows it until it ends.
func (c *cluster) job(ctx context.Context, q *coordinatorv1.JobRequest) (*coordinatorv1.Job, error) {
	client := coordinatorv1.NewCoordinatorServiceClient(c.operator)
	r, err := client.SubmitJob(ctx, &coordinatorv1.SubmitJobRequest{Job: q})
	if err != nil {
		return nil, rpc.FromError(err)
	}
	stream, err := client.WatchJob(ctx, &coordinatorv1.WatchJobRequest{Id: r.GetJob().GetId()})
	for err == nil {
		var w *coordinatorv1.WatchJobResponse
		if w, err = stream.Recv(); err != nil {
			break
		}
		j := w.GetJob()
		c.progress.job(j)
		if j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED {
			return j, nil
		}
		if job.Final(j.GetState()) {
			return nil, jobFailed(j)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, rpc.FromError(err)
}

func jobFailed(j *coordinatorv1.Job) error {
	f := j.GetFailure()
	who := ""
	if f.GetBlame() != nil {
		who = fmt.Sprintf("; party %d is to blame", f.GetBlame().GetParty())
	} else if len(f.GetSuspects()) > 0 {
		who = fmt.Sprintf("; suspects: parties %v", f.GetSuspects())
	}
	in := ""
	if f.GetRound() != "" {
		in = fmt.Sprintf(" in round %d (%s)", f.GetRoundIndex(), f.GetRound())
	}
	return fmt.Errorf("job %s failed%s: %s%s", j.GetId(), in, f.GetReason(), who)
}
