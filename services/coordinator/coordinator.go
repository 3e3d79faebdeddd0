// Package coordinator sequences jobs. It starts the same session at every party and watches the
// sessions. When all parties report the same digest it activates the result, and it records which
// results exist. The coordinator sees no secret and does not depend on the engine. Parties do not
// trust its statements where they can compare values among themselves.
package coordinator

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/console"
	"github.com/lodge-mpc/lodge/services/coordinator/stock"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/health"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/traces"
	"github.com/lodge-mpc/lodge/services/ops/status"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/disk"
)

// Coordinator runs several jobs concurrently and starts them in the order of submission as far as
// schedule.go allows. Results are activated concurrently with running jobs: an unreachable party
// delays other jobs only if they need the result being activated.
type Coordinator struct {
	coordinatorv1.UnimplementedCoordinatorServiceServer
	file        *config.CoordinatorFile
	version     string
	credentials *rpc.Credentials
	log         *slog.Logger
	metrics     *metrics.Metrics
	traces      *traces.Tracer // nil without a trace collector
	records     *records
	parties     []*member
	timing      timing
	inner       []rpc.Inner
	health      *health.Server // nil without a listen address
	disks       *disk.Watch
	reports     *status.Reports
	console     *console.Console

	wake    chan struct{}
	stopped chan struct{} // closed when the coordinator begins to stop

	leads       sync.WaitGroup
	activations sync.WaitGroup
	stock       *stock.Service
	rotations   *rotations

	mu   sync.Mutex
	jobs map[string]*entry
	list []string // job identifiers in the order of submission
}

// member is a connection to one party.
type member struct {
	index int
	name  string
	conn  *grpc.ClientConn
	full  atomic.Bool // whether the party ever refused a session because of concurrent sessions
}

// entry holds a job in memory.
type entry struct {
	job     *coordinatorv1.Job
	request *coordinatorv1.JobRequest // the request of the job; never changes
	key     string                    // idempotency key of its client
	until   time.Time                 // deadline of the request's timeout, by the monotonic clock; zero: no timeout
	changed chan struct{}
	cancel  func()    // ends the running session, if any
	stop    string    // why a client cancelled it
	note    string    // the reason why the job waits, if no party reports it
	moved   time.Time // when the job began or last progressed
	begun   bool      // this process works on the job
	doing   step      // the step that this process began
	starts  bool      // some parties have not accepted the job yet
	refused string    // why parties refused it next to other jobs, since it was put back
	beside  []*entry  // those other jobs, while it waits for one to end
}

// Run serves until ctx is done. It adds the interceptors in inner around the handlers.
func Run(ctx context.Context, f *config.CoordinatorFile, version string, log *slog.Logger, inner ...rpc.Inner) error {
	h, err := health.Start(f.HealthListen, log) // responds before the records are open
	if err != nil {
		return err
	}
	defer h.Stop()
	c, err := open(f, version, log)
	if err != nil {
		return err
	}
	defer c.close()
	c.inner, c.health = inner, h
	l, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return err
	}
	return c.serve(ctx, l)
}

// open reads the records of earlier processes and prepares the connections to the parties.
func open(f *config.CoordinatorFile, version string, log *slog.Logger) (_ *Coordinator, err error) {
	c := &Coordinator{
		file: f, version: version, log: log, metrics: metrics.New(version, metrics.Coordinator), timing: defaultTiming,
		disks:   disk.New(uint64(f.Disk.MinFree), disk.Volume{Name: disk.Data, Dir: f.DataDir}),
		reports: status.NewReports(), rotations: newRotations(), jobs: map[string]*entry{}, wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	c.timing.away = time.Duration(f.PartyTimeout)
	defer func() {
		if err != nil {
			c.close()
			err = damaged(err)
		}
	}()
	if c.credentials, err = rpc.LoadCredentials(f.TLS.Files()); err != nil {
		return nil, err
	}
	if c.traces, err = f.Tracing.Start(config.CoordinatorName, version, log); err != nil {
		return nil, err
	}
	c.metrics.Certificate(c.credentials.NotAfter)
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
		c.parties = append(c.parties, &member{index: i, name: m.Name, conn: conn})
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	c.countJobs()
	parties := make([]stock.Party, len(c.parties))
	for i, p := range c.parties {
		parties[i] = stock.Party{Name: p.name, Conn: p.conn}
	}
	c.stock, err = stock.Open(stock.Options{
		Dir: filepath.Join(f.DataDir, "stock"), Parties: parties, Queue: (*queue)(c), Metrics: c.metrics, Tenants: f.Tenants(), Log: log,
		Ceilings: stock.Ceilings{Bytes: uint64(f.Stock.MaxBytesPerParty), Memory: uint64(f.Stock.MaxJobMemory), Jobs: f.Stock.MaxJobs},
		Limits:   func(client, tenant string) stock.Limits { return stock.LimitsOf(f.ReserveLimits(client, tenant)) },
	})
	return c, err
}

func (c *Coordinator) close() {
	c.traces.Stop()
	for _, p := range c.parties {
		p.conn.Close()
	}
	if c.records != nil {
		c.records.close()
	}
	if c.stock != nil {
		if err := c.stock.Close(); err != nil {
			c.log.Error("closing the records of the stock", "error", err)
		}
	}
}

// server returns the server with the coordinator's service and its status service.
func (c *Coordinator) server() (*rpc.Server, error) {
	directory, err := c.file.Directory()
	if err != nil {
		return nil, err
	}
	tokens, err := c.file.OIDC.Tokens(c.log)
	if err != nil {
		return nil, err
	}
	rules := maps.Clone(Rules)
	maps.Copy(rules, status.Rules)
	maps.Copy(rules, stock.Rules)
	maps.Copy(rules, console.Rules)
	inner := append([]rpc.Inner{c.disks.Inner(newWork)}, c.inner...)
	server, err := rpc.NewServer(c.metrics.Server(rpc.Options{
		Credentials: c.credentials, Directory: directory, Tokens: tokens, Rules: rules, Log: c.log, Reflection: c.file.Reflection, Inner: inner,
		Limits: c.file.Callers.Limits(), Gateway: console.Gateway(c.file.Console),
	}))
	if err != nil {
		return nil, err
	}
	c.console, err = console.Register(server, console.Options{
		Config: c.file.Console, Name: config.CoordinatorName, Role: config.CoordinatorName, Version: c.version, Credentials: c.credentials, Tokens: tokens,
		Metrics: c.metrics, Log: c.log,
	})
	if err != nil {
		return nil, err
	}
	coordinatorv1.RegisterCoordinatorServiceServer(server, c)
	stockv1.RegisterStockServiceServer(server, c.stock)
	statusv1.RegisterStatusServiceServer(server, &status.Service{
		Name: config.CoordinatorName, Party: -1, Version: c.version, Roster: c.file.Roster.Hash(), Params: c.file.Params,
		Log: c.log, Started: time.Now(), Ready: server.Ready, Running: c.running, Peers: c.links(), Certificate: c.credentials.NotAfter,
		Disks: c.disks, Reports: c.reports, Stopping: c.stopped,
	})
	return server, nil
}

// newWork lists the methods that are rejected while disk space is low.
var newWork = map[string]bool{
	coordinatorv1.CoordinatorService_SubmitJob_FullMethodName:  true,
	coordinatorv1.CoordinatorService_RotateKeys_FullMethodName: true,
	stockv1.StockService_Reserve_FullMethodName:                true,
	stockv1.StockService_SetPolicy_FullMethodName:              true,
}

// running returns the number of jobs that have begun and not ended.
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

// serve runs jobs and serves requests until stop is done. It then stops reporting ready and begins
// no more jobs, ends the sessions that it leads and finally stops its server.
func (c *Coordinator) serve(stop context.Context, l net.Listener) error {
	server, err := c.server()
	if err != nil {
		return err
	}
	stop, halt := context.WithCancel(stop)
	defer halt()
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
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
	pages, err := c.console.Open()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		done <- server.Serve(l)
		halt()
	}()
	context.AfterFunc(stop, func() {
		c.health.Ready(nil)
		server.SetReady(false)
	})
	server.SetReady(true)
	c.health.Ready(func() bool { return server.Ready() && c.disks.Low() == nil })
	c.log.Info("coordinator is ready", "listen", l.Addr().String())
	var keeping sync.WaitGroup
	keeping.Go(func() { c.stock.Run(stop) })
	keeping.Go(func() { pages(ctx) })
	keeping.Go(func() { c.credentials.Watch(ctx, c.log) })
	keeping.Go(func() { c.keepRotations(stop) })
	keeping.Go(func() { c.observe(ctx) })
	keeping.Go(func() { status.Reach(ctx, c.links(), c.metrics, c.reports) })
	c.work(stop, ctx)
	c.finish(time.Duration(c.file.StopAfter))
	close(c.stopped)
	cancel()
	c.leads.Wait()
	keeping.Wait()
	c.activations.Wait()
	calls, cut := context.WithTimeout(context.Background(), c.timing.stop)
	defer cut()
	server.Stop(calls)
	c.log.Info("stopped")
	return <-done
}

// finish waits for the running sessions for at most the given time. Activations continue after a
// restart.
func (c *Coordinator) finish(within time.Duration) {
	c.log.Info("stopping", "jobs", c.running(), "within", within)
	done := make(chan struct{})
	go func() {
		c.leads.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(within):
	}
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

// load reads the records of earlier processes into memory.
func (c *Coordinator) load() error {
	all, err := c.records.all()
	for _, r := range all {
		if late := c.endStranger(r.job, r.key); err == nil {
			err = late
		}
		c.jobs[r.job.GetId()] = newEntry(r.job, r.key)
		c.list = append(c.list, r.job.GetId())
	}
	if err == nil {
		c.rotations.by, err = c.records.rotations()
	}
	return err
}

// work starts the goroutines that advance jobs, under ctx, until stop is done.
func (c *Coordinator) work(stop, ctx context.Context) {
	for stop.Err() == nil {
		next := c.expire()
		for _, e := range c.begin() {
			c.leads.Go(func() {
				c.advance(ctx, e)
				c.yield(e)
			})
		}
		select {
		case <-c.wake:
		case <-next:
		case <-stop.Done():
		}
	}
}

// kick makes the scheduler look for jobs to begin.
func (c *Coordinator) kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// begin returns the jobs to begin now.
func (c *Coordinator) begin() (list []*entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*coordinatorv1.Job
	var tasks []task
	var entries []*entry
	for _, id := range c.list {
		e := c.jobs[id]
		all = append(all, e.job)
		if s := nextStep(e.job.GetState()); s != stepNone {
			if e.begun && s != stepActivate {
				s = e.doing
			}
			tasks = append(tasks, task{job: e.job, step: s, begun: e.begun, starts: e.starts, refused: e.waits()})
			entries = append(entries, e)
		}
	}
	for _, i := range due(tasks, c.file.MaxConcurrent, keyed(all)) {
		e := entries[i]
		e.begun, e.doing, e.refused, e.beside = true, tasks[i].step, "", nil
		e.starts, e.moved = e.doing == stepLead, time.Now()
		list = append(list, e)
	}
	return list
}

// leads reports whether sessions of the job run or are about to start. The caller must hold the
// lock.
func (e *entry) leads() bool {
	return e.begun && e.doing == stepLead && e.job.GetState() < activating
}

// precedes reports whether the job is being activated and makes a MAC key that other needs. The
// caller must hold the lock.
func (e *entry) precedes(other *entry) bool {
	own, ok := slotOf(e.job.GetRequest())
	theirs, needs := slotOf(other.job.GetRequest())
	return e.job.GetState() == activating && ok && needs && own == theirs
}

// others returns the running jobs because of which parties may refuse e. The caller must hold the
// lock.
func (c *Coordinator) others(e *entry) (list []*entry) {
	for _, x := range c.jobs {
		if x != e && (x.leads() || x.precedes(e)) {
			list = append(list, x)
		}
	}
	return list
}

// waits returns the reason why a job that was put back waits. The caller must hold the lock.
func (e *entry) waits() (w refusal) {
	for _, x := range e.beside {
		switch {
		case x.leads():
			w = refusedRunning
		case !x.precedes(e):
			return refusedNever
		case w == refusedNever:
			w = refusedActivating
		}
	}
	return w
}

// putBack returns a job to the queue after parties refused it because of concurrent jobs: the jobs
// that ran when it began and those that run now. It returns false if there are no such jobs; the
// refusal is then a failure. No session of the job remains.
func (c *Coordinator) putBack(e *entry, before []*entry, reason string) bool {
	c.mu.Lock()
	beside := c.others(e)
	stop := e.stop != "" || len(before)+len(beside) == 0
	c.mu.Unlock()
	if stop {
		return false
	}
	err := c.update(e, func(j *coordinatorv1.Job) { j.State, j.Epoch, j.Parties, j.Started = pending, 0, nil, nil })
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.refused = "waiting for concurrent jobs: " + reason
	for _, x := range before {
		if !slices.Contains(beside, x) {
			return true // it has ended: retry immediately
		}
	}
	e.beside = beside
	return true
}

// taken records that all parties have accepted a job, so that the next one may begin.
func (c *Coordinator) taken(e *entry) {
	c.mu.Lock()
	e.starts = false
	c.mu.Unlock()
	c.kick()
}

// yield is called when this process can do no more for a job. A job that was put back may begin
// again.
func (c *Coordinator) yield(e *entry) {
	c.mu.Lock()
	again := e.job.GetState() == pending
	stop := again && e.stop != ""
	e.begun, e.starts = e.begun && (!again || stop), false
	c.mu.Unlock()
	if stop {
		c.conclude(e, cancelled, nil, time.Time{})
	}
	c.kick()
}

// keeps reports whether the result of a session belongs to a job, or may still become a job's
// result.
func (c *Coordinator) keeps(session string) bool {
	ref, err := refOf(session)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.jobs[ref.GetJobId()]
	if !ok || e.job.GetOrdinal() != ref.GetOrdinal() {
		return false
	}
	s := e.job.GetState()
	//lodge:check coordinator/result/kept [swap=s > pending && s <= completed=>s > completed]
	//  [run=TestSweepKeeps] the results of a running job are erased
	return s > pending && s <= completed
}
