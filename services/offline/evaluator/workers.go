package evaluator

import "context"

// workers is a pool of goroutines that the computations of this process share.
type workers struct {
	count int
	turn  chan struct{} // holds a token unless a computation collects workers: a computation collects all its workers before the next begins
	free  chan struct{} // holds a token for each free worker
}

func newWorkers(n int) *workers {
	w := &workers{count: n, turn: make(chan struct{}, 1), free: make(chan struct{}, n)}
	w.turn <- struct{}{}
	for range n {
		w.free <- struct{}{}
	}
	return w
}

// take waits for at most most workers, or for all if there are fewer.
func (w *workers) take(ctx context.Context, most int) (n int, leave func(), err error) {
	n = max(1, min(most, w.count))
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	got := 0
	leave = func() {
		for range got {
			w.free <- struct{}{}
		}
	}
	for got < n {
		select {
		case <-w.free:
			got++
		case <-ctx.Done():
			leave()
			return 0, nil, ctx.Err()
		}
	}
	return n, leave, nil
}
