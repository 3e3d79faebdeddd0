package circuit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Circuits have the same words if rotations are computed elsewhere, for several groups of gates
// concurrently.
func TestRotationsElsewhere(t *testing.T) {
	w := newWorld(t, 2)
	n := random(rand.New(rand.NewPCG(1, 2)), 8, 2, 100)
	p, err := n.Compile()
	if err != nil {
		t.Fatal(err)
	}
	in := w.encrypt(make([]bool, 8), func(i int) int { return i % 2 })
	of := func(i int) *multikey.Ciphertext { return in[i] }
	want, err := p.Run(t.Context(), w.local, of, nil)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, last := w.local, 0
	elsewhere.Rotate = func(ctx context.Context, list []multikey.Rotation) ([]multikey.Accumulator, error) {
		return w.local.Evaluator.Rotate(ctx, 1, list)
	}
	got, err := p.Run(t.Context(), elsewhere, of, func(gates int) {
		if gates <= last {
			t.Errorf("progress goes from %d to %d", last, gates)
		}
		last = gates
	})
	if err != nil || last != p.Gates() || !slices.EqualFunc(want, got, (*multikey.Ciphertext).Equal) {
		t.Errorf("after %d of %d gates: %v, or different words", last, p.Gates(), err)
	}
	broken := errors.New("broken")
	elsewhere.Rotate = func(context.Context, []multikey.Rotation) ([]multikey.Accumulator, error) { return nil, broken }
	if _, err := p.Run(t.Context(), elsewhere, of, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
