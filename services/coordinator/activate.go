package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// activate unlocks the result at every party. It retries without limit, because some parties may
// have unlocked theirs already, unless a party has erased its result.
func (c *Coordinator) activate(ctx context.Context, e *entry) {
	j, _ := c.snapshot(e)
	members := c.members(e.request)
	erased := make([]error, len(members))
	var wg sync.WaitGroup
	for i, p := range members {
		wg.Go(func() {
			for wait := c.timing.retry; ctx.Err() == nil; wait = min(2*wait, maxRetry) {
				done, err := c.unlock(ctx, e, p, j)
				if erased[i] = err; done || err != nil {
					return
				}
				select {
				case <-time.After(wait):
				case <-ctx.Done():
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return
	}
	for i, p := range members {
		//lodge:check coordinator/result/erased [run=TestAnErased] a job completes with a result
		//  that one party has erased
		if erased[i] != nil {
			c.end(e, failed, &jobv1.Failure{Outcome: outcomeAbort, Check: "activation", Suspects: []uint32{uint32(p.index)},
				Reason: fmt.Sprintf("party %d (%s) has erased its result: %s; the other parties' results are unusable", p.index, p.name, rpc.FromError(erased[i]).What)})
			return
		}
	}
	c.stock.Refresh(ctx)
	c.end(e, completed, nil)
	c.stock.Sync()
}

// unlock makes one attempt to activate a job's result at a party. It returns an error only if no
// further attempt can succeed.
func (c *Coordinator) unlock(ctx context.Context, e *entry, p *member, j *coordinatorv1.Job) (done bool, erased error) {
	spec := c.spec(j, time.Now())
	call, stop := context.WithTimeout(ctx, c.timing.call)
	defer stop()
	st, err := activate(call, p.session(spec.GetProtocol()), spec.GetRef(), j.GetDigest())
	if err == nil {
		_ = c.update(e, func(j *coordinatorv1.Job) {
			progressOf(j, p.index).Status, progressOf(j, p.index).Reachable, e.note = heard(st, uint32(len(c.parties))), true, ""
		})
		return true, nil
	}
	if said := rpc.FromError(err); said != nil && said.Code == rpc.Burnt {
		return false, err
	}
	if isGone(err) && p.holds(call, j) {
		return true, nil // activated by an earlier process of the coordinator, before the party restarted
	}
	_ = c.update(e, func(j *coordinatorv1.Job) {
		progressOf(j, p.index).Reachable = !unreachable(err)
		e.note = fmt.Sprintf("activating: party %d (%s): %s", p.index, p.name, rpc.FromError(err).What)
	})
	return false, nil
}
