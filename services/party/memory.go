package party

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// garbage is how much the heap grows, in percent of what is in use, before the garbage collector runs. Nearly all of it
// is polynomials, which the engine uses again and which the collector does not look into: it costs little to run often,
// and the memory that is not wasted serves larger batches.
const garbage = 8

// room is what the heap may grow by in any case: small heaps would be collected again and again.
const room = 64 << 20

// pace sets how much the heap may grow, now and after each garbage collection until ctx is done.
func pace(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(growth(live[0].Value.Uint64()))
	// A collection finds that nothing refers to this.
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { pace(ctx) })
}

// growth is garbage, or what gives a heap of so many bytes room.
func growth(live uint64) int {
	return int(max(garbage, room*100/max(live, room/8)))
}

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
