package triple

import (
	"context"
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// network is n parties with keys and a MAC key, made by the protocols themselves.
type network struct {
	n      int
	set    *params.Set
	scheme *gbfv.Scheme
	keys   []keygen.Result
	macs   []MACKey
	field  string
	dim    int
	// earlier are the ciphertexts that an earlier batch decrypted
	earlier []*gbfv.Ciphertext
	// label tells the randomness of batches apart
	label string
	// labels do so for only one party
	labels map[round.Party]string
	// evaluators compute for parties that have one
	evaluators map[round.Party]evaluation.Evaluator
	// turn is Config.Turn of all
	turn func(context.Context) (leave func(), err error)
	// opened notes calls of Config.Opening, unless it is nil
	opened []bool
}

func seed(label string, p round.Party) *sample.Source {
	d := round.Hash("triple test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

// schemeOf is the scheme of a set and a field.
func schemeOf(t testing.TB, setName, fieldName string) *gbfv.Scheme {
	t.Helper()
	set, err := params.Lookup(setName)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Field(fieldName)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := gbfv.New(set, spec)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newNetwork(t testing.TB, setName, fieldName string, n, dim int) *network {
	t.Helper()
	scheme := schemeOf(t, setName, fieldName)
	set := scheme.Set
	w := &network{n: n, set: set, scheme: scheme, field: fieldName, dim: dim}
	keys := roundtest.Lockstep(n, func(s round.Session) (round.Transition[keygen.Result], error) {
		return keygen.Start(keygen.Config{Session: s, Scheme: scheme, Dim: dim, Security: keygen.Passive, Source: seed("keys", s.Self), Workers: 2})
	})
	w.keys = keys.Results
	failOn(t, keys.Errors)
	instance, err := MACKeyInstance(set, fieldName, n)
	if err != nil {
		t.Fatal(err)
	}
	macs := roundtest.Lockstep(n, func(s round.Session) (round.Transition[MACKey], error) {
		k := w.keys[s.Self].Keys
		return StartMACKey(MACKeyConfig{Session: s, Scheme: scheme, Instance: instance, Public: k.Public, KeyHash: k.PublicHash(scheme), Source: seed("mac", s.Self), Workers: 2})
	})
	failOn(t, macs.Errors)
	w.macs = macs.Results
	return w
}

func failOn(t testing.TB, errs []error) {
	t.Helper()
	for p, err := range errs {
		if err != nil {
			t.Fatalf("party %d: %v", p, err)
		}
	}
}

func (w *network) plan(t testing.TB, kind Kind, shape Shape, dim, count int) *Plan {
	t.Helper()
	p, err := NewPlan(w.set, w.field, w.n, kind, matrices(shape), dim, count, w.dim)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// trusting is the plan without a sacrifice.
func (w *network) trusting(t testing.TB, plan *Plan) *Plan {
	t.Helper()
	p, err := plan.Trusting()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *network) run(plan *Plan, options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(w.n, func(s round.Session) (round.Transition[Result], error) {
		k := w.keys[s.Self]
		c := Config{
			Session: s, Plan: plan, Scheme: w.scheme, Keys: k.Keys.Keys(w.scheme), Public: k.Keys.Public,
			KeyHash: k.Keys.PublicHash(w.scheme), Secret: keygen.Lift(w.scheme, k.Secret), MAC: w.macs[s.Self],
			Source: seed("batch"+w.label+w.labels[s.Self], s.Self), Workers: 2, Evaluator: w.evaluators[s.Self], Turn: w.turn,
		}
		if w.opened != nil {
			c.Opening = func() error {
				w.opened[s.Self] = true
				return nil
			}
		}
		return Start(c)
	}, options...)
}

// sum adds up the parties' shares.
func (w *network) sum(results []Result, pick func(r *Result) field.Vec) field.Vec {
	f := w.scheme.Field
	total := f.NewVec(pick(&results[0]).Len())
	for i := range results {
		f.AddVec(total, total, pick(&results[i]))
	}
	return total
}

// verify checks every triple and MAC against the pooled shares.
func (w *network) verify(t testing.TB, plan *Plan, results []Result) {
	t.Helper()
	f := w.scheme.Field
	alpha := f.NewElement()
	for _, m := range w.macs {
		f.Add(alpha, alpha, m.Share.At(0))
	}
	if f.IsZero(alpha) {
		t.Fatal("alpha is zero")
	}
	a := w.sum(results, func(r *Result) field.Vec { return r.A })
	b := w.sum(results, func(r *Result) field.Vec { return r.B })
	c := w.sum(results, func(r *Result) field.Vec { return r.C })
	for _, m := range []struct {
		name  string
		value field.Vec
		mac   field.Vec
	}{
		{"a", a, w.sum(results, func(r *Result) field.Vec { return r.MACA })},
		{"b", b, w.sum(results, func(r *Result) field.Vec { return r.MACB })},
		{"c", c, w.sum(results, func(r *Result) field.Vec { return r.MACC })},
	} {
		want := f.NewVec(m.value.Len())
		f.ScaleVec(want, m.value, alpha)
		if !f.EqualVec(want, m.mac) {
			t.Errorf("MACs of %s are wrong", m.name)
		}
	}
	if plan.Kind == Scalar {
		want := f.NewVec(a.Len())
		f.MulVec(want, a, b)
		if a.Len() != plan.Count || !f.EqualVec(want, c) {
			t.Errorf("c differs from a b")
		}
		return
	}
	s := plan.Product
	x := f.NewElement()
	for m := range plan.Count {
		for i := range s.Rows {
			for j := range s.Cols {
				sum := f.NewElement()
				for k := range s.Inner {
					f.Mul(x, a.At(m*s.Rows*s.Inner+i*s.Inner+k), b.At(m*s.Inner*s.Cols+k*s.Cols+j))
					f.Add(sum, sum, x)
				}
				if !f.Equal(sum, c.At(m*s.Rows*s.Cols+i*s.Cols+j)) {
					t.Fatalf("entry (%d, %d) of product %d is wrong", i, j, m)
				}
			}
		}
	}
}

func TestScalarTriples(t *testing.T) {
	for _, c := range []struct {
		set, field string
		n          int
	}{{"insecure-8", "p128", 2}, {"insecure-8", "p64", 3}, {"insecure-8", "p256", 5}, {"insecure-8-64", "p256", 2}, {"insecure-8-16", "p128", 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := newNetwork(t, c.set, c.field, c.n, 1)
			plan := w.plan(t, Scalar, Shape{}, 0, 100)
			out := w.run(plan)
			failOn(t, out.Errors)
			w.verify(t, plan, out.Results)
		})
	}
}

// The MAC key's ciphertext may be prepared once: batches are the same, and it serves the next one
// too.
func TestPreparedMACKeyServesManyBatches(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	plan := w.plan(t, Scalar, Shape{}, 0, 100)
	want := w.run(plan).OK(t).Results[0].Digest
	for p := range w.macs {
		w.macs[p].Operand = w.scheme.Left(w.macs[p].Ciphertext)
	}
	for i := range 2 {
		out := w.run(plan).OK(t)
		w.verify(t, plan, out.Results)
		if out.Results[0].Digest != want {
			t.Errorf("batch %d is another with a prepared MAC key", i)
		}
	}
}

func TestMatrixTriples(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 3, 16)
	for _, c := range []struct {
		shape Shape
		dim   int
	}{
		{Shape{16, 16, 16}, 0},
		{Shape{8, 8, 8}, 0},
		{Shape{20, 10, 5}, 8},
		{Shape{3, 17, 2}, 4},
		{Shape{1, 16, 1}, 0},
	} {
		t.Run(fmt.Sprint(c.shape), func(t *testing.T) {
			plan := w.plan(t, Matrix, c.shape, c.dim, 1)
			out := w.run(plan)
			failOn(t, out.Errors)
			w.verify(t, plan, out.Results)
			for p := range out.Results {
				if out.Results[p].Digest != out.Results[0].Digest {
					t.Errorf("party %d has another digest", p)
				}
			}
		})
	}
}
