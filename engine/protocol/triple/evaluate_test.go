package triple

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// apart computes tasks as another machine would: only from the task, on one goroutine.
type apart struct {
	of    *network
	alpha *gbfv.Left
	fail  error
}

func (a apart) Evaluate(ctx context.Context, t evaluation.Task) ([]*gbfv.Ciphertext, error) {
	if err := t.Check(a.of.scheme); err != nil {
		return nil, err
	}
	if len(t.Inputs) != t.Count || a.fail != nil {
		return nil, a.fail
	}
	return t.Run(ctx, gbfv.NewEvaluator(a.of.scheme, a.of.keys[0].Keys.Keys(a.of.scheme)), a.alpha, 1)
}

// all plans of kinds and shapes, with and without a sacrifice.
func (w *network) plans(t *testing.T) (all []*Plan) {
	for _, c := range []struct {
		kind  Kind
		shape Shape
		count int
	}{
		{Scalar, Shape{}, 3 * w.scheme.Slots()}, {Square, Shape{}, 3 * w.scheme.Slots()}, {Bit, Shape{}, 1}, {Inverse, Shape{}, 2 * w.scheme.Slots()},
		{Random, Shape{}, 2 * w.scheme.Slots()}, {Input, Shape{}, 1}, {Matrix, Shape{4, 4, 4}, 1}, {Matrix, Shape{5, 9, 6}, 1}, {Matrix, Shape{3, 12, 8}, 1},
	} {
		plan := w.plan(t, c.kind, c.shape, 0, c.count)
		all = append(all, plan)
		if c.kind.Multiplies() {
			all = append(all, w.trusting(t, plan))
		}
	}
	plan := w.convolution(t, convolutions[1])
	return append(all, plan, w.trusting(t, plan))
}

// The separate tasks of a batch give the same bits as the single task that a party computes.
func TestPortionsAreTheBatch(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	alpha := w.scheme.Left(w.macs[0].Ciphertext)
	stream := seed("inputs", 0).Stream("residues", 0)
	for _, plan := range w.plans(t) {
		r := &batch{extent: plan.extent(), Config: Config{
			Plan: plan, Scheme: w.scheme, Keys: w.keys[0].Keys.Keys(w.scheme), MAC: w.macs[0], Workers: 2,
		}}
		proved := make([]*gbfv.Ciphertext, r.extent.proved())
		for i := range proved {
			proved[i] = w.scheme.NewCiphertext()
			for _, p := range [][][]uint64{proved[i].C0.C, proved[i].C1.C} {
				for l, q := range w.scheme.Q.Primes() {
					sample.Uniform(p[l], q, stream)
				}
			}
		}
		copies := make([]*gbfv.Ciphertext, len(proved))
		for i, ct := range proved {
			copies[i] = ct.Clone()
		}
		here, err := r.evaluate(t.Context(), proved)
		if err != nil {
			t.Fatal(err)
		}
		r.Evaluator = apart{of: w, alpha: alpha}
		there, err := r.evaluate(t.Context(), copies)
		if err != nil {
			t.Fatal(err)
		}
		if len(here) != len(there) || gbfv.Hash(here) != gbfv.Hash(there) {
			t.Errorf("%d of %v, sacrifice %v: other ciphertexts", plan.Kind, plan.Product, plan.Sacrifice)
		}
		for i := range copies {
			if copies[i] != nil || proved[i] != nil {
				t.Fatal("proved ciphertexts are kept")
			}
		}
	}
}

// A party waits for its turn before it computes products, ends the turn afterwards, and returns the
// error of a turn that fails.
func TestProductsAwaitTheirTurn(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	plan := w.plan(t, Scalar, Shape{}, 0, 50)
	var entered, left atomic.Int64
	w.turn = func(context.Context) (func(), error) {
		entered.Add(1)
		return func() { left.Add(1) }, nil
	}
	failOn(t, w.run(plan).Errors)
	if entered.Load() != 2 || left.Load() != 2 {
		t.Errorf("entered %d times, left %d times", entered.Load(), left.Load())
	}
	gone := errors.New("gone")
	w.turn = func(context.Context) (func(), error) { return nil, gone }
	for p, err := range w.run(plan).Errors {
		if !errors.Is(err, gone) {
			t.Errorf("party %d: %v", p, err)
		}
	}
}

// Batches of which a party has an evaluator are right, and end with it.
func TestABatchWithAnEvaluator(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	alpha := w.scheme.Left(w.macs[0].Ciphertext)
	plan := w.plan(t, Matrix, Shape{5, 6, 3}, 0, 1)
	run := func(e evaluation.Evaluator) *roundtest.Outcome[Result] {
		w.evaluators = map[round.Party]evaluation.Evaluator{1: e}
		return w.run(plan)
	}
	w.verify(t, plan, run(apart{of: w, alpha: alpha}).OK(t).Results)
	failed := errors.New("it does not")
	if o := run(apart{of: w, alpha: alpha, fail: failed}); !errors.Is(o.Errors[1], failed) || o.Errors[0] == nil {
		t.Errorf("%v", o.Errors)
	}
}
