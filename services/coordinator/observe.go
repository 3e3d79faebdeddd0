package coordinator

import (
	"context"
	"time"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/ops/status"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// diskEvery is the interval between checks of the free disk space.
const diskEvery = 10 * time.Second

// Metric labels for the reason why an unfinished job waits.
const (
	waitsQueue      = "queue"      // for the jobs before it
	waitsRoom       = "room"       // for a concurrent job to end, because a party refused it
	waitsStart      = "start"      // for parties to be reachable, before any party received it
	waitsReachable  = "reachable"  // for an unreachable party
	waitsMessages   = "messages"   // for messages of a party
	waitsNothing    = "nothing"    // does not wait: all parties compute
	waitsActivation = "activation" // for all parties to unlock its result
	waitsEnd        = "end"        // for its cancellation
)

var (
	waitReasons = []string{waitsQueue, waitsRoom, waitsStart, waitsReachable, waitsMessages, waitsNothing, waitsActivation, waitsEnd}
	openStates  = []jobv1.JobState{pending, preparing, jobv1.JobState_JOB_STATE_GENERATING, jobv1.JobState_JOB_STATE_VERIFYING, storing, activating}
	finalStates = []jobv1.JobState{completed, failed, cancelled, timedOut}
)

// links returns the state of the connections to the parties.
func (c *Coordinator) links() (list []status.Link) {
	for _, p := range c.parties {
		list = append(list, status.Link{Name: p.name, Party: p.index, Conn: p.conn})
	}
	return list
}

// countJobs registers the job metrics.
func (c *Coordinator) countJobs() {
	for _, kind := range config.Kinds {
		for _, s := range finalStates {
			c.metrics.Count(metrics.JobsEnded, 0, kind, metricName(s))
		}
	}
	c.metrics.Read([]metrics.Level{metrics.JobsOpen, metrics.JobLast, metrics.JobIdle}, c.levels)
}

// observe updates the metrics of the free disk space until ctx is done.
func (c *Coordinator) observe(ctx context.Context) {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		for _, s := range c.disks.Volumes() {
			c.metrics.Disk(s.Name, s.Free, s.Total, s.MinFree, s.Low)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// levels sets the metrics of the jobs.
func (c *Coordinator) levels(set metrics.SetLevel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open, last, idle := map[[2]string]int{}, map[string]time.Time{}, time.Duration(0) // open jobs by state and reason
	for _, s := range openStates {
		for _, r := range waitReasons {
			open[[2]string{metricName(s), r}] = 0
		}
	}
	now := time.Now()
	for _, e := range c.jobs {
		s := e.job.GetState()
		if !job.Final(s) {
			open[[2]string{metricName(s), e.waitsFor()}]++
			if e.begun {
				idle = max(idle, now.Sub(e.moved))
			}
			continue
		}
		kind := job.KindName(e.job.GetRequest().GetKind())
		if at := e.job.GetEnded().AsTime(); s == completed && at.After(last[kind]) {
			last[kind] = at
		}
	}
	for labels, n := range open {
		set(metrics.JobsOpen, float64(n), labels[:]...)
	}
	for kind, at := range last {
		set(metrics.JobLast, float64(at.UnixMilli())/1000, kind)
	}
	set(metrics.JobIdle, idle.Seconds())
}

// waitsFor returns the metric label for the reason that snapshot gives as text. The caller must
// hold the lock.
func (e *entry) waitsFor() string {
	s := e.job.GetState()
	switch {
	case e.stop != "":
		return waitsEnd
	case s == activating:
		return waitsActivation
	case s == pending && e.begun:
		return waitsStart
	case s == pending && e.refused != "":
		return waitsRoom
	case s == pending:
		return waitsQueue
	}
	for _, p := range e.job.GetParties() {
		if !p.GetReachable() {
			return waitsReachable
		}
	}
	if waiting(e.job.GetParties(), time.Now()) != "" {
		return waitsMessages
	}
	return waitsNothing
}

// moved reports whether a job has progressed.
func moved(old, next *coordinatorv1.Job) bool {
	if old.GetState() != next.GetState() || old.GetOrdinal() != next.GetOrdinal() {
		return true
	}
	done := func(j *coordinatorv1.Job) (n uint64) {
		for _, p := range j.GetParties() {
			g := p.GetStatus().GetProgress()
			n += uint64(g.GetRoundIndex()) + g.GetSentBytes() + g.GetReceivedBytes() + g.GetWorkDone() + uint64(p.GetStatus().GetState())
		}
		return n
	}
	return done(old) != done(next)
}
