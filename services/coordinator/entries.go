package coordinator

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/traces"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// lastEpoch returns the highest epoch that a job has made or tried to make.
func (c *Coordinator) lastEpoch() (last uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.jobs {
		if job.MakesEpoch(e.job.GetRequest().GetKind()) {
			last = max(last, e.job.GetEpoch())
		}
	}
	return last
}

// update changes a job and wakes its watchers. A new state is durable before it is visible. If it
// cannot be recorded, it is shown only if it ends the job. The change function runs under the lock.
func (c *Coordinator) update(e *entry, change func(j *coordinatorv1.Job)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := proto.CloneOf(e.job)
	change(next)
	if now := next.GetState(); now != e.job.GetState() {
		if err := c.records.put(next, e.key); err != nil {
			c.log.Error("recording a job", "job", next.GetId(), "error", err)
			//lodge:check coordinator/result/recorded [run=TestRecorded] the coordinator acts on a
			//  state that is not recorded
			if !job.Final(now) {
				return err
			}
		}
		c.tell(next)
		c.stock.Changed()
		if job.Final(now) {
			e.note = ""
			c.metrics.Count(metrics.JobsEnded, 1, job.KindName(next.GetRequest().GetKind()), metricName(now))
		}
	}
	if moved(e.job, next) {
		e.moved = time.Now()
	}
	e.job = next
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

// tell logs the beginning and the end of a job, and traces the job at its end.
func (c *Coordinator) tell(j *coordinatorv1.Job) {
	q := j.GetRequest()
	log := c.log.With("job", j.GetId(), "ordinal", j.GetOrdinal(), "kind", job.KindName(q.GetKind()), "epoch", j.GetEpoch())
	switch s := j.GetState(); {
	case s == preparing:
		log.Info("job begins", "field", q.GetField(), "count", q.GetCount(), "tenant", q.GetTenant())
	case s == completed:
		log.Info("job complete", "seconds", time.Since(j.GetStarted().AsTime()).Seconds())
	case job.Final(s):
		f := j.GetFailure()
		log.Warn("job failed", "state", metricName(s), "outcome", f.GetOutcome(), "round", f.GetRound(), "check", f.GetCheck(), "reason", f.GetReason())
	}
	if !job.Final(j.GetState()) {
		return
	}
	span := traces.Job{
		ID: j.GetId(), Attempt: j.GetOrdinal(), Kind: job.KindName(q.GetKind()), Field: q.GetField(), Params: q.GetParams(), Count: q.GetCount(), Epoch: j.GetEpoch(),
		Submitted: j.GetCreated().AsTime(), Ended: j.GetEnded().AsTime(), State: metricName(j.GetState()), Failed: j.GetState() != completed,
		Reason: j.GetFailure().GetReason(),
	}
	if j.GetStarted() != nil {
		span.Begun = j.GetStarted().AsTime()
	}
	c.traces.Ended(span)
}

// metricName returns the metric label of a state.
func metricName(s jobv1.JobState) string { return strings.ToLower(stateName(s)) }

// snapshot returns a copy of a job with the reason why it waits, and a channel that is closed when
// the job changes.
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
	case s == pending && e.refused != "":
		j.Reason = e.refused
	case s == pending && !e.begun:
		j.Reason = reasonQueued
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
		return nil, noJob(id)
	}
	return e, nil
}

func noJob(id string) error {
	return rpc.Errorf(rpc.NotFound, "`lodge jobs list` lists the jobs", "no job %q", id)
}
