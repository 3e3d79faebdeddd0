// Package evaluation is what a party computes of public ciphertexts before a batch is decrypted (MatriGear, Fig. 4, step 2):
// products, and alpha times ciphertexts and products, where alpha is encrypted too. It needs evaluation keys and no secret,
// and its results depend on nothing but its inputs, bit for bit. So whoever has the same keys can do it: a Task says
// everything that it takes.
package evaluation

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
)

// Evaluator computes tasks: somewhere else, or here. It is used by several goroutines at once. What it gives is what
// Task.Run gives, or an error; it changes no input. The results are the caller's.
type Evaluator interface {
	Evaluate(ctx context.Context, t Task) ([]*gbfv.Ciphertext, error)
}

// Pair is a product of two inputs.
type Pair struct{ Left, Right int }

// Shape says what a task computes. The first Rows·Inner·Dim inputs are the blocks of an encrypted matrix, and the next
// Inner·Cols·Dim those of another; Dim is 0 where there are no matrices. Products are those of the matrices, Rows·Cols·Dim
// ciphertexts, and then the pairs. Results are, modulo the first Primes primes: alpha times the inputs from First up to
// Last-1, the products, and alpha times the products, in this order.
type Shape struct {
	Count                  int // of inputs
	Rows, Inner, Cols, Dim int
	Pairs                  []Pair
	First, Last            int
	Primes                 int
}

// MaxInputs bounds the inputs of a task.
const MaxInputs = 1 << 15

// Check refuses shapes that make no sense under a scheme.
func (s *Shape) Check(of *gbfv.Scheme) error {
	matrices := 0
	switch {
	case s.Count < 1 || s.Count > MaxInputs:
		return fmt.Errorf("evaluation: %d inputs; 1 to %d", s.Count, MaxInputs)
	case s.Dim != 0:
		if s.Dim < 0 || s.Dim&(s.Dim-1) != 0 || s.Dim > of.Slots() || min(s.Rows, s.Inner, s.Cols) < 1 || max(s.Rows, s.Inner, s.Cols) > MaxInputs {
			return fmt.Errorf("evaluation: no product of %d x %d and %d x %d blocks of %d", s.Rows, s.Inner, s.Inner, s.Cols, s.Dim)
		}
		matrices = (s.Rows + s.Cols) * s.Inner * s.Dim
	case s.Rows != 0 || s.Inner != 0 || s.Cols != 0:
		return fmt.Errorf("evaluation: blocks of no size")
	}
	switch {
	case matrices > s.Count:
		return fmt.Errorf("evaluation: matrices of %d ciphertexts, and %d inputs", matrices, s.Count)
	case s.Rows*s.Cols*s.Dim+len(s.Pairs) > MaxInputs:
		return fmt.Errorf("evaluation: more than %d products", MaxInputs)
	case s.First < 0 || s.First > s.Last || s.Last > s.Count:
		return fmt.Errorf("evaluation: alpha times inputs %d to %d of %d", s.First, s.Last, s.Count)
	case s.Primes < 1 || s.Primes > of.Q.Len():
		return fmt.Errorf("evaluation: results modulo %d primes of %d", s.Primes, of.Q.Len())
	case s.Results() < 1:
		return fmt.Errorf("evaluation: no results")
	}
	for _, p := range s.Pairs {
		if min(p.Left, p.Right) < 0 || max(p.Left, p.Right) >= s.Count {
			return fmt.Errorf("evaluation: a product of inputs %d and %d of %d", p.Left, p.Right, s.Count)
		}
	}
	return nil
}

// Products is how many products there are.
func (s *Shape) Products() int { return s.Rows*s.Cols*s.Dim + len(s.Pairs) }

// Results is how many ciphertexts a task gives.
func (s *Shape) Results() int { return s.Last - s.First + 2*s.Products() }

// scratch is about how many polynomials on Q products hold for each worker.
const scratch = 24

// MemoryBytes is about what a task takes: its inputs, products and results, and what it computes with.
func (s *Shape) MemoryBytes(of *gbfv.Scheme, workers int) int64 {
	polys := 2*int64(s.Count) + 2*int64(s.Products()) + 2*int64(s.Results()*s.Primes/of.Q.Len()+1) + scratch*int64(workers)
	if s.Dim > 0 {
		polys += 7 * int64(s.Dim)
	}
	return polys * int64(of.N()) * int64(of.Q.Len()) * 8
}

// Task is a shape with its inputs, on basis Q.
type Task struct {
	Shape
	Inputs []*gbfv.Ciphertext
	// Consume lets the task give its inputs back as soon as they are not needed any more. They are nil afterwards.
	Consume bool
}

// Run computes a task, whose shape has been checked, on so many goroutines.
func (t *Task) Run(ctx context.Context, e *gbfv.Evaluator, alpha *gbfv.Left, workers int) ([]*gbfv.Ciphertext, error) {
	matrix := t.Rows * t.Cols * t.Dim
	products := make([]*gbfv.Ciphertext, t.Products())
	if t.Dim > 0 {
		split := t.Rows * t.Inner * t.Dim
		a := gbfv.Grid{Rows: t.Rows, Cols: t.Inner, Dim: t.Dim, C: t.Inputs[:split]}
		b := gbfv.Grid{Rows: t.Inner, Cols: t.Cols, Dim: t.Dim, C: t.Inputs[split : split+t.Inner*t.Cols*t.Dim]}
		c, err := e.MatMul(ctx, a, b, workers)
		if err != nil {
			return nil, err
		}
		copy(products, c.C)
	}
	type numbered struct{ left, number int }
	pairs, lefts := make([][]numbered, len(t.Inputs)), make([]bool, len(t.Inputs))
	for i, p := range t.Pairs {
		pairs[p.Right] = append(pairs[p.Right], numbered{p.Left, matrix + i})
		lefts[p.Left] = true
	}
	times := func(right *gbfv.Right) *gbfv.Ciphertext {
		p := e.Mul(alpha, right)
		defer p.Free()
		e.Tick()
		return e.SwitchModulus(p, t.Primes)
	}
	out := make([]*gbfv.Ciphertext, t.Results())
	macs := out[:t.Last-t.First]
	// A right factor is made ready once, for all products that it is in.
	err := parallel.Try(ctx, workers, len(t.Inputs), func(i int) error {
		if len(pairs[i]) > 0 || i >= t.First && i < t.Last {
			right := e.Right(t.Inputs[i])
			defer right.Free()
			for _, p := range pairs[i] {
				left := e.Left(t.Inputs[p.left])
				products[p.number] = e.Mul(left, right)
				left.Free()
				e.Tick()
			}
			if !lefts[i] {
				t.consume(i)
			}
			if i >= t.First && i < t.Last {
				macs[i-t.First] = times(right)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range t.Inputs {
		t.consume(i)
	}
	plain, authenticated := out[len(macs):len(macs)+len(products)], out[len(macs)+len(products):]
	err = parallel.Try(ctx, workers, len(products), func(i int) error {
		x := products[i]
		products[i] = nil
		plain[i] = e.SwitchModulus(x, t.Primes)
		right := e.Right(x)
		x.Free()
		authenticated[i] = times(right)
		right.Free()
		return nil
	})
	return out, err
}

// consume gives an input back if that is allowed.
func (t *Task) consume(i int) {
	if t.Consume {
		t.Inputs[i].Free()
		t.Inputs[i] = nil
	}
}

// Free gives all of a list back.
func Free(list []*gbfv.Ciphertext) {
	for _, ct := range list {
		ct.Free()
	}
	clear(list)
}
