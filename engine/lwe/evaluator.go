package lwe

import (
	"context"
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/parallel"
)

// Evaluator computes gates and lookups with the public keys. It is deterministic and computes with
// integers: every machine returns the same ciphertexts. It is safe for concurrent use. It keeps
// working memory for the next call, so that later calls do not allocate. Its running time depends
// on ciphertexts, which are public.
type Evaluator struct {
	s        *Scheme
	rotation rotationKey
	switches *switchKey
	sign     *Table

	lock sync.Mutex
	free []*bench
}

// NewEvaluator expands keys on the given number of goroutines. The evaluator does not refer to keys
// afterwards. The error wraps ErrKeys or ErrSet.
func NewEvaluator(s *Scheme, keys *Keys, workers int) (*Evaluator, error) {
	if err := s.checkKeys(keys); err != nil {
		return nil, err
	}
	e := &Evaluator{s: s, rotation: s.newRotationKey(), switches: s.newSwitchKey(keys), sign: s.sign()}
	parallel.For(workers, s.Dim, func(i int) {
		e.rotation.expand(s, keys, i, make([]uint64, s.RotationRows()*s.N()))
	})
	parallel.For(workers, s.N(), func(i int) { e.switches.expand(s, &keys.Seed, i) })
	return e, nil
}

// Task is a gate or a lookup.
type Task struct {
	Gate    Gate   // Look with a table
	Dst     *LWE   // may be an operand of this task, and must not be one of another that runs with it
	A, B, C *LWE   // A for a lookup, A and B for a gate, all three for Mux
	Table   *Table // for Look
}

// Gate sets dst to a gate of the bits a and b. The error wraps ErrCiphertext.
func (e *Evaluator) Gate(dst *LWE, g Gate, a, b *LWE) error {
	return e.one(Task{Gate: g, Dst: dst, A: a, B: b})
}

// Mux sets dst to the bit b if a is true, and to the bit c otherwise. It takes two bootstraps: it
// adds (a and b) to (c and not a), of which at least one is false. The noise is twice that of a
// gate. The error wraps ErrCiphertext.
func (e *Evaluator) Mux(dst, a, b, c *LWE) error {
	return e.one(Task{Gate: Mux, Dst: dst, A: a, B: b, C: c})
}

// Lookup sets dst to the table's value at the padded message of a. The error wraps ErrCiphertext, or ErrSet if the
// table is of another set.
func (e *Evaluator) Lookup(dst, a *LWE, t *Table) error {
	return e.one(Task{Dst: dst, A: a, Table: t})
}

func (e *Evaluator) one(t Task) error {
	if err := e.check(&t); err != nil {
		return err
	}
	b := e.borrow()
	defer e.giveBack(b)
	b.put(e, &t)
	b.flush(e)
	return nil
}

// Run computes independent tasks on up to the given number of goroutines. It checks all tasks
// before it computes any, and returns the error of the first malformed one. When ctx ends, no
// further task starts, and the results are incomplete.
func (e *Evaluator) Run(ctx context.Context, workers int, tasks []Task) error {
	for i := range tasks {
		if err := e.check(&tasks[i]); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
	}
	groups := (len(tasks) + group - 1) / group
	return parallel.Try(ctx, workers, groups, func(i int) error {
		b := e.borrow()
		defer e.giveBack(b)
		for k := i * group; k < min((i+1)*group, len(tasks)); k++ {
			b.put(e, &tasks[k])
		}
		b.flush(e)
		return nil
	})
}

// check returns an error if a task is malformed.
func (e *Evaluator) check(t *Task) error {
	operands := [3]*LWE{t.A, t.B, t.C}
	count := 2
	switch t.Gate {
	case Look:
		count = 1
		if t.Table == nil || t.Table.s.hash != e.s.hash {
			return fmt.Errorf("%w: the table is missing or not for %s", ErrSet, e.s.Name)
		}
	case And, Nand, Or, Nor, Xor, Xnor:
	case Mux:
		count = 3
	default:
		return fmt.Errorf("%w: no gate %v", ErrMessage, t.Gate)
	}
	for _, c := range operands[:count] {
		if err := e.s.Check(c); err != nil {
			return err
		}
	}
	if t.Dst == nil || len(t.Dst.A) != e.s.N() {
		return fmt.Errorf("%w: no place of dimension %d for the result", ErrCiphertext, e.s.N())
	}
	return nil
}

// group is the number of ciphertexts that pass over the keys together. A step then reads its part
// of the keys from memory only once.
const group = 4

// bench is the storage of the bootstraps of a group.
type bench struct {
	jobs     [group]job
	count    int
	inputs   [group]*LWE
	switched [group]switched
	acc      [group]accumulator
	rotator  rotator
	out      *LWE
}

// job is a bootstrap of the input of the same place.
type job struct {
	dst   *LWE
	table *Table
	mux   bool // the result is added to dst, with Q/8
}

func (s *Scheme) newBench() *bench {
	b := &bench{rotator: s.newRotator(), out: s.NewLWE()}
	for i := range group {
		b.inputs[i], b.switched[i], b.acc[i] = s.NewLWE(), s.newSwitched(), s.newAccumulator()
	}
	return b
}

// borrow returns an unused bench. The number of benches is the largest number of concurrent calls
// so far.
func (e *Evaluator) borrow() *bench {
	e.lock.Lock()
	defer e.lock.Unlock()
	if last := len(e.free) - 1; last >= 0 {
		b := e.free[last]
		e.free = e.free[:last]
		return b
	}
	return e.s.newBench()
}

func (e *Evaluator) giveBack(b *bench) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.free = append(e.free, b)
}

// put adds the inputs of a task. If the bench is full, it computes the waiting tasks first.
func (b *bench) put(e *Evaluator, t *Task) {
	need := 1
	if t.Gate == Mux {
		need = 2
	}
	if b.count+need > group {
		b.flush(e)
	}
	switch t.Gate {
	case Look:
		b.next(job{t.Dst, t.Table, false}).Copy(t.A)
	case Mux: // with both inputs before the first result: dst may be an operand
		e.s.combine(b.next(job{t.Dst, e.sign, false}), And, t.A, t.B)
		e.s.combine(b.next(job{t.Dst, e.sign, true}), andNot, t.A, t.C)
	default:
		e.s.combine(b.next(job{t.Dst, e.sign, false}), t.Gate, t.A, t.B)
	}
}

// next adds a job and returns the place of its input.
func (b *bench) next(j job) *LWE {
	b.jobs[b.count] = j
	b.count++
	return b.inputs[b.count-1]
}

// flush computes all waiting tasks.
func (b *bench) flush(e *Evaluator) {
	s, count := e.s, b.count
	b.count = 0
	s.keySwitch(b.switched[:count], e.switches, b.inputs[:count])
	for k := range count {
		b.switched[k].round(s)
		s.start(b.acc[k], b.jobs[k].table, b.switched[k].turn)
	}
	for i := range s.Dim {
		rows := e.rotation.step(s, i)
		for k := range count {
			if c := b.switched[k].turns[i]; c != 0 {
				b.rotator.step(s, b.acc[k], rows, c)
			}
		}
	}
	for k, j := range b.jobs[:count] {
		acc := Ring{A: b.acc[k][0], B: b.acc[k][1]}
		if !j.mux {
			s.Extract(j.dst, &acc, 0)
			continue
		}
		s.Extract(b.out, &acc, 0)
		s.Add(j.dst, j.dst, b.out)
		s.AddPhase(j.dst, s.eighth())
	}
	clear(b.jobs[:count])
}
