package triple

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

func (w *network) convolution(t testing.TB, s ConvolutionShape) *Plan {
	t.Helper()
	p, err := NewPlan(w.set, w.field, w.n, Convolution, images(s), 0, 1, w.dim)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// convolutions are shapes of every kind: kernels of one entry, as large as the image, and not
// square, strides, paddings.
var convolutions = []ConvolutionShape{
	{1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
	{2, 4, 4, 3, 3, 3, 1, 1, 1, 1},
	{1, 5, 5, 2, 3, 3, 2, 2, 0, 0},
	{3, 4, 5, 2, 2, 3, 2, 1, 0, 1},
	{1, 3, 4, 1, 3, 4, 1, 1, 0, 0},
	{2, 3, 3, 5, 1, 1, 1, 1, 0, 0},
	{1, 6, 3, 1, 4, 2, 2, 1, 2, 1},
	{1, 3, 3, 2, 3, 3, 2, 3, 2, 2},
}

// convolved counts the entries of results that are not those of the convolution, written as its
// definition.
func (w *network) convolved(t testing.TB, plan *Plan, results []Result) (wrong int) {
	t.Helper()
	f, s := w.scheme.Field, plan.Shape.Convolution
	x := w.pooled(t, results, func(r *Result) field.Vec { return r.A }, func(r *Result) field.Vec { return r.MACA })
	k := w.pooled(t, results, func(r *Result) field.Vec { return r.B }, func(r *Result) field.Vec { return r.MACB })
	y := w.pooled(t, results, func(r *Result) field.Vec { return r.C }, func(r *Result) field.Vec { return r.MACC })
	nx, nk, ny := plan.Elements()
	if x.Len() != nx*plan.Count || k.Len() != nk*plan.Count || y.Len() != ny*plan.Count || nx != s.Channels*s.Height*s.Width {
		t.Fatalf("%v: %d, %d and %d elements", s, x.Len(), k.Len(), y.Len())
	}
	high, wide := (s.Height+2*s.PaddingHeight-s.KernelHeight)/s.StrideHeight+1, (s.Width+2*s.PaddingWidth-s.KernelWidth)/s.StrideWidth+1
	term, seen := f.NewElement(), map[string]bool{}
	for i := range x.Len() {
		seen[fmt.Sprint(x.At(i))] = true
	}
	if len(seen) != x.Len() {
		t.Errorf("%v: %d different entries of images, of %d", s, len(seen), x.Len())
	}
	for tuple := range plan.Count {
		for o := range s.Outputs {
			for i := range high {
				for j := range wide {
					sum := f.NewElement()
					for c := range s.Channels {
						for ki := range s.KernelHeight {
							for kj := range s.KernelWidth {
								row, col := i*s.StrideHeight+ki-s.PaddingHeight, j*s.StrideWidth+kj-s.PaddingWidth
								if row < 0 || row >= s.Height || col < 0 || col >= s.Width {
									continue
								}
								f.Mul(term, x.At(((tuple*s.Channels+c)*s.Height+row)*s.Width+col),
									k.At((((tuple*s.Outputs+o)*s.Channels+c)*s.KernelHeight+ki)*s.KernelWidth+kj))
								f.Add(sum, sum, term)
							}
						}
					}
					if !f.Equal(sum, y.At(((tuple*s.Outputs+o)*high+i)*wide+j)) {
						wrong++
					}
				}
			}
		}
	}
	return wrong
}

func TestConvolutionTriples(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 4)
		for _, s := range convolutions {
			t.Run(fmt.Sprint(n, s), func(t *testing.T) {
				plan := w.convolution(t, s)
				out := w.run(plan).OK(t)
				if wrong := w.convolved(t, plan, out.Results); wrong > 0 {
					t.Errorf("%d entries are wrong", wrong)
				}
				for p := range out.Results {
					if out.Results[p].Digest != out.Results[0].Digest {
						t.Errorf("party %d has another digest", p)
					}
				}
			})
		}
		plan := w.trusting(t, w.convolution(t, convolutions[1]))
		if wrong := w.convolved(t, plan, w.run(plan).OK(t).Results); wrong > 0 {
			t.Errorf("%d entries are wrong without a sacrifice", wrong)
		}
	}
	w := newNetwork(t, "insecure-8", "p64", 2, 4)
	plan := w.convolution(t, convolutions[3])
	if wrong := w.convolved(t, plan, w.run(plan).OK(t).Results); wrong > 0 {
		t.Errorf("%d entries are wrong modulo p64", wrong)
	}
}

func TestConvolutionShapes(t *testing.T) {
	set, err := params.Lookup("insecure-8")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewPlan(set, "p128", 2, Convolution, images(ConvolutionShape{}), 0, 1, 4); err == nil {
		t.Error("a convolution of nothing was planned")
	}
	if _, err := NewPlan(set, "p128", 2, Convolution, images(convolutions[1]), 8, 1, 4); err == nil {
		t.Error("a convolution was planned in blocks that there are no keys for")
	}
	if _, err := NewPlan(set, "p128", 2, Convolution, matrices(Shape{1, 1, 1}), 0, 1, 4); err == nil {
		t.Error("a convolution was planned as a product")
	}
	other := convolutions[1]
	other.PaddingHeight, other.Height = 0, 6 // the same product
	w := network{set: set, field: "p128", n: 2, dim: 4}
	a, b := w.convolution(t, convolutions[1]), w.convolution(t, other)
	if a.Instance.Hash() != b.Instance.Hash() || a.Digest(round.Digest{}, round.Digest{}, 1, round.Digest{}) == b.Digest(round.Digest{}, round.Digest{}, 1, round.Digest{}) {
		t.Error("batches of two shapes with one product have one digest")
	}
}

// windows lets a party add one to an entry of the windows that it encrypts.
func (w *network) window(plan *Plan, tuple, row, col int) byzantine.Hooks {
	l := layoutOf(1)(w.state(plan))
	vector, slot := l.Place(tuple, row, col)
	return byzantine.On(byzantine.New(), "triple/window", func(tamper *func(int, field.Vec)) {
		*tamper = func(i int, slots field.Vec) {
			if i == vector {
				w.scheme.Field.Add(slots.At(slot), slots.At(slot), w.scheme.Field.One())
			}
		}
	})
}

// Windows that are those of no image, with entries that differ where the image has one, or are not
// zero beyond it, end the batch before the MAC key is used on it. A party that lies about its share
// of the combination has no MAC for it. Without the check these tuples, which are not convolutions,
// are released.
func TestWindowsOfNoImage(t *testing.T) {
	s := ConvolutionShape{2, 4, 4, 3, 3, 3, 1, 1, 1, 1}
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 4)
		plan, culprit := w.convolution(t, s), round.Party(n-1)
		last := plan.Count - 1
		for name, at := range map[string][3]int{
			"the first of an entry": {0, 4, 0}, "another of the same entry": {0, 0, 5}, "beyond the image": {0, 0, 0},
			"the last row": {last, 17, 10}, "beyond the last row": {last, 17, 15},
		} {
			t.Run(fmt.Sprint(name, ", ", n, " parties"), func(t *testing.T) {
				h := w.window(plan, at[0], at[1], at[2])
				w.opened = make([]bool, n)
				w.abandons(t, w.run(plan, roundtest.Cheat(culprit, h)).Errors, maccheck.CheckZero)
				if h.Fired("triple/window") != 1 || !w.opened[0] {
					t.Error("the cheat did not run, or nothing was opened")
				}
				sum := w.scheme.Field.NewElement()
				lies := byzantine.On(w.window(plan, at[0], at[1], at[2]), "triple/mac/open", func(v field.Vec) { w.scheme.Field.Neg(v.At(1), sum) })
				options := []roundtest.Option{roundtest.Rushing(culprit, &roundtest.View{}), roundtest.Serial(), roundtest.Cheat(culprit, lies)}
				for p := range culprit {
					options = append(options, roundtest.Watch(p, byzantine.On(byzantine.New(), "triple/mac/open", func(v field.Vec) {
						w.scheme.Field.Add(sum, sum, v.At(1))
					})))
				}
				w.abandons(t, w.run(plan, options...).Errors, maccheck.CheckMAC)
				options = []roundtest.Option{roundtest.Cheat(culprit, w.window(plan, at[0], at[1], at[2]).Skip(maccheck.CheckZero))}
				for p := range culprit {
					options = append(options, roundtest.Watch(p, byzantine.New().Skip(maccheck.CheckZero)))
				}
				if out := w.run(plan, options...).OK(t); w.convolved(t, plan, out.Results) == 0 {
					t.Error("without the check the windows give a convolution")
				}
			})
		}
	}
}

// A wrong share of any window, or of its MAC, stops the batch.
func TestEveryWindowIsChecked(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	plan := w.convolution(t, ConvolutionShape{2, 3, 3, 3, 2, 2, 1, 1, 1, 1})
	n, l := plan.extent(), layoutOf(1)(w.state(plan))
	for _, tuple := range []int{0, plan.Count - 1} {
		for row := range l.Rows {
			for col := 0; col < l.Cols; col += 3 {
				vector, slot := l.Place(tuple, row, col)
				w.stops(t, plan, w.adds(true, n.a+vector, slot), maccheck.CheckMAC, maccheck.CheckZero)
				w.stops(t, plan, w.adds(false, n.c+n.a+vector, slot), maccheck.CheckMAC)
			}
		}
	}
}
