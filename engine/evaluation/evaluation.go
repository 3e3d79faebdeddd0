// Package evaluation implements a party's computation on public ciphertexts before a batch is
// decrypted (MatriGear, Figure 4, step 2): products, and alpha times ciphertexts and products,
// where alpha is encrypted too. It needs evaluation keys and no secret, and its results depend only
// on its inputs, bit for bit. So any machine with the same keys can do it: a Task contains all
// other inputs.
package evaluation

import (
	"context"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
)

// Evaluator computes tasks, locally or on another machine. It must be safe for concurrent use. It
// returns the result of Task.Run or an error, and does not change the inputs. The caller owns the
// results.
type Evaluator interface {
	Evaluate(ctx context.Context, t Task) ([]*gbfv.Ciphertext, error)
}

// Pair is a product of two inputs.
type Pair struct{ Left, Right int }

// Shape describes the computation of a task. The first Rows·Inner·Dim inputs are the blocks of an
// encrypted matrix, and the next Inner·Cols·Dim those of another; Dim is 0 if there are no
// matrices. Products are those of the matrices, Rows·Cols·Dim ciphertexts, followed by the pairs.
// Results are, modulo the first Primes primes: alpha times the inputs from First up to Last-1, the
// products, and alpha times the products, in this order.
type Shape struct {
	Count                  int // number of inputs
	Rows, Inner, Cols, Dim int
	Pairs                  []Pair
	First, Last            int
	Primes                 int
}

// MaxInputs is the maximum number of inputs of a task.
const MaxInputs = 1 << 15

// Check returns an error if the shape is invalid under a scheme.
func (s *Shape) Check(of *gbfv.Scheme) error {
	matrices := 0
	switch {
	case s.Count < 1 || s.Count > MaxInputs:
		return fmt.Errorf("evaluation: %d inputs (1 to %d)", s.Count, MaxInputs)
	case s.Dim != 0:
		if s.Dim < 0 || s.Dim&(s.Dim-1) != 0 || s.Dim > of.Slots() || min(s.Rows, s.Inner, s.Cols) < 1 || max(s.Rows, s.Inner, s.Cols) > MaxInputs {
			return fmt.Errorf("evaluation: cannot multiply %d x %d and %d x %d blocks of size %d", s.Rows, s.Inner, s.Inner, s.Cols, s.Dim)
		}
		matrices = (s.Rows + s.Cols) * s.Inner * s.Dim
	case s.Rows != 0 || s.Inner != 0 || s.Cols != 0:
		return fmt.Errorf("evaluation: the blocks have no size")
	}
	switch {
	case matrices > s.Count:
		return fmt.Errorf("evaluation: the matrices have %d ciphertexts, but there are only %d inputs", matrices, s.Count)
	case s.Rows*s.Cols*s.Dim+len(s.Pairs) > MaxInputs:
		return fmt.Errorf("evaluation: more than %d products", MaxInputs)
	case s.First < 0 || s.First > s.Last || s.Last > s.Count:
		return fmt.Errorf("evaluation: cannot multiply alpha with inputs %d to %d of %d", s.First, s.Last, s.Count)
	case s.Primes < 1 || s.Primes > of.Q.Len():
		return fmt.Errorf("evaluation: cannot reduce results to %d primes of %d", s.Primes, of.Q.Len())
	case s.Results() < 1:
		return fmt.Errorf("evaluation: no results")
	}
	for _, p := range s.Pairs {
		if min(p.Left, p.Right) < 0 || max(p.Left, p.Right) >= s.Count {
			return fmt.Errorf("evaluation: cannot multiply inputs %d and %d of %d", p.Left, p.Right, s.Count)
		}
	}
	return nil
}

// Products returns the number of products.
func (s *Shape) Products() int { return s.Rows*s.Cols*s.Dim + len(s.Pairs) }

// Results returns the number of ciphertexts in the result.
func (s *Shape) Results() int { return s.Last - s.First + 2*s.Products() }

// scratch is the approximate number of polynomials on Q that each worker needs for products.
const scratch = 24

// MemoryBytes estimates the memory of a task in bytes: its inputs, products and results, and the
// workers' scratch space.
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
	// Consume permits the task to free each input as soon as it is not needed any more. Freed
	// inputs are set to nil.
	Consume bool
}

// Run computes a task on the given number of goroutines. The shape must have been checked.
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
	// A right factor is prepared once for all its products.
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

// consume frees an input if Consume permits it.
func (t *Task) consume(i int) {
	if t.Consume {
		t.Inputs[i].Free()
		t.Inputs[i] = nil
	}
}

// Free frees all ciphertexts of a list.
func Free(list []*gbfv.Ciphertext) {
	for _, ct := range list {
		ct.Free()
	}
	clear(list)
}
