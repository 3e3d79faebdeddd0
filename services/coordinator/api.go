package coordinator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// SubmitJob implements the service.
func (c *Coordinator) SubmitJob(ctx context.Context, r *coordinatorv1.SubmitJobRequest) (*coordinatorv1.SubmitJobResponse, error) {
	caller, _ := rpc.Caller(ctx)
	q := r.GetJob()
	if len(r.GetIdempotencyKey()) > 64 {
		return nil, rpc.Errorf(rpc.TooLarge, "", "an idempotency key has at most 64 characters")
	}
	if _, pinned := config.Pin(c.file.Params, q.GetParams()); !pinned {
		return nil, rpc.Errorf(rpc.PolicyRefused, "pin the set in the coordinator's configuration", "parameter set %q is not pinned here", q.GetParams())
	}
	spec := c.spec(&coordinatorv1.Job{Id: "check", Ordinal: 1, Request: q, Epoch: max(1, q.GetEpoch())}, time.Now().Add(time.Minute))
	if err := job.Validate(spec, time.Now()); err != nil {
		return nil, err
	}
	if q.GetKind() != jobv1.Kind_KIND_KEYS && q.GetEpoch() == 0 {
		return nil, rpc.Errorf(rpc.Invalid, "generate keys first and name their epoch", "no epoch")
	}
	key := ""
	if r.GetIdempotencyKey() != "" {
		key = caller.Name + "/" + r.GetIdempotencyKey()
	}
	c.mu.Lock()
	if key != "" {
		for _, e := range c.jobs {
			if e.key == key {
				c.mu.Unlock()
				j, _ := c.snapshot(e)
				return &coordinatorv1.SubmitJobResponse{Job: j}, nil
			}
		}
	}
	now := time.Now()
	id := fmt.Sprintf("j%013d-%04d", now.UnixMilli(), len(c.list)%10000)
	e := &entry{key: key, changed: make(chan struct{}), job: &coordinatorv1.Job{
		Id: id, Request: q, State: jobv1.JobState_JOB_STATE_PENDING, Created: timestamppb.New(now), SubmittedBy: caller.Name,
	}}
	if err := c.records.put(e.job, key); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	c.jobs[id] = e
	c.list = append(c.list, id)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	j, _ := c.snapshot(e)
	return &coordinatorv1.SubmitJobResponse{Job: j}, nil
}

// GetJob implements the service.
func (c *Coordinator) GetJob(_ context.Context, r *coordinatorv1.GetJobRequest) (*coordinatorv1.GetJobResponse, error) {
	e, err := c.find(r.GetId())
	if err != nil {
		return nil, err
	}
	j, _ := c.snapshot(e)
	return &coordinatorv1.GetJobResponse{Job: j}, nil
}

// WatchJob implements the service.
func (c *Coordinator) WatchJob(r *coordinatorv1.WatchJobRequest, stream coordinatorv1.CoordinatorService_WatchJobServer) error {
	e, err := c.find(r.GetId())
	if err != nil {
		return err
	}
	for {
		j, changed := c.snapshot(e)
		if err := stream.Send(&coordinatorv1.WatchJobResponse{Job: j}); err != nil || job.Final(j.GetState()) {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// ListJobs implements the service.
func (c *Coordinator) ListJobs(_ context.Context, r *coordinatorv1.ListJobsRequest) (*coordinatorv1.ListJobsResponse, error) {
	limit := int(r.GetLimit())
	switch {
	case limit == 0:
		limit = 100
	case limit > 1000:
		return nil, rpc.Errorf(rpc.Invalid, "ask for at most 1000 and go on before the last", "limit %d", limit)
	}
	c.mu.Lock()
	ids := slices.Clone(c.list)
	c.mu.Unlock()
	out := &coordinatorv1.ListJobsResponse{}
	for _, id := range slices.Backward(ids) {
		if r.GetBefore() != "" && id >= r.GetBefore() {
			continue
		}
		e, err := c.find(id)
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

// CancelJob implements the service.
func (c *Coordinator) CancelJob(_ context.Context, r *coordinatorv1.CancelJobRequest) (*coordinatorv1.CancelJobResponse, error) {
	e, err := c.find(r.GetId())
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	state := e.job.GetState()
	if state >= jobv1.JobState_JOB_STATE_ACTIVATING {
		c.mu.Unlock()
		return nil, rpc.Errorf(rpc.Conflict, "", "job %s is %s", r.GetId(), state)
	}
	e.stop = "cancelled"
	if r.GetReason() != "" {
		e.stop += ": " + r.GetReason()
	}
	if e.cancel != nil {
		e.cancel(rpc.Errorf(rpc.Cancelled, "", "%s", e.stop))
	}
	c.mu.Unlock()
	j, _ := c.snapshot(e)
	return &coordinatorv1.CancelJobResponse{Job: j}, nil
}
