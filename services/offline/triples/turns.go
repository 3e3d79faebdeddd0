package triples

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// turns orders the sessions of this party that make the same tuples: they compute their products
// one at a time, the oldest first. Products use all processors by themselves. Sessions that shared
// them would all end late, and together: then all of them send while the processors are idle, and
// again all compute while the links are. Sessions that began together would stay so to the end.
// Other parties may have another order, and have patience for a while only: who has waited for long
// enough computes without a turn.
type turns struct {
	atOnce int
	most   time.Duration
	mu     sync.Mutex
	joined uint64
	crowds map[string]*crowd
}

// crowd is who computes, and who waits for it.
type crowd struct {
	running int
	waiting []*waiter // by age
}

type waiter struct {
	age   uint64
	ready chan struct{}
}

// wide is how many processors the products of a session use well, by and large.
const wide = 8

func newTurns(most time.Duration) *turns {
	return &turns{atOnce: max(1, runtime.GOMAXPROCS(0)/wide), most: most, crowds: map[string]*crowd{}}
}

// join gives a session its age, of which the lesser is the older.
func (t *turns) join() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joined++
	return t.joined
}

// take waits for the turn of a session of a class, and returns a function that ends the turn.
func (t *turns) take(ctx context.Context, class string, age uint64) (leave func(), err error) {
	leave = func() { t.leave(class) }
	t.mu.Lock()
	s := t.crowds[class]
	if s == nil {
		s = &crowd{}
		t.crowds[class] = s
	}
	if s.running < t.atOnce {
		s.running++
		t.mu.Unlock()
		return leave, nil
	}
	w := &waiter{age, make(chan struct{})}
	at, _ := slices.BinarySearchFunc(s.waiting, w.age, func(x *waiter, age uint64) int { return cmp.Compare(x.age, age) })
	s.waiting = slices.Insert(s.waiting, at, w)
	t.mu.Unlock()
	select {
	case <-w.ready:
		return leave, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(t.most):
	}
	t.mu.Lock()
	i := slices.Index(s.waiting, w)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	t.mu.Unlock()
	switch {
	case err == nil && i < 0: // its turn had just come
		return leave, nil
	case err == nil:
		return func() {}, nil
	case i < 0:
		t.leave(class)
	}
	return nil, err
}

func (t *turns) leave(class string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.crowds[class]
	if len(s.waiting) > 0 { // the turn passes on
		close(s.waiting[0].ready)
		s.waiting = s.waiting[1:]
		return
	}
	if s.running--; s.running == 0 {
		delete(t.crowds, class)
	}
}
