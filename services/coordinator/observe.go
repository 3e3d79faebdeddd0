package coordinator

import (
	"context"
	"time"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/status"
)

// diskEvery is how often the room on the disk is looked at.
const diskEvery = 10 * time.Second

// What jobs that are not over wait for, as metrics label it.
const (
	waitsQueue      = "queue"      // the jobs before it
	waitsRoom       = "room"       // a party that does not take it beside others
	waitsStart      = "start"      // parties to be reached, before any has heard of it
	waitsReachable  = "reachable"  // a party that cannot be reached
	waitsMessages   = "messages"   // messages of a party
	waitsNothing    = "nothing"    // all parties compute
	waitsActivation = "activation" // its result to be unlocked at all parties
	waitsEnd        = "end"        // it is being cancelled
)

var (
	waitReasons = []string{waitsQueue, waitsRoom, waitsStart, waitsReachable, waitsMessages, waitsNothing, waitsActivation, waitsEnd}
	openStates  = []jobv1.JobState{pending, preparing, jobv1.JobState_JOB_STATE_GENERATING, jobv1.JobState_JOB_STATE_VERIFYING, storing, activating}
	finalStates = []jobv1.JobState{completed, failed, cancelled, timedOut}
)

// links are the connections to the parties.
func (c *Coordinator) links() (list []status.Peer) {
	for _, p := range c.parties {
		list = append(list, status.Peer{Name: p.name, Party: p.index, Conn: p.conn})
	}
	return list
}

// countJobs has the jobs among the metrics.
func (c *Coordinator) countJobs() {
	var states []string
	for _, s := range finalStates {
		states = append(states, metricName(s))
	}
	c.metrics.JobsFrom(c.levels, config.Kinds, states)
}

// observe has the room on the disk among the metrics, until ctx is done.
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

// levels are the jobs as metrics show them.
func (c *Coordinator) levels() metrics.JobLevels {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := metrics.JobLevels{Open: map[metrics.JobLabels]int{}, Last: map[string]time.Time{}}
	for _, s := range openStates {
		for _, r := range waitReasons {
			l.Open[metrics.JobLabels{State: metricName(s), Reason: r}] = 0
		}
	}
	now := time.Now()
	for _, e := range c.jobs {
		s := e.job.GetState()
		if !job.Final(s) {
			l.Open[metrics.JobLabels{State: metricName(s), Reason: e.waitsFor()}]++
			if e.begun {
				l.Idle = max(l.Idle, now.Sub(e.moved))
			}
			continue
		}
		kind := job.KindName(e.job.GetRequest().GetKind())
		if at := e.job.GetEnded().AsTime(); s == completed && at.After(l.Last[kind]) {
			l.Last[kind] = at
		}
	}
	return l
}

// waitsFor is what snapshot says in words. The caller holds the lock.
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

// moved reports whether a job has come any further.
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
