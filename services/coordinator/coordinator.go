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
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

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
	prefix + "GetJob":    rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "WatchJob":  rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "ListJobs":  rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "CancelJob": rpc.Allow(rpc.Client).With(config.PermSubmit),
}

// Coordinator runs one session at a time, in the order of submission. Results are activated beside that: a party that
// is away does not hold up other jobs.
type Coordinator struct {
	coordinatorv1.UnimplementedCoordinatorServiceServer
	file        *config.CoordinatorFile
	version     string
	credentials *rpc.Credentials
	log         *slog.Logger
	metrics     *metrics.Metrics
	records     *records
	parties     []*member
	timing      timing

	wake    chan struct{}
	stopped chan struct{} // closed when the coordinator begins to stop

	activations sync.WaitGroup

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
	cancel  func() // ends its session, while there is one
	stop    string // why a client cancelled it
	note    string // what it waits for, where parties do not say
	begun   bool   // by this process
}

// Run serves until ctx is done.
func Run(ctx context.Context, f *config.CoordinatorFile, version string, log *slog.Logger) error {
	c, err := open(f, version, log)
	if err != nil {
		return err
	}
	defer c.close()
	l, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return err
	}
	return c.serve(ctx, l)
}

// open reads the records of earlier processes and prepares connections to the parties.
func open(f *config.CoordinatorFile, version string, log *slog.Logger) (_ *Coordinator, err error) {
	c := &Coordinator{
		file: f, version: version, log: log, metrics: metrics.New(version), timing: defaultTiming,
		jobs: map[string]*entry{}, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.credentials, err = rpc.LoadCredentials(f.TLS.Files()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.DataDir, 0o700); err != nil {
		return nil, err
	}
	if c.records, err = openRecords(filepath.Join(f.DataDir, "jobs.db")); err != nil {
		return nil, err
	}
	for i, m := range f.Roster.Parties {
		conn, err := rpc.Dial(m.Address, m.Identity, c.credentials)
		if err != nil {
			return nil, err
		}
		c.parties = append(c.parties, &member{i, m.Name, conn})
	}
	return c, c.load()
}

func (c *Coordinator) close() {
	for _, p := range c.parties {
		p.conn.Close()
	}
	if c.records != nil {
		c.records.close()
	}
}

// server has the coordinator's service and its status.
func (c *Coordinator) server() (*rpc.Server, error) {
	directory, err := c.file.Directory()
	if err != nil {
		return nil, err
	}
	rules := maps.Clone(Rules)
	maps.Copy(rules, status.Rules)
	server, err := rpc.NewServer(rpc.Options{
		Credentials: c.credentials, Directory: directory, Rules: rules, Log: c.log, Reflection: c.file.Reflection,
		Observe: func(method string, role rpc.Role, code string, took time.Duration) {
			c.metrics.Call(method, string(role), code, took)
		},
	})
	if err != nil {
		return nil, err
	}
	coordinatorv1.RegisterCoordinatorServiceServer(server, c)
	statusv1.RegisterStatusServiceServer(server, &status.Service{
		Name: config.CoordinatorName, Party: -1, Version: c.version, Roster: c.file.Roster.Hash(), Params: c.file.Params,
		Started: time.Now(), Ready: server.Ready, Running: c.running,
	})
	return server, nil
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

// serve works and answers until ctx is done. It stops being ready first, then ends what it leads, then its server.
func (c *Coordinator) serve(ctx context.Context, l net.Listener) error {
	server, err := c.server()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
	go func() {
		done <- server.Serve(l)
		cancel()
	}()
	context.AfterFunc(ctx, func() {
		server.SetReady(false)
		close(c.stopped)
	})
	server.SetReady(true)
	c.log.Info("coordinator is ready", "listen", l.Addr().String())
	c.work(ctx)
	<-c.stopped
	c.activations.Wait()
	stop, end := context.WithTimeout(context.Background(), c.timing.stop)
	defer end()
	server.Stop(stop)
	return <-done
}

// stopping reports whether the coordinator has begun to stop.
func (c *Coordinator) stopping() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// load reads the records of earlier processes.
func (c *Coordinator) load() error {
	all, err := c.records.all()
	for _, r := range all {
		c.jobs[r.job.GetId()] = &entry{job: r.job, key: r.key, changed: make(chan struct{})}
		c.list = append(c.list, r.job.GetId())
	}
	return err
}

// work takes jobs forward until ctx is done.
func (c *Coordinator) work(ctx context.Context) {
	for ctx.Err() == nil {
		if e := c.next(); e != nil {
			c.advance(ctx, e)
			continue
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
		}
	}
}

// next is the first job that is not over and that this process has not begun. What earlier processes left in the
// middle comes first: it was submitted first.
func (c *Coordinator) next() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.list {
		if e := c.jobs[id]; !e.begun && nextStep(e.job.GetState()) != stepNone {
			e.begun = true
			return e
		}
	}
	return nil
}

// settled names the sessions whose results are being activated.
func (c *Coordinator) settled() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]bool{}
	for id, e := range c.jobs {
		if e.job.GetState() == activating {
			names[fmt.Sprintf("%s-%d", id, e.job.GetOrdinal())] = true
		}
	}
	return names
}

// lastEpoch is the highest epoch that a job has made or tried to make.
func (c *Coordinator) lastEpoch() (last uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.jobs {
		if e.job.GetRequest().GetKind() == jobv1.Kind_KIND_KEYS {
			last = max(last, e.job.GetEpoch())
		}
	}
	return last
}

// update changes a job and wakes its watchers. A new state is durable before anybody sees it; where that fails, only
// an end is shown nevertheless. The caller's function holds the lock.
func (c *Coordinator) update(e *entry, change func(j *coordinatorv1.Job)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := proto.CloneOf(e.job)
	change(next)
	if now := next.GetState(); now != e.job.GetState() {
		if err := c.records.put(next, e.key); err != nil {
			c.log.Error("recording a job", "job", next.GetId(), "error", err)
			if !job.Final(now) {
				return err
			}
		}
		if job.Final(now) {
			e.note = ""
			c.metrics.JobEnded(job.KindName(next.GetRequest().GetKind()), strings.ToLower(strings.TrimPrefix(now.String(), "JOB_STATE_")))
		}
	}
	e.job = next
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

// snapshot is a copy of a job with the reason why it waits, and a channel that is closed when the job changes.
func (c *Coordinator) snapshot(e *entry) (*coordinatorv1.Job, chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := proto.CloneOf(e.job)
	switch s := j.GetState(); {
	case job.Final(s):
		j.Reason = j.GetFailure().GetReason()
	case e.stop != "":
		j.Reason = e.stop
	case e.note != "":
		j.Reason = e.note
	case s == pending && !e.begun:
		j.Reason = "waiting for the jobs before it"
	case s == activating:
		j.Reason = "activating"
	default:
		j.Reason = waiting(j.GetParties(), time.Now())
	}
	return j, e.changed
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
