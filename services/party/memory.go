package party

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// garbage is the growth of the heap, in percent of the live heap, after which the garbage collector
// runs. Nearly all of the heap is polynomials, which the engine reuses and the collector does not
// scan. Frequent runs cost little, and the saved memory allows larger batches.
const garbage = 8

// room is the least growth in bytes: otherwise small heaps would be collected all the time.
const room = 64 << 20

// pace sets the growth limit of the heap, now and after each garbage collection until ctx is done.
func pace(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(growth(live[0].Value.Uint64()))
	// The next collection runs the finalizer of this unreferenced object.
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { pace(ctx) })
}

// growth returns the growth limit in percent for a live heap of this size: garbage, or more for a
// small heap.
func growth(live uint64) int {
	return int(max(garbage, room*100/max(live, room/8)))
}

// trimAfter is the idle time after which memory is returned to the machine.
const trimAfter = 10 * time.Second

// trim calls give whenever nothing has run for the time after, until ctx is done.
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

// giveBack returns the engine's cached memory to the machine.
func giveBack() {
	if ring.Trim() > 0 {
		debug.FreeOSMemory()
	}
}
