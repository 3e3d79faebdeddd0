package triple

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// A place is one list of a batch that is released: which vectors of the proof's shares or of the
// decrypted ones hold it.
type place struct {
	name   string
	proved bool                  // in popk.Result.Shares, otherwise in ddec.Shares
	first  func(n extent) int    // the list's first vector
	layout func(r *batch) layout // of matrices
}

type layout = gbfv.Layout

var places = []place{
	{"a", true, func(extent) int { return 0 }, layoutOf(0)},
	{"b", true, func(n extent) int { return n.a }, layoutOf(1)},
	{"c", false, func(extent) int { return 0 }, layoutOf(2)},
	{"alpha a", false, func(n extent) int { return n.c }, layoutOf(0)},
	{"alpha b", false, func(n extent) int { return n.c + n.a }, layoutOf(1)},
	{"alpha c", false, func(n extent) int { return n.c + n.a + n.b }, layoutOf(2)},
}

func layoutOf(which int) func(r *batch) layout {
	return func(r *batch) layout {
		a, b, c, err := r.Plan.layouts(r.Scheme)
		if err != nil {
			panic(err)
		}
		return [3]layout{a, b, c}[which]
	}
}

// state is a batch of the plan as Start makes it, without a run.
func (w *network) state(plan *Plan) *batch {
	return &batch{Config: Config{Plan: plan, Scheme: w.scheme}, extent: plan.extent()}
}

// adds adds one to a slot of a vector of the culprit's shares.
func (w *network) adds(proved bool, vector, slot int) byzantine.Hooks {
	f := w.scheme.Field
	if proved {
		return byzantine.On(byzantine.New(), "popk.Result", func(r *popk.Result) {
			f.Add(r.Shares[vector].At(slot), r.Shares[vector].At(slot), f.One())
		})
	}
	return byzantine.On(byzantine.New(), "ddec.Shares", func(s ddec.Shares) {
		f.Add(s[vector].At(slot), s[vector].At(slot), f.One())
	})
}

// stops runs the plan with a cheat of the last party and fails the test unless all others abort for
// one of these checks.
func (w *network) stops(t *testing.T, plan *Plan, h byzantine.Hooks, checks ...string) {
	t.Helper()
	culprit := round.Party(w.n - 1)
	out := w.run(plan, roundtest.Cheat(culprit, h))
	if h.Fired("popk.Result")+h.Fired("ddec.Shares") != 1 {
		t.Error("the cheat did not run")
	}
	for p, err := range out.Errors[:culprit] {
		var abort *round.Abort
		if !errors.As(err, &abort) || !slices.Contains(checks, abort.Check) {
			t.Errorf("party %d ends with %v, want an abort of check %s", p, err, checks)
		}
	}
}

// A wrong share of any list that is released, in its first entry or its last, stops the batch.
func TestEveryReleasedValueIsChecked(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	scalar := func(t *testing.T, plan *Plan) {
		r := w.state(plan)
		slots := w.scheme.Slots()
		for _, c := range places {
			for _, entry := range []int{0, plan.Count - 1} {
				t.Run(fmt.Sprint(c.name, " ", entry), func(t *testing.T) {
					w.stops(t, plan, w.adds(c.proved, c.first(r.extent)+entry/slots, entry%slots), maccheck.CheckMAC)
				})
			}
		}
	}
	matrix := func(t *testing.T, plan *Plan) {
		r := w.state(plan)
		for _, c := range places {
			l := c.layout(r)
			for _, at := range [][3]int{{0, 0, 0}, {plan.Count - 1, l.Rows - 1, l.Cols - 1}} {
				t.Run(fmt.Sprint(c.name, " ", at), func(t *testing.T) {
					vector, slot := l.Place(at[0], at[1], at[2])
					w.stops(t, plan, w.adds(c.proved, c.first(r.extent)+vector, slot), maccheck.CheckMAC)
				})
			}
		}
	}
	s, m := w.plan(t, Scalar, Shape{}, 0, 100), w.plan(t, Matrix, Shape{5, 3, 2}, 4, 1)
	t.Run("scalar", func(t *testing.T) { scalar(t, s) })
	t.Run("matrix", func(t *testing.T) { matrix(t, m) })
	// The relations of a sacrifice would see some of this too.
	t.Run("scalar, trusting", func(t *testing.T) { scalar(t, w.trusting(t, s)) })
	t.Run("matrix, trusting", func(t *testing.T) { matrix(t, w.trusting(t, m)) })
}

// The same holds for the mask of the check, which is never released, and its MAC.
func TestTheMaskIsChecked(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	scalar, matrix := w.plan(t, Scalar, Shape{}, 0, 1), w.plan(t, Matrix, Shape{4, 4, 4}, 4, 1)
	n, m := w.state(scalar).extent, w.state(matrix).extent
	last := scalar.Count % w.scheme.Slots()
	w.stops(t, scalar, w.adds(true, n.a-1, last), maccheck.CheckMAC)
	w.stops(t, scalar, w.adds(false, n.c+n.a-1, last), maccheck.CheckMAC)
	w.stops(t, matrix, w.adds(true, m.a+m.b, 0), maccheck.CheckMAC)
	w.stops(t, matrix, w.adds(false, 2*m.c+m.a+m.b, 0), maccheck.CheckMAC)
}

// Padding is checked in every row and column that the product reads, and so are its MACs.
func TestEveryPaddingIsChecked(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	plan := w.plan(t, Matrix, Shape{5, 6, 2}, 4, 1) // two columns of padding
	r := w.state(plan)
	l := layoutOf(0)(r)
	for _, at := range [][3]int{{0, 0, 6}, {0, 4, 7}, {plan.Count - 1, 0, 7}, {plan.Count - 1, 4, 6}} {
		vector, slot := l.Place(at[0], at[1], at[2])
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			w.stops(t, plan, w.adds(true, vector, slot), maccheck.CheckZero)
			w.stops(t, plan, w.adds(false, r.extent.c+vector, slot), maccheck.CheckMAC)
		})
	}
}

// The inputs of the check: all values with their MACs, all padding, and a mask that is not
// released.
func TestCollect(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	f := w.scheme.Field
	for _, plan := range []*Plan{
		w.plan(t, Scalar, Shape{}, 0, 1), w.plan(t, Scalar, Shape{}, 0, 100), w.plan(t, Matrix, Shape{4, 4, 4}, 4, 1),
		w.plan(t, Inverse, Shape{}, 0, 100), w.plan(t, Square, Shape{}, 0, 100), w.plan(t, Bit, Shape{}, 0, 100),
		w.plan(t, Random, Shape{}, 0, 1), w.plan(t, Random, Shape{}, 0, 100), w.plan(t, Input, Shape{}, 0, 100),
		w.plan(t, Matrix, Shape{5, 6, 2}, 4, 1), w.plan(t, Matrix, Shape{2, 9, 3}, 4, 1), w.trusting(t, w.plan(t, Matrix, Shape{5, 6, 2}, 4, 1)),
	} {
		r := w.state(plan)
		n := r.extent
		// Every slot has a different value, and its decrypted MAC is the negative value.
		next := uint64(0)
		fill := func(count int) (list []field.Vec) {
			for range count {
				v := f.NewVec(w.scheme.Slots())
				for slot := range v.Len() {
					next++
					f.SetUint64(v.At(slot), next)
				}
				list = append(list, v)
			}
			return list
		}
		negative := func(list []field.Vec) (out []field.Vec) {
			for _, v := range list {
				m := f.NewVec(v.Len())
				f.NegVec(m, v)
				out = append(out, m)
			}
			return out
		}
		c, h := fill(n.c), fill(n.h)
		r.a, r.b, r.f, r.g = fill(n.a), fill(n.b), fill(n.f), fill(n.g)
		shares := append(ddec.Shares(nil), c...)
		shares = append(append(append(shares, negative(r.a)...), negative(r.b)...), negative(c)...)
		r.rho = fill(n.rho)
		shares = append(shares, negative(r.rho)...)
		shares = append(append(append(append(shares, h...), negative(r.f)...), negative(r.g)...), negative(h)...)
		shares = append(shares, fill(n.squares)...)
		spare, err := r.collect(shares)
		if err != nil {
			t.Fatal(err)
		}
		result, mask := r.result, r.material.Mask
		all := []maccheck.Pair{spare.f, spare.g, spare.h, mask, {Value: result.A, MAC: result.MACA}, {Value: result.B, MAC: result.MACB}, {Value: result.C, MAC: result.MACC}}
		seen := map[string]string{}
		for i, pair := range append(all, r.zeros...) {
			for k := range pair.Value.Len() {
				where := fmt.Sprintf("%d of list %d", k, i)
				x := f.NewElement()
				if f.Neg(x, pair.MAC.At(k)); !f.Equal(x, pair.Value.At(k)) || f.IsZero(x) {
					t.Fatalf("%v: value %s has the MAC of another, or none", plan.Product, where)
				}
				if other, ok := seen[fmt.Sprint(x)]; ok {
					t.Fatalf("%v: value %s is value %s", plan.Product, where, other)
				}
				seen[fmt.Sprint(x)] = where
			}
		}
		a, b, products := plan.Elements()
		if plan.Kind.Opens() {
			products = 1 // which are opened and not released
		}
		padding := 0
		if plan.Kind == Matrix {
			padding = plan.Count * plan.Product.Rows * (plan.blocks(plan.Product.Inner)*plan.Dim - plan.Product.Inner)
		}
		masks := 2 * plan.Count // f and h
		if plan.Kind == Matrix {
			masks = 3 * plan.Count * plan.Product.Inner
		}
		if !plan.Sacrifice {
			masks = 0
		}
		if want := 1 + plan.Count*(a+b+products) + padding + masks; len(seen) != want || mask.Value.Len() != 1 {
			t.Errorf("%v: %d values are checked, want %d", plan.Product, len(seen), want)
		}
		w.reservedAlone(t, plan, &r.material, seen)
		if plan.Kind == Scalar {
			want := f.NewElement() // the slot after the last triple
			if f.SetUint64(want, uint64((n.c+n.h)*w.scheme.Slots()+plan.Count+1)); !f.Equal(mask.Value.At(0), want) {
				t.Error("the mask of scalars is not the a of the first reserved slot")
			}
			for i, v := range shares {
				if !f.EqualVec(v, f.NewVec(v.Len())) {
					t.Errorf("decrypted shares %d were not erased", i)
				}
			}
		}
	}
}

// reservedAlone fails the test if something of a check triple is among the values that are
// released, sacrificed or opened, or if two check triples share something.
func (w *network) reservedAlone(t *testing.T, plan *Plan, m *maccheck.Material, seen map[string]string) {
	t.Helper()
	f := w.scheme.Field
	half, two := f.NewElement(), f.NewElement()
	f.SetUint64(two, 2)
	f.Inverse(half, two)
	for k := range checkTriples(plan.Kind) {
		x := m.Triples[k]
		secrets, mac := []field.Vec{x.A, x.B, x.C}, x.B.Clone()
		if plan.Kind != Scalar && plan.Kind != Inverse { // a and b are the sum and the difference of two values
			u, v := x.A.Clone(), x.A.Clone()
			f.AddVec(u, u, x.B)
			f.SubVec(v, v, x.B)
			f.ScaleVec(u, u, half)
			f.ScaleVec(v, v, half)
			secrets = []field.Vec{u, v}
		}
		for i, s := range secrets {
			where := fmt.Sprintf("element %d of check triple %d", i, k)
			if other, ok := seen[fmt.Sprint(s.At(0))]; ok {
				t.Errorf("%v, kind %d: %s is value %s", plan.Product, plan.Kind, where, other)
			}
			seen[fmt.Sprint(s.At(0))] = where
		}
		if f.NegVec(mac, mac); !f.EqualVec(mac, x.MACB) {
			t.Errorf("%v, kind %d: check triple %d has the MAC of another value", plan.Product, plan.Kind, k)
		}
	}
}

// The digest of a batch binds its session, instance, key, kind and size, and all broadcasts.
func TestDigestOfABatch(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	scalar, matrix := w.plan(t, Scalar, Shape{}, 0, 1), w.plan(t, Matrix, Shape{4, 4, 4}, 4, 1)
	for _, plan := range []*Plan{
		scalar, matrix, w.trusting(t, scalar), w.trusting(t, matrix), w.inputs(t, 0, 1), w.inputs(t, 1, 1), w.convolution(t, convolutions[3]),
	} {
		id := round.Hash("a session")
		out := w.run(plan, roundtest.ID(id)).OK(t)
		instance, key := plan.Instance.Hash(), w.keys[0].Keys.PublicHash(w.scheme)
		fields := [][]byte{id[:], instance[:], key[:], round.Uint(uint64(plan.Kind)), round.Uint(uint64(plan.Count)), out.Transcripts[0][:]}
		switch {
		case plan.Kind == Input:
			fields = append(fields, round.Uint(uint64(plan.Owner)))
		case plan.Sacrifice:
			fields = append(fields, []byte("sacrificed"))
		}
		if plan.Kind == Convolution {
			for _, n := range []uint64{3, 4, 5, 2, 2, 3, 2, 1, 0, 1} {
				fields = append(fields, round.Uint(n))
			}
		}
		want := round.Hash("lodge batch", fields...)
		for p, r := range out.Results {
			if r.Digest != want {
				t.Errorf("kind %d: party %d has another digest", plan.Kind, p)
			}
		}
		if again := w.run(plan).OK(t); again.Results[0].Digest == want {
			t.Error("two sessions have one digest")
		}
	}
}
