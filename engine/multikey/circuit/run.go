package circuit

import (
	"context"
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/parallel"
)

// A Computer computes independent gates and reports, from time to time, how many more are done.
type Computer interface {
	Compute(ctx context.Context, tasks []multikey.Task, ended func(more int)) error
}

// Local computes in this process on the given number of goroutines. If Rotate is set, it computes
// the rotations.
type Local struct {
	Evaluator *multikey.Evaluator
	Workers   int
	Rotate    multikey.Rotate
}

// With remote rotations, this many groups of gates are in progress concurrently.
const (
	groupElsewhere  = 16
	groupsElsewhere = 4
)

// Compute implements Computer. Errors are those of the evaluator's RunWith.
func (l Local) Compute(ctx context.Context, tasks []multikey.Task, ended func(more int)) error {
	group, beside := max(1, l.Workers), 1 // the evaluator's own grouping
	if l.Rotate != nil {
		group, beside = groupElsewhere, groupsElsewhere
	}
	var lock sync.Mutex
	return parallel.Try(ctx, beside, (len(tasks)+group-1)/group, func(i int) error {
		some := tasks[i*group : min((i+1)*group, len(tasks))]
		if err := l.Evaluator.RunWith(ctx, l.Workers, some, l.Rotate); err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		ended(len(some))
		return nil
	})
}

// Run computes a program on ciphertexts, which input returns by number, possibly several times, and
// returns the output ciphertexts, which the caller owns. progress, which may be nil, receives the
// number of finished gates, in calls that do not overlap. Results are dropped after their last use.
// The error is the computer's, or ctx's.
func (p *Program) Run(ctx context.Context, c Computer, input func(i int) *multikey.Ciphertext, progress func(gates int)) ([]*multikey.Ciphertext, error) {
	r := &run{Program: p, input: input, results: make([]*multikey.Ciphertext, len(p.nodes))}
	last := p.lastUses()
	done := 0
	ended := func(more int) {
		done += more
		if progress != nil {
			progress(done)
		}
	}
	err := p.slabs(func(from, to int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		tasks := make([]multikey.Task, 0, to-from)
		for i := from; i < to; i++ {
			n := &p.nodes[i]
			r.results[i] = new(multikey.Ciphertext)
			t := multikey.Task{Gate: n.gate, Dst: r.results[i], A: r.of(n.a), B: r.of(n.b)}
			if n.gate == multikey.Mux {
				t.C = r.of(n.c)
			}
			tasks = append(tasks, t)
		}
		if err := c.Compute(ctx, tasks, ended); err != nil {
			return fmt.Errorf("gates %d to %d: %w", from, to-1, err)
		}
		for i := from; i < to; i++ {
			for _, l := range p.nodes[i].operands() {
				if at, is := r.place(l); is && last[l.node()] < to {
					r.results[at] = nil
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]*multikey.Ciphertext, len(p.outputs))
	for i, l := range p.outputs {
		out[i] = r.of(l)
		if !l.inverted() {
			out[i] = out[i].Clone()
		}
	}
	return out, nil
}

// run is the state of a running program.
type run struct {
	*Program
	input   func(i int) *multikey.Ciphertext
	results []*multikey.Ciphertext
}

// place returns the gate of a literal, if it is a gate's.
func (r *run) place(l literal) (int, bool) {
	first := 1 + r.inputs
	return int(l.node()) - first, int(l.node()) >= first
}

// of returns the ciphertext of a literal.
func (r *run) of(l literal) *multikey.Ciphertext {
	var c *multikey.Ciphertext
	at, is := r.place(l)
	switch {
	case is:
		c = r.results[at]
	case l.node() == 0:
		return multikey.Trivial(l.inverted())
	default:
		c = r.input(int(l.node()) - 1)
	}
	if l.inverted() {
		return multikey.Not(c)
	}
	return c
}
