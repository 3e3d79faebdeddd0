package party

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Memory is given back when nothing has run for a while, and never while something runs.
func TestTrimWaitsUntilNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, given atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		go trim(ctx, func() int { return int(running.Load()) }, time.Second, func() { given.Add(1) })
		after := func(d time.Duration, run, want int64) {
			t.Helper()
			running.Store(run)
			given.Store(0)
			time.Sleep(d)
			synctest.Wait()
			if got := given.Load(); got != want {
				t.Errorf("given back %d times, want %d", got, want)
			}
		}
		after(500*time.Millisecond, 0, 0) // looks come after whole seconds
		after(5*time.Second, 2, 0)
		after(time.Second, 0, 0)
		after(time.Second, 0, 1)
		after(3*time.Second, 1, 0)
		stop()
	})
}

// A small heap has room to grow in, a large one is kept from growing.
func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 8 << 20: 800, 64 << 20: 100, 400 << 20: 16, 800 << 20: 8, 4 << 30: 8} {
		if got := growth(live); got != want {
			t.Errorf("a heap of %d MB grows by %d %%, want %d", live>>20, got, want)
		}
	}
}

// The pace follows every collection.
func TestPaceFollows(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	ctx, stop := context.WithCancel(t.Context())
	defer stop() // before the percentage is as it was
	pace(ctx)
	for range 3 {
		debug.SetGCPercent(50)
		deadline := time.Now().Add(10 * time.Second)
		for percent := 50; percent == 50; {
			runtime.GC()
			time.Sleep(time.Millisecond)
			if percent = debug.SetGCPercent(50); percent == 50 && time.Now().After(deadline) {
				t.Fatal("a collection does not set the pace")
			}
		}
	}
}
