package cluster

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Restarts says how Tend restarts processes that ended.
type Restarts struct {
	Settled time.Duration // a process that ran at least this long did not fail quickly
	Pause   time.Duration // before the first restart; it doubles after each quick failure that follows
	Quick   int           // number of quick failures in a row after which a process stays down
}

// Tend restarts processes that end, until ctx is done. It returns an error when no process runs any
// more.
func (c *Cluster) Tend(ctx context.Context, r Restarts) error {
	var wg sync.WaitGroup
	for i := range c.Processes {
		wg.Go(func() { c.keepUp(ctx, i, r) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("no process stays up; their logs are in " + c.Dir)
}

// keepUp restarts process i when it ends, until ctx is done or the process has failed quickly too
// often. No other goroutine may change the process meanwhile.
func (c *Cluster) keepUp(ctx context.Context, i int, r Restarts) {
	for quick := 0; ; {
		p := c.Processes[i]
		select {
		case <-ctx.Done():
			return
		case <-p.done:
		}
		if quick++; time.Since(p.begun) >= r.Settled {
			quick = 1
		}
		if quick >= r.Quick {
			c.Progress.Note("%s, %d times in a row: it stays down, and the others go on; see %s", p.ending(), quick, p.Log)
			return
		}
		pause := r.Pause << (quick - 1)
		after := ""
		if pause >= time.Second {
			after = " in " + pause.String()
		}
		c.Progress.Note("%s; starting it again%s", p.ending(), after)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		fresh, err := p.run()
		if err != nil {
			c.Progress.Note("%s cannot be started: %v", p.Name, err)
			p.begun = time.Now()
			continue
		}
		c.Processes[i] = fresh
	}
}
