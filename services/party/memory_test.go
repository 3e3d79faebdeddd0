package party

import (
	"context"
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
