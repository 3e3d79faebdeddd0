// Package coordinator sequences jobs: it starts the same session at every party, watches them, activates the
// result when all parties report the same digest, and records what exists. It sees no secret, its package does
// not depend on the engine, and parties believe nothing of it that they can compare among themselves.
package coordinator

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/status"
)

const prefix = "/lodge.coordinator.v1.CoordinatorService/"

// Rules say who may call what.
var Rules = rpc.Rules{
	prefix + "SubmitJob": rpc.Allow(rpc.Client).With(config.PermSubmit),
	prefix + "GetJob":    rpc.Allow(rpc.Client),
	prefix + "WatchJob":  rpc.Allow(rpc.Client),
	prefix + "ListJobs":  rpc.Allow(rpc.Client),
	prefix + "CancelJob": rpc.Allow(rpc.Client).With(config.PermSubmit),
}

const (
	stopTime    = 5 * time.Second
	callTimeout = 30 * time.Second
	// startTimeout is how long a party that cannot be reached may take to come back when a job begins.
	startTimeout = 20 * time.Second
)

// Coordinator runs one job at a time, in the order of submission.
type Coordinator struct {
	coordinatorv1.UnimplementedCoordinatorServiceServer
	file    *config.CoordinatorFile
	log     *slog.Logger
	metrics *metrics.Metrics
	records *records
	parties []*member
	wake    chan struct{}

	mu   sync.Mutex
	jobs map[string]*entry
	list []string // ids in the order of submission
}

// member is a party as the coordinator reaches it.
type member struct {
	index int
	name  string
	conn  *grpc.ClientConn
}

// entry is a job in memory.
type entry struct {
	job     *coordinatorv1.Job
	key     string // idempotency key of its client
	changed chan struct{}
	cancel  context.CancelCauseFunc // of the run, while it runs
	stop    string                  // why a client cancelled it
}

// Run serves until ctx is done.
func Run(ctx context.Context, f *config.CoordinatorFile, version string, log *slog.Logger) error {
	c := &Coordinator{file: f, log: log, metrics: metrics.New(version), jobs: map[string]*entry{}, wake: make(chan struct{}, 1)}
	if err := os.MkdirAll(f.DataDir, 0o700); err != nil {
		return err
	}
	var err error
	if c.records, err = openRecords(filepath.Join(f.DataDir, "jobs.db")); err != nil {
		return err
	}
	defer c.records.close()
	credentials, err := rpc.LoadCredentials(f.TLS.Files())
	if err != nil {
		return err
	}
	for i, m := range f.Roster.Parties {
		conn, err := rpc.Dial(m.Address, m.Identity, credentials)
		if err != nil {
			return err
		}
		defer conn.Close()
		c.parties = append(c.parties, &member{i, m.Name, conn})
	}
	if err := c.load(); err != nil {
		return err
	}
	directory, err := f.Directory()
	if err != nil {
		return err
	}
	rules := maps.Clone(Rules)
	maps.Copy(rules, status.Rules)
	server, err := rpc.NewServer(rpc.Options{
		Credentials: credentials, Directory: directory, Rules: rules, Log: log, Reflection: f.Reflection,
		Observe: func(method string, role rpc.Role, code string, took time.Duration) {
			c.metrics.Call(method, string(role), code, took)
		},
	})
	if err != nil {
		return err
	}
	coordinatorv1.RegisterCoordinatorServiceServer(server, c)
	statusv1.RegisterStatusServiceServer(server, &status.Service{
		Name: "coordinator", Party: -1, Version: version, Roster: f.Roster.Hash(), Params: f.Params, Started: time.Now(),
		Ready: server.Ready, Running: c.running,
	})
	return c.serve(ctx, server)
}

// running counts the jobs that have begun and are not over.
func (c *Coordinator) running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, e := range c.jobs {
		if s := e.job.GetState(); s > pending && !job.Final(s) {
			n++
		}
	}
	return n
}

func (c *Coordinator) serve(ctx context.Context, server *rpc.Server) error {
	l, err := net.Listen("tcp", c.file.Listen)
	if err != nil {
		return err
	}
	if c.file.MetricsListen != "" {
		ml, err := net.Listen("tcp", c.file.MetricsListen)
		if err != nil {
			return err
		}
		go func() {
			if err := c.metrics.Serve(ctx, ml); err != nil {
				c.log.Error("metrics", "error", err)
			}
		}()
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		c.work(ctx)
	}()
	server.SetReady(true)
	c.log.Info("coordinator is ready", "listen", l.Addr().String())
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	server.SetReady(false)
	<-worked
	stop, end := context.WithTimeout(context.Background(), stopTime)
	defer end()
	server.Stop(stop)
	return nil
}

// load reads the records of earlier processes. A job that was not yet activating has failed: its sessions have
// nobody to lead them, and work cancels them first of all.
func (c *Coordinator) load() error {
	all, err := c.records.all()
	if err != nil {
		return err
	}
	for _, r := range all {
		e := &entry{job: r.job, key: r.key, changed: make(chan struct{})}
		c.jobs[r.job.GetId()] = e
		c.list = append(c.list, r.job.GetId())
	}
	return nil
}

// work runs jobs until ctx is done.
func (c *Coordinator) work(ctx context.Context) {
	for ctx.Err() == nil {
		e := c.next()
		if e == nil {
			select {
			case <-c.wake:
			case <-ctx.Done():
			}
			continue
		}
		c.run(ctx, e)
	}
}

// next is the first job that is not over.
func (c *Coordinator) next() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.list {
		if e := c.jobs[id]; !job.Final(e.job.GetState()) {
			return e
		}
	}
	return nil
}

// update changes a job, makes it durable when its state changed, and wakes the watchers.
func (c *Coordinator) update(e *entry, change func(j *coordinatorv1.Job)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := e.job.GetState()
	change(e.job)
	now := e.job.GetState()
	var err error
	if now != before {
		if job.Final(now) {
			e.job.Ended = timestamppb.Now()
			c.metrics.JobEnded(job.KindName(e.job.GetRequest().GetKind()), now.String())
		}
		if err = c.records.put(e.job, e.key); err != nil {
			c.log.Error("recording a job", "job", e.job.GetId(), "error", err)
		}
	}
	close(e.changed)
	e.changed = make(chan struct{})
	return err
}

func (c *Coordinator) snapshot(e *entry) (*coordinatorv1.Job, chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return proto.Clone(e.job).(*coordinatorv1.Job), e.changed
}

func (c *Coordinator) find(id string) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.jobs[id]
	if !ok {
		return nil, rpc.Errorf(rpc.NotFound, "`lodge jobs list` shows what there is", "no job %q", id)
	}
	return e, nil
}

// waits says what a running job waits for.
func (c *Coordinator) waits(parties []*coordinatorv1.PartyProgress) string {
	for _, p := range parties {
		if !p.GetReachable() {
			return fmt.Sprintf("party %d (%s) cannot be reached", p.GetParty(), p.GetName())
		}
	}
	for _, p := range parties {
		g := p.GetStatus().GetProgress()
		if p.GetStatus().GetState() >= jobv1.JobState_JOB_STATE_STORING || len(g.GetWaitingFor()) == 0 {
			continue
		}
		w := g.GetWaitingFor()[0]
		return fmt.Sprintf("waiting for party %d, round %d (%s), %d s", w, g.GetRoundIndex(), g.GetRound(),
			int(time.Since(g.GetSince().AsTime()).Seconds()))
	}
	return ""
}
