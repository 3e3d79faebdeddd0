// Package parallel runs independent pieces of a computation on a given number of goroutines. Each
// piece writes to separate memory, so the result does not depend on the number of workers.
package parallel

import (
	"context"
	"sync"
	"sync/atomic"
)

// For calls f(i) for every i in [0, n) on up to workers goroutines. It returns when all calls have
// returned.
func For(workers, n int, f func(i int)) {
	workers = min(workers, n)
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	wg.Wait()
}

// Try is For with errors: after the first error, or when ctx ends, it starts no further piece. It
// returns the error of the failed piece with the lowest index, or ctx.Err().
func Try(ctx context.Context, workers, n int, f func(i int) error) error {
	var stop atomic.Bool
	errs := make([]error, n)
	For(workers, n, func(i int) {
		if stop.Load() || ctx.Err() != nil {
			return
		}
		if errs[i] = f(i); errs[i] != nil {
			stop.Store(true)
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
