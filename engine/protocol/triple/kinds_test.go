package triple

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

var kinds = map[string]Kind{"square": Square, "random": Random, "bit": Bit, "inverse": Inverse, "input": Input}

// pooled gives the values of a list of tuples, whose MACs it checks.
func (w *network) pooled(t testing.TB, results []Result, value, mac func(r *Result) field.Vec) field.Vec {
	t.Helper()
	f := w.scheme.Field
	alpha := f.NewElement()
	for _, m := range w.macs {
		f.Add(alpha, alpha, m.Share.At(0))
	}
	v, want := w.sum(results, value), f.NewVec(value(&results[0]).Len())
	f.ScaleVec(want, v, alpha)
	if !f.EqualVec(want, w.sum(results, mac)) {
		t.Error("MACs are wrong")
	}
	return v
}

// verifyKind checks tuples of other kinds than triples against the pooled shares.
func (w *network) verifyKind(t testing.TB, plan *Plan, results []Result) {
	t.Helper()
	f := w.scheme.Field
	a := w.pooled(t, results, func(r *Result) field.Vec { return r.A }, func(r *Result) field.Vec { return r.MACA })
	b := w.pooled(t, results, func(r *Result) field.Vec { return r.B }, func(r *Result) field.Vec { return r.MACB })
	c := w.pooled(t, results, func(r *Result) field.Vec { return r.C }, func(r *Result) field.Vec { return r.MACC })
	na, nb, nc := plan.Elements()
	for p, r := range results {
		if r.Count != plan.Count || r.Digest != results[0].Digest {
			t.Errorf("party %d: %d tuples, want %d, or another digest", p, r.Count, plan.Count)
		}
		if r.A.Len() != na*r.Count || r.B.Len() != nb*r.Count || r.C.Len() != nc*r.Count {
			t.Errorf("party %d: %d, %d and %d elements", p, r.A.Len(), r.B.Len(), r.C.Len())
		}
	}
	x, seen := f.NewElement(), map[string]bool{}
	for i := range a.Len() {
		seen[fmt.Sprint(a.At(i))] = true
		ok := true
		switch plan.Kind {
		case Square:
			f.Mul(x, a.At(i), a.At(i))
			ok = f.Equal(x, c.At(i))
		case Inverse:
			f.Mul(x, a.At(i), b.At(i))
			ok = f.Equal(x, f.One())
		case Bit:
			ok = f.IsZero(a.At(i)) || f.Equal(a.At(i), f.One())
		}
		if !ok {
			t.Fatalf("tuple %d is wrong", i)
		}
	}
	if want := a.Len(); plan.Kind == Bit && len(seen) != 2 || plan.Kind != Bit && len(seen) != want {
		t.Errorf("%d different values of %d", len(seen), want)
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		set, field string
		n          int
	}{{"insecure-8", "p128", 2}, {"insecure-8", "p64", 3}, {"insecure-8-64", "p256", 2}, {"insecure-8-16", "p128", 3}} {
		w := newNetwork(t, c.set, c.field, c.n, 1)
		for name, kind := range kinds {
			for _, count := range []int{1, 3 * w.scheme.Slots() / 2} {
				t.Run(fmt.Sprint(c, " ", name, " ", count), func(t *testing.T) {
					plan := w.plan(t, kind, Shape{}, 0, count)
					out := w.run(plan)
					failOn(t, out.Errors)
					w.verifyKind(t, plan, out.Results)
				})
			}
		}
	}
}

// A bit is as often 0 as 1: of 1,000 and more, within six standard deviations.
func TestBitsAreFair(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	plan := w.plan(t, Bit, Shape{}, 0, MaxBlocks*w.scheme.Slots())
	out := w.run(plan).OK(t)
	f, ones := w.scheme.Field, 0
	bits := w.sum(out.Results, func(r *Result) field.Vec { return r.A })
	for i := range bits.Len() {
		if f.Equal(bits.At(i), f.One()) {
			ones++
		}
	}
	if n := bits.Len(); n < 1000 || (2*ones-n)*(2*ones-n) > 36*n {
		t.Errorf("%d of %d bits are 1", ones, n)
	}
}

// A share of an opened product that is off stops the batch, whether its sender keeps to it in the
// MAC check or not.
func TestOpenedProductsAreChecked(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	f := w.scheme.Field
	culprit := round.Party(1)
	off := func(at int) func(v field.Vec) { return func(v field.Vec) { f.Add(v.At(at), v.At(at), f.One()) } }
	for _, kind := range []Kind{Bit, Inverse} {
		plan := w.plan(t, kind, Shape{}, 0, 10)
		for _, at := range []int{0, plan.Count - 1} {
			for name, c := range map[string]struct {
				cheat roundtest.Option
				check string
			}{
				"off from then on": {roundtest.Cheat(culprit, byzantine.On(byzantine.New(), productsName, off(at))), maccheck.CheckMAC},
				"off from the decryption on": {roundtest.Cheat(culprit, byzantine.On(byzantine.New(), "ddec.Shares", func(s ddec.Shares) {
					off(at % w.scheme.Slots())(s[at/w.scheme.Slots()])
				})), maccheck.CheckMAC},
				"off when it is opened": {roundtest.Rewrite(culprit, productsName, roundtest.Flip(8*at*f.Size())), maccheck.CheckZero},
			} {
				out := w.run(plan, c.cheat)
				var abort *round.Abort
				aborted := errors.As(out.Errors[0], &abort)
				if !aborted || abort.Check != c.check && (kind != Bit || abort.Check != maccheck.CheckZero) { // half of all values are not squares
					t.Errorf("kind %d, a share of product %d %s: %v", kind, at, name, out.Errors[0])
				}
			}
		}
		high := bytes.Repeat([]byte{0xff}, plan.Count*f.Size()) // no elements of the field
		for _, c := range []struct {
			edit  roundtest.Edit
			check string
		}{{roundtest.Truncate(1), round.CheckShape}, {roundtest.Extend(1), round.CheckSize}, {roundtest.Payload(high), round.CheckShape}} {
			w.run(plan, roundtest.Rewrite(culprit, productsName, c.edit)).Blamed(t, culprit, c.check)
		}
	}
}

// A party that opens different shares of a product to different parties is caught by the echo,
// before any party computes with the opened values. This holds whether its own echo is the same for
// all, or repeats to each party the share that it sent there. Parties whose echo contradicts the
// message that they received blame it; the others list it as a suspect.
func TestOpenedProductsAreTheSameForAll(t *testing.T) {
	const victim, witness, culprit = 0, 1, 2
	w := newNetwork(t, "insecure-8", "p128", 3, 1)
	f := w.scheme.Field
	for _, kind := range []Kind{Bit, Inverse} {
		plan := w.plan(t, kind, Shape{}, 0, 10)
		for _, consistent := range []bool{true, false} {
			var sent, other round.Digest // of the products, to the witness and to the victim
			products := func(_ *roundtest.View, frames [][]byte) [][]byte {
				share, err := round.DigestOf(productsName, round.Bytes(frames[0]))
				changed := f.NewVec(plan.Count)
				if err == nil {
					err = f.DecodeVec(changed, frames[0])
				}
				f.Add(changed.At(3), changed.At(3), f.One())
				changedFrame := make([]byte, len(frames[0]))
				f.EncodeVec(changedFrame, changed)
				lie, err2 := round.DigestOf(productsName, round.Bytes(changedFrame))
				if err != nil || err2 != nil {
					t.Error(err, err2)
				}
				sent, other = share, lie
				return [][]byte{changedFrame}
			}
			lies := 0
			echo := func(_ *roundtest.View, frames [][]byte) [][]byte {
				if at := bytes.Index(frames[0], sent[:]); sent != (round.Digest{}) && at >= 0 {
					copy(frames[0][at:], other[:])
					lies++
				}
				return frames
			}
			options := []roundtest.Option{roundtest.Link(culprit, victim, productsName, products), roundtest.Record()}
			if !consistent {
				options = append(options, roundtest.Link(culprit, victim, "echo", echo))
			}
			w.opened = make([]bool, 3)
			out := w.run(plan, options...)
			out.Aborted(t, culprit, round.CheckEcho)
			var blame *round.Blame
			if named := errors.As(out.Errors[victim], &blame); named != consistent || named && blame.Party != culprit {
				t.Errorf("kind %d: the party that received another share ends with %v", kind, out.Errors[victim])
			}
			if !consistent && lies != 1 {
				t.Errorf("kind %d: the lie in the echo was told %d times", kind, lies)
			}
			for p := range round.Party(2) {
				if out.Results[p].Count != 0 || out.Recording.Frames(p, roundtest.Any, "triple/mac/coin/commit") != nil || !w.opened[p] {
					t.Errorf("kind %d: party %d goes on to the check, or has a result", kind, p)
				}
			}
		}
	}
}

// A wrong share of any vector of any kind stops the batch, those that are opened and not released
// included.
func TestEveryValueOfEveryKindIsChecked(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	for name, kind := range kinds {
		plan := w.plan(t, kind, Shape{}, 0, 3*w.scheme.Slots()/2)
		n := plan.extent()
		for i := range n.proved() {
			t.Run(fmt.Sprint(name, " proved ", i), func(t *testing.T) { w.stops(t, plan, w.adds(true, i, i), maccheck.CheckMAC) })
		}
		for i := range plan.Decryptions() {
			checks := []string{maccheck.CheckMAC}
			if kind == Bit && i < n.c {
				checks = append(checks, maccheck.CheckZero) // half of all values are not squares
			}
			slot := i
			if first := plan.Decryptions() - n.squares; i >= first {
				slot = plan.Count%w.scheme.Slots() + 1 // only the slots of check triples are used of squares
				if n.rho > 0 {
					slot = 1
				}
			}
			t.Run(fmt.Sprint(name, " decrypted ", i), func(t *testing.T) { w.stops(t, plan, w.adds(false, i, slot), checks...) })
		}
	}
}

// All kinds work in fields with so few slots that the material of the MAC check fills several
// ciphertexts.
func TestReservedSlotsInSeveralCiphertexts(t *testing.T) {
	for _, c := range []struct{ set, field string }{{"insecure-6", "p512"}, {"insecure-8", "p4096"}} {
		w := newNetwork(t, c.set, c.field, 2, 2)
		for kind := Scalar; kind <= Input; kind++ {
			shape := Shape{}
			if kind == Matrix {
				shape = Shape{2, 3, 2}
			}
			plan := w.plan(t, kind, shape, 0, 1)
			w.run(plan).OK(t)
			w.stops(t, plan, w.adds(true, 0, 0), maccheck.CheckMAC)
		}
	}
}

// A tuple whose product is zero is dropped, at every party and with its MACs.
func TestZeroProductsAreDropped(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 3, 1)
	f := w.scheme.Field
	const count = 10
	for _, kind := range []Kind{Bit, Inverse} {
		for _, drop := range [][]int{{}, {0}, {count - 1}, {0, 1, 5, 9}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
			a, b := f.NewVec(count), f.NewVec(count)
			for i := range count {
				f.SetUint64(a.At(i), uint64(i+1))
				f.SetUint64(b.At(i), uint64(100+7*i))
			}
			for _, i := range drop {
				clear(a.At(i))
			}
			opened := f.NewVec(count)
			if f.MulVec(opened, a, b); kind == Bit {
				f.MulVec(opened, a, a)
			}
			var results []Result
			for p, shares := range w.dealt(a, b) {
				r := &batch{Config: Config{Scheme: w.scheme, Plan: &Plan{Kind: kind, Count: count}, MAC: w.macs[p], Workers: 2}, result: &shares}
				r.Session.Self = round.Party(p)
				factors, kept, err := r.factors(t.Context(), opened.Clone())
				if err != nil {
					t.Fatal(err)
				}
				r.finish(factors, kept)
				results = append(results, *r.result)
			}
			w.verifyKept(t, kind, count-len(drop), results)
		}
	}
}

// dealt gives shares of values and of their MACs.
func (w *network) dealt(a, b field.Vec) (out []Result) {
	f, rest := w.scheme.Field, map[int]field.Vec{}
	alpha := f.NewElement()
	for _, m := range w.macs {
		f.Add(alpha, alpha, m.Share.At(0))
	}
	for i, v := range []field.Vec{a, b} {
		mac := f.NewVec(v.Len())
		f.ScaleVec(mac, v, alpha)
		rest[i], rest[2+i] = v.Clone(), mac
	}
	stream := seed("dealt", 0).Stream("shares")
	for p := range w.n {
		var s [4]field.Vec
		for i := range s {
			if s[i] = rest[i]; p < w.n-1 {
				s[i] = f.NewVec(a.Len())
				fillRandom(f, s[i], stream)
				f.SubVec(rest[i], rest[i], s[i])
			}
		}
		out = append(out, Result{A: s[0], B: s[1], MACA: s[2], MACB: s[3]})
	}
	return out
}

// verifyKept checks bits or inverses that were made of dealt values.
func (w *network) verifyKept(t *testing.T, kind Kind, count int, results []Result) {
	t.Helper()
	f, x := w.scheme.Field, w.scheme.Field.NewElement()
	a := w.pooled(t, results, func(r *Result) field.Vec { return r.A }, func(r *Result) field.Vec { return r.MACA })
	if results[0].Count != count || a.Len() != count {
		t.Fatalf("%d tuples of %d values, want %d", results[0].Count, a.Len(), count)
	}
	if kind == Bit {
		for i := range count {
			if f.Mul(x, a.At(i), a.At(i)); !f.Equal(x, a.At(i)) {
				t.Errorf("%d is no bit", i)
			}
		}
		return
	}
	b := w.pooled(t, results, func(r *Result) field.Vec { return r.B }, func(r *Result) field.Vec { return r.MACB })
	for i := range count {
		if f.Mul(x, a.At(i), b.At(i)); !f.Equal(x, f.One()) {
			t.Errorf("%d is no inverse", i)
		}
	}
}
