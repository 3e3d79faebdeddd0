package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const prefix = "/lodge.coordinator.v1.CoordinatorService/"

// Rules maps each method to the permission that a caller needs.
var Rules = rpc.Rules{
	//lodge:check coordinator/job/permission [swap=config.PermSubmit=>config.PermStatus]
	//  [tests=./services/internal/refusals] any client with status permission submits jobs
	prefix + "SubmitJob":   rpc.Allow(rpc.Client).With(config.PermSubmit),
	prefix + "GetJob":      rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "WatchJob":    rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "ListJobs":    rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "CancelJob":   rpc.Allow(rpc.Client).With(config.PermSubmit),
	prefix + "RotateKeys":  rpc.Allow(rpc.Client).With(config.PermSubmit),
	prefix + "ListEpochs":  rpc.Allow(rpc.Client).With(config.PermStatus),
	prefix + "EstimateJob": rpc.Allow(rpc.Client).With(config.PermSubmit),
}

// SubmitJob implements the service.
func (c *Coordinator) SubmitJob(ctx context.Context, r *coordinatorv1.SubmitJobRequest) (*coordinatorv1.SubmitJobResponse, error) {
	caller, _ := rpc.Caller(ctx)
	q := r.GetJob()
	//lodge:check coordinator/job/key-length [run=TestAPI] an idempotency key takes any amount of
	//  memory
	if len(r.GetIdempotencyKey()) > 64 {
		return nil, rpc.Errorf(rpc.TooLarge, "", "an idempotency key has at most 64 characters")
	}
	//lodge:check coordinator/job/tenant [run=TestJobsOfTenants] a client submits jobs for another
	//  tenant
	if err := serves(caller, q); err != nil {
		return nil, err
	}
	q, err := c.completed(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := c.check(q); err != nil {
		return nil, err
	}
	key := ""
	if r.GetIdempotencyKey() != "" {
		//lodge:check coordinator/job/key-owner [swap=caller.Name + "/" +
		//  r.GetIdempotencyKey()=>r.GetIdempotencyKey()] [run=TestAPI] two clients share
		//  idempotency keys
		key = caller.Name + "/" + r.GetIdempotencyKey()
	}
	//lodge:check coordinator/job/epoch-there [run=TestAPI|TestRotate$] a job starts under keys that
	//  do not exist
	if err := c.epochThere(ctx, q, key); err != nil {
		return nil, err
	}
	e, err := c.add(q, key, caller.Name)
	if err != nil {
		return nil, err
	}
	j, _ := c.snapshot(e)
	return &coordinatorv1.SubmitJobResponse{Job: j}, nil
}

// epochTime limits how long a submission waits for the parties to report their epochs.
const epochTime = 2 * time.Second

// epochThere rejects a job whose epoch is missing at a party. It accepts jobs that were submitted
// before and jobs that make keys. A party that does not respond within epochTime is asked when the
// job starts.
func (c *Coordinator) epochThere(ctx context.Context, q *coordinatorv1.JobRequest, key string) error {
	if job.MakesEpoch(q.GetKind()) || c.expected(key) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, epochTime)
	defer cancel()
	members := c.members(q)
	answers := make(chan error, len(members))
	for _, p := range members {
		go func() { answers <- p.hasEpoch(ctx, q.GetEpoch()) }()
	}
	var refusal error
	for range members {
		if err := <-answers; err != nil {
			refusal = err
		}
	}
	return refusal
}

// expected reports whether this idempotency key already has a job, or belongs to a job that makes
// keys.
func (c *Coordinator) expected(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.jobs {
		if key != "" && e.key == key || job.MakesEpoch(e.job.GetRequest().GetKind()) && !job.Final(e.job.GetState()) {
			return true
		}
	}
	return false
}

// sees reports whether the caller may see a job: its tenants' jobs and jobs without a tenant,
// such as key generation.
func sees(caller rpc.Principal, q *coordinatorv1.JobRequest) bool {
	//lodge:check coordinator/job/serves [swap=q.GetTenant() == "" ||
	//  caller.Serves(q.GetTenant())=>caller.Name != ""] [run=TestJobsOfTenants] tenants are not
	//  told apart
	return q.GetTenant() == "" || caller.Serves(q.GetTenant())
}

// serves returns an error if the job belongs to a tenant that the caller does not act for.
func serves(caller rpc.Principal, q *coordinatorv1.JobRequest) error {
	if !sees(caller, q) {
		return rpc.Errorf(rpc.Forbidden, "add the tenant to this client in the coordinator's configuration",
			"client %s does not act for tenant %q", caller.Name, q.GetTenant())
	}
	return nil
}

// seen finds a job and returns an error unless the caller may see it.
func (c *Coordinator) seen(ctx context.Context, id string) (*entry, error) {
	e, err := c.find(id)
	//lodge:check coordinator/job/seen [run=TestJobsOfTenants] a client sees and cancels the jobs of
	//  other tenants
	if caller, _ := rpc.Caller(ctx); err == nil && !sees(caller, e.request) {
		return nil, noJob(id)
	}
	return e, err
}

// check validates a request and rejects jobs that no party could accept.
func (c *Coordinator) check(q *coordinatorv1.JobRequest) error {
	//lodge:check coordinator/job/set [run=TestAPI] a job uses a parameter set that is not pinned
	if _, pinned := config.Pin(c.file.Params, q.GetParams()); !pinned {
		return rpc.Errorf(rpc.PolicyRefused, "pin the set in the coordinator's configuration", "parameter set %q is not pinned here", q.GetParams())
	}
	//lodge:check coordinator/job/valid [run=TestAPI] the coordinator accepts a job that every party
	//  rejects
	if err := job.Validate(c.trial(q), time.Now()); err != nil {
		return err
	}
	//lodge:check coordinator/job/epoch [run=TestAPI] a job does not name its keys
	if !job.MakesEpoch(q.GetKind()) && q.GetEpoch() == 0 {
		return rpc.Errorf(rpc.Invalid, "generate keys first and give their epoch", "no epoch")
	}
	//lodge:check coordinator/job/input-party [run=TestAPI] input masks are for a party that does
	//  not exist
	if n := len(c.file.Roster.Parties); int64(q.GetInputParty()) >= int64(n) {
		return rpc.Errorf(rpc.Invalid, "parties count from 0", "input party %d of %d", q.GetInputParty(), n)
	}
	for _, p := range job.Participants(q) {
		if n := len(c.parties); int(p) >= n {
			return rpc.Errorf(rpc.Invalid, "parties count from 0", "party %d of %d", p, n)
		}
	}
	//lodge:check coordinator/job/timeout [run=TestAPI] a job has an invalid timeout
	if t := q.GetTimeout(); t != nil && (t.CheckValid() != nil || t.AsDuration() <= 0) {
		return rpc.Errorf(rpc.Invalid, "leave it out for the coordinator's own limit", "the timeout is not a positive time span")
	}
	return nil
}

// trial returns the spec of a session that is validated but never started.
func (c *Coordinator) trial(q *coordinatorv1.JobRequest) *jobv1.SessionSpec {
	return c.spec(&coordinatorv1.Job{Id: "trial", Ordinal: 1, Request: q, Epoch: max(1, q.GetEpoch(), q.GetFromEpoch()+1)}, time.Now().Add(time.Minute))
}

// add records a new job, or returns the job that the client already submitted under this key.
func (c *Coordinator) add(q *coordinatorv1.JobRequest, key, client string) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key != "" {
		for _, e := range c.jobs {
			switch {
			case e.key != key:
			//lodge:check coordinator/job/key-body [run=TestAPI] an idempotency key returns another
			//  job than was requested
			case !proto.Equal(e.job.GetRequest(), q):
				return nil, rpc.Errorf(rpc.Conflict, "use a new key", "job %s was submitted under this idempotency key with a different request", e.job.GetId())
			default:
				return e, nil
			}
		}
	}
	now := time.Now()
	id := jobID(now, len(c.list))
	for len(c.list) > 0 && id <= c.list[len(c.list)-1] { // the clock was set back
		now = now.Add(time.Millisecond)
		id = jobID(now, len(c.list))
	}
	e := newEntry(&coordinatorv1.Job{Id: id, Request: q, State: pending, Created: timestamppb.New(now), SubmittedBy: client}, key)
	if err := c.records.put(e.job, key); err != nil {
		return nil, err
	}
	c.jobs[id] = e
	c.list = append(c.list, id)
	c.forget(forgetAbove, forgetTo)
	c.kick()
	c.stock.Changed()
	return e, nil
}

// jobID returns the identifier of the nth job, submitted at the given time. Identifiers sort in the
// order of submission.
func jobID(at time.Time, n int) string { return fmt.Sprintf("j%013d-%04d", at.UnixMilli(), n%10000) }

// GetJob implements the service.
func (c *Coordinator) GetJob(ctx context.Context, r *coordinatorv1.GetJobRequest) (*coordinatorv1.GetJobResponse, error) {
	e, err := c.seen(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	j, _ := c.snapshot(e)
	return &coordinatorv1.GetJobResponse{Job: j}, nil
}

// WatchJob implements the service. While a job waits, watchers also receive how long it has waited.
func (c *Coordinator) WatchJob(r *coordinatorv1.WatchJobRequest, stream coordinatorv1.CoordinatorService_WatchJobServer) error {
	e, err := c.seen(stream.Context(), r.GetId())
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last *coordinatorv1.Job
	for {
		j, changed := c.snapshot(e)
		if last == nil || !proto.Equal(j, last) {
			if err := stream.Send(&coordinatorv1.WatchJobResponse{Job: j}); err != nil {
				return err
			}
		}
		if last = j; job.Final(j.GetState()) {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-c.stopped:
			return errStopping
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// ListJobs implements the service.
func (c *Coordinator) ListJobs(ctx context.Context, r *coordinatorv1.ListJobsRequest) (*coordinatorv1.ListJobsResponse, error) {
	limit := int(r.GetLimit())
	switch {
	case limit == 0:
		limit = 100
	case limit > 1000:
		return nil, rpc.Errorf(rpc.Invalid, "request at most 1000 jobs a page and continue with the next page", "limit %d", limit)
	}
	c.mu.Lock()
	ids := slices.Clone(c.list)
	c.mu.Unlock()
	out := &coordinatorv1.ListJobsResponse{}
	for _, id := range slices.Backward(ids) {
		if r.GetBefore() != "" && id >= r.GetBefore() {
			continue
		}
		e, err := c.seen(ctx, id)
		if err != nil {
			continue
		}
		j, _ := c.snapshot(e)
		if len(r.GetStates()) > 0 && !slices.Contains(r.GetStates(), j.GetState()) {
			continue
		}
		if len(out.Jobs) == limit {
			out.Next = out.Jobs[limit-1].GetId()
			break
		}
		out.Jobs = append(out.Jobs, j)
	}
	return out, nil
}

// CancelJob implements the service. A job that has not begun ends immediately; a running job ends
// once its parties have been notified.
func (c *Coordinator) CancelJob(ctx context.Context, r *coordinatorv1.CancelJobRequest) (*coordinatorv1.CancelJobResponse, error) {
	e, err := c.seen(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	//lodge:check coordinator/job/reason [run=TestLongReasons] a reason takes any amount of memory
	if len(r.GetReason()) > maxReason {
		return nil, rpc.Errorf(rpc.TooLarge, "", "a reason has at most %d characters", maxReason)
	}
	//lodge:check coordinator/cancel-tenants run=TestJobsOfTenants one tenant's client cancels the key generation of another
	if err := c.mayCancel(ctx, e); err != nil {
		return nil, err
	}
	c.mu.Lock()
	//lodge:check coordinator/job/cancel [run=TestCancel|TestActivation] a job is cancelled after
	//  the parties have activated its result
	if state := e.job.GetState(); state >= activating {
		c.mu.Unlock()
		return nil, rpc.Errorf(rpc.Conflict, "", "job %s is %s", r.GetId(), stateName(state))
	}
	e.stop = "cancelled"
	if r.GetReason() != "" {
		e.stop += ": " + r.GetReason()
	}
	//lodge:check coordinator/cancel/checking [swap=!checking(e.job)=>true]
	//  [run=TestCancelDuringACheck] cancelling a job burns the MAC key that some parties have begun
	//  to check and others have not
	if e.cancel != nil && !checking(e.job) {
		e.cancel()
	}
	waits := !e.begun
	e.begun = true
	c.mu.Unlock()
	if waits {
		c.conclude(e, cancelled, nil, time.Time{})
		c.kick()
	}
	j, _ := c.snapshot(e)
	return &coordinatorv1.CancelJobResponse{Job: j}, nil
}

// checking reports whether a party is in its MAC check. The sessions of the job then end by
// themselves before the job is cancelled: a check that does not end can burn the MAC key.
func checking(j *coordinatorv1.Job) bool {
	return slices.ContainsFunc(j.GetParties(), func(p *coordinatorv1.PartyProgress) bool {
		s := p.GetStatus().GetState()
		return s == jobv1.JobState_JOB_STATE_VERIFYING || s == storing
	})
}

// mayCancel returns an error unless the caller may cancel the job: its tenants' jobs, and jobs
// without a tenant, such as key generation, if it submitted them or acts for every tenant.
func (c *Coordinator) mayCancel(ctx context.Context, e *entry) error {
	caller, _ := rpc.Caller(ctx)
	j, _ := c.snapshot(e)
	if e.request.GetTenant() != "" || j.GetSubmittedBy() == caller.Name {
		return nil
	}
	return caller.CheckShared("job "+j.GetId(), c.file.Tenants())
}

const maxReason = 1000

// stateName returns the name of a state in lower case.
func stateName(s jobv1.JobState) string { return strings.TrimPrefix(s.String(), "JOB_STATE_") }
