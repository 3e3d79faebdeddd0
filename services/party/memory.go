package party

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// garbage is how much the heap grows, in percent of what is in use, before the garbage collector runs. Nearly all of it
// is polynomials, which the engine uses again and which the collector does not look into: it costs little to run often,
// and the memory that is not wasted serves larger batches.
const garbage = 8

// trimAfter is how long nothing runs before memory goes back to the machine.
const trimAfter = 10 * time.Second

// trim calls give whenever nothing has run for a while, until ctx is done.
func trim(ctx context.Context, running func() int, after time.Duration, give func()) {
	tick := time.NewTicker(after)
	defer tick.Stop()
	for idle := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		was := idle
		if idle = running() == 0; idle && was {
			give()
		}
	}
}

// giveBack returns what the engine keeps for later to the machine, if there is any.
func giveBack() {
	if ring.Trim() > 0 {
		debug.FreeOSMemory()
	}
}
