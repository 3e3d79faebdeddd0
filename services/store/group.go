package store

import (
	"errors"
	"sync"
)

// writing is one write transaction of a storage.
type writing interface {
	reader
	// broken is why the transaction cannot go on, when the group is to be run again in another one.
	broken() error
	// commit makes the writes durable, all or none, and ends the transaction. errAgain: none, and
	// run the group again.
	commit(writes *layer) error
	rollback()
}

// errAgain: the storage undid the transaction for a reason that another attempt may not meet.
var errAgain = errors.New("store: the transaction was undone")

const (
	maxGroup      = 1024    // functions committed together
	maxGroupBytes = 8 << 20 // that they write, the last of them aside
	maxAttempts   = 4
)

// group commits the functions of concurrent callers together. One goroutine leads: it begins a
// transaction, gives the callers that wait their turn one after another, and commits. Each runs its
// function on the caller's goroutine, where its panics belong, and on a separate layer, which is
// dropped when the function fails.
type group struct {
	begin  func() (writing, error)
	damage func(error) // is told of a function that met damage; nil: nobody is

	mu     sync.Mutex
	wake   sync.Cond
	queue  []*call
	closed bool
	done   chan struct{} // the leader has ended
}

type call struct {
	f      func(Tx) error
	turn   chan *layer // of the group
	ran    chan error
	answer chan error
	gone   bool // its goroutine panicked or ended within f
	err    error
}

var errGone = errors.New("store: the function did not return")

func newGroup(begin func() (writing, error)) *group {
	g := &group{begin: begin, done: make(chan struct{})}
	g.wake.L = &g.mu
	go g.lead()
	return g
}

// update is Store.Update.
func (g *group) update(f func(Tx) error) error {
	c := &call{f: f, turn: make(chan *layer, 1), ran: make(chan error, 1), answer: make(chan error, 1)}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return ErrClosed
	}
	g.queue = append(g.queue, c)
	g.wake.Signal()
	g.mu.Unlock()
	for {
		select {
		case under := <-c.turn:
			c.run(under, g.damage)
		case err := <-c.answer:
			return err
		}
	}
}

func (c *call) run(under *layer, damage func(error)) {
	t := &transaction{writes: newLayer(under)}
	t.reads = t.writes
	err := errGone
	defer func() {
		t.ended = true
		if err == nil {
			t.writes.applyTo(under)
		}
		c.ran <- err
	}()
	err = readable(func() error { return c.f(t) })
	if damage != nil && errors.Is(err, ErrDamaged) {
		damage(err)
	}
}

// close answers the waiting callers, and ends the leader.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.wake.Signal()
	g.mu.Unlock()
	<-g.done
}

func (g *group) lead() {
	defer close(g.done)
	for {
		g.mu.Lock()
		for len(g.queue) == 0 && !g.closed {
			g.wake.Wait()
		}
		waiting := len(g.queue) > 0
		g.mu.Unlock()
		if !waiting {
			return
		}
		var calls []*call
		err := errAgain
		for attempt := 0; attempt < maxAttempts && errors.Is(err, errAgain); attempt++ {
			calls, err = g.attempt(calls)
		}
		for _, c := range calls {
			if err != nil { // also to a failed call: it may have seen writes that were never committed
				c.err = err
			}
			c.answer <- c.err
		}
	}
}

// next takes the first of the queue.
func (g *group) next() *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		return nil
	}
	c := g.queue[0]
	g.queue = g.queue[1:]
	return c
}

// attempt runs calls, and those that wait, in one transaction. It gives all that it ran, which have
// their own results.
func (g *group) attempt(calls []*call) ([]*call, error) {
	w, err := g.begin()
	if err != nil {
		if len(calls) == 0 {
			g.mu.Lock()
			calls, g.queue = g.queue, nil
			g.mu.Unlock()
		}
		return calls, err
	}
	all := newLayer(w)
	for i := 0; ; i++ {
		if i == len(calls) {
			if i >= maxGroup || all.size >= maxGroupBytes {
				break
			}
			c := g.next()
			if c == nil {
				break
			}
			calls = append(calls, c)
		}
		if c := calls[i]; !c.gone {
			c.turn <- all
			c.err = <-c.ran
			c.gone = errors.Is(c.err, errGone)
		}
		if err := w.broken(); err != nil {
			w.rollback()
			return calls, err
		}
	}
	if len(all.keys) == 0 {
		w.rollback()
		return calls, nil
	}
	return calls, w.commit(all)
}
