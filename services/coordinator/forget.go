package coordinator

import (
	"slices"

	"github.com/lodge-mpc/lodge/services/session/job"
)

// Limits on the number of jobs in the records. Above forgetAbove jobs, the oldest ended jobs are
// deleted until forgetTo jobs are left. Jobs that made keys stay, because their number names an
// epoch and an epoch number must not be reused.
const (
	forgetAbove = 21_000
	forgetTo    = 20_000
)

// forget deletes the oldest ended jobs. The caller must hold the lock.
func (c *Coordinator) forget(above, to int) {
	if len(c.list) <= above {
		return
	}
	var old []string
	for _, id := range c.list {
		if len(c.list)-len(old) <= to {
			break
		}
		if j := c.jobs[id].job; job.Final(j.GetState()) && !job.MakesEpoch(j.GetRequest().GetKind()) {
			old = append(old, id)
		}
	}
	if err := c.records.drop(old); err != nil {
		c.log.Error("forgetting old jobs", "error", err)
		return
	}
	for _, id := range old {
		delete(c.jobs, id)
	}
	c.list = slices.DeleteFunc(c.list, func(id string) bool { return c.jobs[id] == nil })
}
