package coordinator

import (
	"cmp"
	"fmt"
	"time"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// A job has two limits. The request's timeout counts from its submission and ends the job in any
// state before ACTIVATING. The coordinator's job_timeout counts from the beginning of each attempt,
// so that jobs may wait for each other.

// newEntry returns the entry of a job that was submitted now or that an earlier process recorded.
func newEntry(j *coordinatorv1.Job, key string) *entry {
	e := &entry{job: j, request: j.GetRequest(), key: key, changed: make(chan struct{})}
	if t := j.GetRequest().GetTimeout().AsDuration(); t > 0 {
		now := time.Now()
		e.until = now.Add(min(t, j.GetCreated().AsTime().Add(t).Sub(now))) // setting the clock back does not extend the timeout
	}
	return e
}

// deadline returns the deadline of an attempt that begins now.
func (c *Coordinator) deadline(e *entry) time.Time {
	left := time.Duration(c.file.JobTimeout)
	if !e.until.IsZero() {
		left = min(left, time.Until(e.until))
	}
	return time.Now().Add(left) // parties need wall-clock time
}

// expire ends the jobs whose deadline passed before they began, or before they began again. It
// returns a channel that fires when to check again, or nil if only a change of the jobs requires
// another check.
func (c *Coordinator) expire() <-chan time.Time {
	over := map[*entry]*jobv1.Failure{}
	var first time.Time
	c.mu.Lock()
	for _, id := range c.list {
		e := c.jobs[id]
		switch {
		case e.begun || e.job.GetState() != pending || e.until.IsZero():
		case !time.Now().Before(e.until):
			e.begun = true
			over[e] = late(e)
		case first.IsZero() || e.until.Before(first):
			first = e.until
		}
	}
	c.mu.Unlock()
	for e, f := range over {
		c.end(e, timedOut, f)
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first))
}

// late returns the failure of a job whose deadline passed before it began. The caller must hold the
// lock.
func late(e *entry) *jobv1.Failure {
	return &jobv1.Failure{Outcome: outcomeTimeout, Reason: fmt.Sprintf("the job's timeout of %s from its submission expired; it was %s",
		e.request.GetTimeout().AsDuration(), cmp.Or(e.refused, reasonQueued))}
}
