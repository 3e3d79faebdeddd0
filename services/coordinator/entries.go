package coordinator

import (
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/rpc"
)

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
		c.count(e, now)
		c.stock.Changed()
		if job.Final(now) {
			e.note = ""
			c.metrics.JobEnded(job.KindName(next.GetRequest().GetKind()), metricName(now))
		}
	}
	e.job = next
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

// count sets the metric of how many jobs are in each state, with one in a new state. The caller holds the lock.
func (c *Coordinator) count(changed *entry, state jobv1.JobState) {
	n := map[jobv1.JobState]int{state: 1}
	for _, e := range c.jobs {
		if e != changed {
			n[e.job.GetState()]++
		}
	}
	for s := pending; s <= activating; s++ {
		c.metrics.Jobs(metricName(s), n[s])
	}
}

// metricName is a state as a label.
func metricName(s jobv1.JobState) string { return strings.ToLower(stateName(s)) }

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
	return rpc.Errorf(rpc.NotFound, "`lodge jobs list` shows what there is", "no job %q", id)
}
