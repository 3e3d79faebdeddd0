package cheattest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// world consists of n parties with keys and a MAC key, in which every kind of session can run.
type world struct {
	n      int
	scheme *gbfv.Scheme
	keys   []keygen.Result
	macKey *params.Instance
	macs   []triple.MACKey
	mu     sync.Mutex
	past   map[Kind]*roundtest.Recording
}

// ended holds a party's result of a session, in one of its fields.
type ended struct {
	keys  *keygen.Result
	batch *triple.Result
	mac   triple.MACKey
}

var worlds = map[int]*world{}

// worldOf returns a world, which it creates once.
func worldOf(t *testing.T, n int) *world {
	t.Helper()
	if w := worlds[n]; w != nil {
		return w
	}
	set, err := params.Lookup("insecure-6")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Field("p128")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{n: n, past: map[Kind]*roundtest.Recording{}}
	if w.scheme, err = gbfv.New(set, spec); err != nil {
		t.Fatal(err)
	}
	if w.macKey, err = triple.MACKeyInstance(set, "p128", n); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.run(t, Keys, "world", nil).OK(t).Results {
		w.keys = append(w.keys, *r.keys)
	}
	for _, r := range w.run(t, First, "world", nil).OK(t).Results {
		w.macs = append(w.macs, r.mac)
	}
	worlds[n] = w
	return w
}

// plan returns the plan for the batches of a session.
func (w *world) plan(t *testing.T, in Kind) *triple.Plan {
	t.Helper()
	k, shape, dim := kind.Scalar, kind.Shape{}, 0
	switch in {
	case Matrices:
		k, shape.Matrix, dim = kind.Matrix, kind.MatrixShape{Rows: 4, Inner: 3, Cols: 4}, keyDim
	case Convolutions:
		k, dim = kind.Convolution, keyDim
		shape.Convolution = kind.ConvolutionShape{
			Channels: 1, Height: 3, Width: 3, Outputs: 3, KernelHeight: 2, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1,
		}
	case Bits:
		k = kind.Bit
	case Inputs:
		k = kind.Input
	}
	p, err := triple.NewPlan(w.scheme.Set, "p128", w.n, k, shape, dim, 40, keyDim)
	if err != nil {
		t.Fatal(err)
	}
	if in == Inputs {
		p.Owner = round.Party(w.n - 1)
	}
	return p
}

// run runs a session. Randomness and the session's name depend on the label. opened notes who has
// opened its combinations in a MAC check that has not passed there.
func (w *world) run(t *testing.T, in Kind, label string, opened []bool,
	options ...roundtest.Option) *roundtest.Outcome[ended] {
	t.Helper()
	var plan *triple.Plan
	if in != Keys {
		plan = w.plan(t, in)
	}
	options = append(options, roundtest.ID(round.Terms{Protocol: string(in), Job: round.Hash(label)}.ID()))
	return roundtest.Lockstep(w.n, func(s round.Session) (round.Transition[ended], error) {
		d := round.Hash("cheats", []byte(in), []byte(label), round.Uint(uint64(s.Self)))
		source := sample.NewSource(d[:])
		before, err := round.Prelude(s, source.Stream("prelude"))
		if err != nil {
			return round.Transition[ended]{}, err
		}
		return round.Then(before, func(_ context.Context, s round.Session) (round.Transition[ended], error) {
			if in == Keys {
				t, err := keygen.Start(keygen.Config{Session: s, Scheme: w.scheme, Dim: keyDim,
					Source: source.Sub("keys"), Workers: 1})
				return round.Map(t, func(r keygen.Result) (ended, error) { return ended{keys: &r}, nil }), err
			}
			var held round.Digest
			if in != First {
				held = round.Hash("the MAC key")
			}
			return round.Then(triple.AgreeOnMACKey(s, held), func(_ context.Context,
				same bool) (round.Transition[ended], error) {
				if same {
					return w.batch(s, plan, w.macs[s.Self], source, opened)
				}
				return w.fresh(s, plan, source, opened)
			}), nil
		}), nil
	}, options...)
}

// fresh makes a MAC key and a batch under it.
func (w *world) fresh(s round.Session, plan *triple.Plan, source *sample.Source,
	opened []bool) (round.Transition[ended], error) {
	k := w.keys[s.Self].Keys
	t, err := triple.StartMACKey(triple.MACKeyConfig{
		Session: s, Scheme: w.scheme, Instance: w.macKey, Public: k.Public, KeyHash: k.PublicHash(w.scheme),
		Source: source.Sub("mac"), Workers: 1,
	})
	if err != nil {
		return round.Transition[ended]{}, err
	}
	return round.Then(t, func(_ context.Context, m triple.MACKey) (round.Transition[ended], error) {
		return w.batch(s, plan, m, source, opened)
	}), nil
}

func (w *world) batch(s round.Session, plan *triple.Plan, mac triple.MACKey, source *sample.Source,
	opened []bool) (round.Transition[ended], error) {
	k := w.keys[s.Self]
	t, err := triple.Start(triple.Config{
		Session: s, Plan: plan, Scheme: w.scheme, Keys: k.Keys.Keys(w.scheme), Public: k.Keys.Public,
		KeyHash: k.Keys.PublicHash(w.scheme),
		Secret:  keygen.Lift(w.scheme, k.Secret), MAC: mac, Source: source.Sub("batch"), Workers: 1,
		Opening: func() error {
			if opened != nil {
				opened[s.Self] = true
			}
			return nil
		},
	})
	if err != nil {
		return round.Transition[ended]{}, err
	}
	return round.Then(t, func(_ context.Context, r triple.Result) (round.Transition[ended], error) {
		if opened != nil { // the check has passed here
			opened[s.Self] = false
		}
		accepted := verdict.Accept(s, r.Digest)
		return round.Map(accepted, func(round.Digest) (ended, error) { return ended{batch: &r, mac: mac}, nil }), nil
	}), nil
}

// earlier is an honest session of the past.
func (w *world) earlier(t *testing.T, in Kind) *roundtest.Recording {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.past[in] == nil {
		w.past[in] = w.run(t, in, "earlier", nil, roundtest.Record()).OK(t).Recording
	}
	return w.past[in]
}

// cheats runs a cheat of the last party.
func (w *world) cheats(t *testing.T, c *Cheat, opened []bool) (*roundtest.Outcome[ended], []string) {
	t.Helper()
	v, culprit := &roundtest.View{}, round.Party(w.n-1)
	var past *roundtest.Recording
	if c.Replays {
		past = w.earlier(t, c.In)
	}
	s := round.Session{Self: culprit, Parties: w.n}
	unfired := c.Put(&s, Env{
		Scheme:  w.scheme,
		Peer:    func(from round.Party, name string) [][]byte { return v.Frames(from, culprit, name) },
		Earlier: func(to round.Party, name string) [][]byte { return past.Frames(culprit, to, name) },
	})
	options := []roundtest.Option{roundtest.Rushing(culprit, v), roundtest.Cheat(culprit, s.Hooks)}
	if c.Fault != nil {
		options = append(options, onLinks(culprit, c.Fault))
	}
	return w.run(t, c.In, "cheat", opened, options...), unfired()
}

// onLinks converts a fault to one of the lockstep driver.
func onLinks(culprit round.Party, f *Fault) roundtest.Option {
	name := f.Message.Name
	deliver := func(change func([]round.Incoming) []round.Incoming) roundtest.Option {
		return roundtest.Deliver(culprit, roundtest.Any, name, change)
	}
	switch f.Kind {
	case TwoVersions:
		return roundtest.Link(culprit, 0, name, roundtest.Flip(0))
	case NotForOne:
		return roundtest.Link(culprit, 0, name, roundtest.Drop)
	case Twice:
		return deliver(roundtest.Twice)
	case Renamed:
		return deliver(roundtest.Renamed("another"))
	case RoundBefore:
		return deliver(roundtest.Shifted(-1))
	case RoundAfter:
		return deliver(roundtest.Shifted(1))
	case Reversed:
		return deliver(roundtest.Reversed)
	case NoEnd:
		return deliver(roundtest.Unending)
	}
	panic(fmt.Sprintf("no fault %q without a network", f.Kind))
}

// verify fails the test unless scalar triples and all MACs are right.
func (w *world) verify(t *testing.T, plan *triple.Plan, results []ended) {
	t.Helper()
	f := w.scheme.Field
	sum := func(pick func(r ended) field.Vec) field.Vec {
		total := f.NewVec(pick(results[0]).Len())
		for _, r := range results {
			f.AddVec(total, total, pick(r))
		}
		return total
	}
	alpha := sum(func(r ended) field.Vec { return r.mac.Share })
	a, b, c := sum(func(r ended) field.Vec { return r.batch.A }), sum(func(r ended) field.Vec { return r.batch.B }),
		sum(func(r ended) field.Vec { return r.batch.C })
	want := f.NewVec(plan.Count)
	if f.MulVec(want, a, b); !f.EqualVec(want, c) {
		t.Error("c is not a b")
	}
	for _, m := range [][2]field.Vec{
		{a, sum(func(r ended) field.Vec { return r.batch.MACA })}, {b,
			sum(func(r ended) field.Vec { return r.batch.MACB })}, {c,
			sum(func(r ended) field.Vec { return r.batch.MACC })},
	} {
		if f.ScaleVec(want, m[0], alpha.At(0)); !f.EqualVec(want, m[1]) {
			t.Error("a MAC is wrong")
		}
	}
}

// watching gives a party's hooks to Observe.
func watching(p round.Party, n int, take func(to round.Party, name string, frames [][]byte)) byzantine.Hooks {
	s := round.Session{Self: p, Parties: n}
	Observe(&s, take)
	return s.Hooks
}
