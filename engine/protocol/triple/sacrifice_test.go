package triple

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// wrong counts the products that are wrong, of scalar triples, squares and matrix triples.
func (w *network) wrong(plan *Plan, results []Result) (count int) {
	f := w.scheme.Field
	a, c := w.sum(results, func(r *Result) field.Vec { return r.A }), w.sum(results, func(r *Result) field.Vec { return r.C })
	b, s := a, Shape{1, 1, 1}
	if plan.Kind != Square {
		b = w.sum(results, func(r *Result) field.Vec { return r.B })
	}
	if plan.Kind == Matrix {
		s = Shape(plan.Product)
	}
	x, sum := f.NewElement(), f.NewElement()
	for m := range plan.Count {
		for i := range s.Rows {
			for j := range s.Cols {
				clear(sum)
				for k := range s.Inner {
					f.Mul(x, a.At((m*s.Rows+i)*s.Inner+k), b.At((m*s.Inner+k)*s.Cols+j))
					f.Add(sum, sum, x)
				}
				if !f.Equal(sum, c.At((m*s.Rows+i)*s.Cols+j)) {
					count++
				}
			}
		}
	}
	return count
}

// abandons fails the test unless all but the last party abort for one of these checks and name
// nobody in public.
func (w *network) abandons(t *testing.T, errs []error, checks ...string) {
	t.Helper()
	for p, err := range errs[:w.n-1] {
		var abort *round.Abort
		if !errors.As(err, &abort) || !slices.Contains(checks, abort.Check) || len(abort.Suspects) > 0 {
			t.Errorf("party %d ends with %v, want an abort of check %s", p, err, checks)
		}
	}
}

// withKeys is the network with other evaluation keys at all parties, as a malformed share of one of
// them makes them.
func (w *network) withKeys(change func(relin []ring.NTT, rotations map[int][]ring.NTT)) *network {
	bad := *w
	bad.keys = slices.Clone(w.keys)
	for p := range bad.keys {
		k := *w.keys[p].Keys
		clone := func(list []ring.NTT) (out []ring.NTT) {
			for _, x := range list {
				c := w.scheme.Q.NewNTT()
				w.scheme.Q.AddNTT(c, c, x)
				out = append(out, c)
			}
			return out
		}
		k.Relin = &gbfv.SwitchKey{K0: clone(k.Relin.K0), K1: k.Relin.K1}
		rotations := map[int][]ring.NTT{}
		for g, list := range k.K0 {
			rotations[g] = clone(list)
		}
		k.K0 = rotations
		change(k.Relin.K0, rotations)
		bad.keys[p].Keys = &k
	}
	return &bad
}

// quarter is q/4, and delta round(q/P), as constants or polynomials that a share of a key may be
// off by.
func (w *network) quarter() ring.NTT {
	q := w.scheme.Q
	p, out := q.NewPoly(), q.NewNTT()
	x := w.set.Modulus()
	x.Rsh(x, 2)
	for l, prime := range q.Primes() {
		p.C[l][0] = new(big.Int).Mod(x, new(big.Int).SetUint64(prime)).Uint64()
	}
	q.Forward(out, p)
	return out
}

func (w *network) delta() ring.NTT {
	out := w.scheme.Q.NewNTT()
	w.scheme.Q.Forward(out, w.scheme.Delta())
	return out
}

// compensates returns the hooks of a party that knows the error of a malformed relinearisation key,
// and subtracts it from its shares of all decrypted MACs. good is the network with correct keys.
func compensates(good, bad *network, plan *Plan) byzantine.Hooks {
	s, n := bad.scheme, plan.extent()
	var proved []*gbfv.Ciphertext
	h := byzantine.On(byzantine.New(), "popk.Result", func(r *popk.Result) {
		for _, ct := range r.Ciphertexts {
			proved = append(proved, ct.Clone())
		}
	})
	return byzantine.On(h, "triple/share", func(messages []ring.Poly) {
		right, wrong := gbfv.NewEvaluator(s, good.keys[0].Keys.Keys(s)), gbfv.NewEvaluator(s, bad.keys[0].Keys.Keys(s))
		alpha := s.Left(bad.macs[0].Ciphertext)
		k := plan.Instance.DDecPrimes
		b := s.Prefix(k)
		takeOff := func(at int, ct *gbfv.Ciphertext) {
			x := s.Right(ct)
			t := b.NewPoly()
			b.Sub(t, s.SwitchModulus(wrong.Mul(alpha, x), k).C0, s.SwitchModulus(right.Mul(alpha, x), k).C0)
			b.Sub(messages[at], messages[at], t)
		}
		for i, ct := range proved {
			takeOff(n.provedMAC(i), ct)
		}
		for _, p := range plan.pairing()[:n.products()] {
			takeOff(n.productMAC(p.number), wrong.Mul(s.Left(proved[p.left]), s.Right(proved[p.right])))
		}
	})
}

// repairs lets the last party, which knows the error of the malformed key, also correct its shares
// of the products of check triples, so that the check depends only on the batch. The test computes
// the same from all parties' shares.
func repairs(w *network, h byzantine.Hooks) (options []roundtest.Option) {
	f, culprit := w.scheme.Field, round.Party(w.n-1)
	var others []*maccheck.Material
	for p := range culprit {
		options = append(options, roundtest.Watch(p, byzantine.On(byzantine.New(), "triple/material", func(m *maccheck.Material) { others = append(others, m) })))
	}
	byzantine.On(h, "triple/material", func(own *maccheck.Material) {
		for i := range own.Triples {
			x := &own.Triples[i]
			if len(x.A.W) == 0 {
				continue
			}
			a, b, c := x.A.Clone(), x.B.Clone(), x.C.Clone()
			for _, m := range others {
				f.AddVec(a, a, m.Triples[i].A)
				f.AddVec(b, b, m.Triples[i].B)
				f.AddVec(c, c, m.Triples[i].C)
			}
			f.MulVec(a, a, b)
			f.SubVec(a, a, c)
			f.AddVec(x.C, x.C, a)
		}
	})
	return append(options, roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, &roundtest.View{}), roundtest.Serial())
}

// A malformed relinearisation key makes products that are off by what everybody can compute. The
// party that made it corrects the MACs, so wrong products have correct MACs: without a sacrifice
// they are released.
func TestMalformedRelinearisationKey(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		bad := w.withKeys(func(relin []ring.NTT, _ map[int][]ring.NTT) { w.scheme.Q.AddNTT(relin[0], relin[0], w.delta()) })
		rough := w.withKeys(func(relin []ring.NTT, _ map[int][]ring.NTT) { w.scheme.Q.AddNTT(relin[0], relin[0], w.quarter()) })
		for name, kind := range map[string]Kind{"scalar": Scalar, "square": Square, "bit": Bit, "inverse": Inverse} {
			t.Run(fmt.Sprint(name, ", ", n, " parties"), func(t *testing.T) {
				plan := w.plan(t, kind, Shape{}, 0, 3*w.scheme.Slots()/2)
				cheat := func(net *network, plan *Plan) *roundtest.Outcome[Result] {
					return net.run(plan, repairs(net, compensates(w, net, plan))...)
				}
				checks := []string{maccheck.CheckSacrifice}
				if kind == Bit {
					checks = append(checks, maccheck.CheckZero) // half of all values are not squares
				}
				w.abandons(t, cheat(bad, plan).Errors, checks...)
				w.abandons(t, cheat(rough, plan).Errors, append(checks, maccheck.CheckMAC)...)
				if kind == Bit {
					return
				}
				out := cheat(bad, w.trusting(t, plan)).OK(t)
				if kind == Inverse {
					return
				}
				if wrong := w.wrong(plan, out.Results); wrong < plan.Count-4 {
					t.Errorf("without a sacrifice %d products of %d are wrong", wrong, plan.Count)
				}
			})
		}
	}
}

// A malformed rotation key makes wrong products of matrices, and nobody has to do more: MACs need
// no rotation.
func TestMalformedRotationKey(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 4)
		bad := w.withKeys(func(_ []ring.NTT, rotations map[int][]ring.NTT) {
			k := rotations[gbfv.Galois(w.scheme.N(), 1, 4)]
			w.scheme.Q.AddNTT(k[0], k[0], w.delta())
		})
		for _, shape := range []Shape{{4, 4, 4}, {5, 6, 2}, {2, 9, 3}} {
			plan := w.plan(t, Matrix, shape, 4, 1)
			out := bad.run(plan)
			w.abandons(t, out.Errors, maccheck.CheckSacrifice)
			out = bad.run(w.trusting(t, plan)).OK(t)
			if w.wrong(plan, out.Results) == 0 {
				t.Errorf("%v: the malformed key does nothing", shape)
			}
		}
		plan, err := NewPlan(w.set, w.field, n, Convolution, images(convolutions[1]), 4, 1, 4)
		if err != nil {
			t.Fatal(err)
		}
		w.abandons(t, bad.run(plan).Errors, maccheck.CheckSacrifice)
		if out := bad.run(w.trusting(t, plan)).OK(t); w.convolved(t, plan, out.Results) == 0 {
			t.Error("the malformed key does nothing to convolutions")
		}
	}
}

// forges adds d to a slot of a product and alpha d to its MAC.
func (w *network) forges(plan *Plan, number, slot int, d field.Element) byzantine.Hooks {
	f, n := w.scheme.Field, plan.extent()
	alpha, x := f.NewElement(), f.NewElement()
	for _, m := range w.macs {
		f.Add(alpha, alpha, m.Share.At(0))
	}
	f.Mul(x, alpha, d)
	return byzantine.On(byzantine.New(), "ddec.Shares", func(s ddec.Shares) {
		f.Add(s[n.product(number)].At(slot), s[n.product(number)].At(slot), d)
		f.Add(s[n.productMAC(number)].At(slot), s[n.productMAC(number)].At(slot), x)
	})
}

// An error with a correct MAC in any single entry of a product or of a sacrificed vector is found.
func TestASingleWrongProductIsFound(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	slots, one := w.scheme.Slots(), w.scheme.Field.One()
	for name, kind := range map[string]Kind{"scalar": Scalar, "square": Square, "bit": Bit, "inverse": Inverse} {
		plan := w.plan(t, kind, Shape{}, 0, 3*slots/2)
		n := plan.extent()
		for i := range n.products() {
			for _, slot := range []int{0, (plan.Count - 1) % slots} {
				t.Run(fmt.Sprint(name, " ", i, " ", slot), func(t *testing.T) {
					out := w.run(plan, roundtest.Cheat(1, w.forges(plan, i, slot, one)))
					if kind == Bit && i < n.c {
						w.abandons(t, out.Errors, maccheck.CheckSacrifice, maccheck.CheckZero) // half of all values are not squares
						return
					}
					w.abandons(t, out.Errors, maccheck.CheckSacrifice)
				})
			}
		}
	}
	for _, shape := range []Shape{{4, 4, 4}, {5, 6, 2}, {2, 9, 3}} {
		plan := w.plan(t, Matrix, shape, 4, 1)
		layout := layoutOf(2)(w.state(plan))
		for _, at := range [][3]int{{0, 0, 0}, {1, shape.Rows - 1, 0}, {plan.Count - 1, shape.Rows - 1, shape.Cols - 1}} {
			vector, slot := layout.Place(at[0], at[1], at[2])
			w.abandons(t, w.run(plan, roundtest.Cheat(1, w.forges(plan, vector, slot, one))).Errors, maccheck.CheckSacrifice)
		}
		n, last := plan.extent(), plan.Count*shape.Inner-1
		for _, at := range []int{0, last} {
			w.abandons(t, w.run(plan, roundtest.Cheat(1, w.forges(plan, n.c+at/slots, at%slots, one))).Errors, maccheck.CheckSacrifice)
		}
	}
}

// An error d of a product and an error t d of the product sacrificed for it cancel. A party that
// knows the weight t before all shares are fixed can plant such errors: with the true weight they
// pass. No party can foresee the weight of the parties' coin.
func TestErrorsForAForeseenWeight(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	f, plan := w.scheme.Field, w.plan(t, Scalar, Shape{}, 0, 10)
	tossed := roundtest.Lockstep(2, func(s round.Session) (round.Transition[round.Digest], error) {
		return round.CoinToss(s, sacrificeCoin, seed("batch", s.Self).Sub("sacrifice").Stream("coin"))
	}).OK(t).Results[0]
	id := round.Hash("roundtest session")
	for _, c := range []struct {
		coin   round.Digest
		passes bool
	}{{tossed, true}, {round.Digest{}, false}} {
		weight := f.NewVec(1)
		if err := f.Random(weight, round.XOF("lodge sacrifice weights", id[:], c.coin[:])); err != nil {
			t.Fatal(err)
		}
		h := w.forges(plan, 0, 3, f.One())
		both := byzantine.On(byzantine.New(), "ddec.Shares", func(s ddec.Shares) {
			byzantine.Apply(h, "ddec.Shares", s)
			byzantine.Apply(w.forges(plan, 1, 3, weight.At(0)), "ddec.Shares", s)
		})
		out := w.run(plan, roundtest.Cheat(1, both))
		if !c.passes {
			w.abandons(t, out.Errors, maccheck.CheckSacrifice)
			continue
		}
		if wrong := w.wrong(plan, out.OK(t).Results); wrong != 1 {
			t.Errorf("%d products are wrong", wrong)
		}
	}
}

// Nobody commits to a coin before it has all decryption shares, opens a factor before the coin, or
// begins the MAC check before the factors are open.
func TestOrderOfTheSacrifice(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		plan, culprit := w.plan(t, Scalar, Shape{}, 0, 10), round.Party(n-1)
		steps := []string{"triple/share", sacrificeCoin + "/commit", sacrificeCoin + "/open", sacrificeName, "triple/mac/coin/commit", "triple/mac/open"}
		for i, name := range steps[:len(steps)-1] {
			out := w.run(plan, roundtest.Rewrite(culprit, name, roundtest.Drop), roundtest.Record())
			for p := range culprit {
				if out.Recording.Frames(p, roundtest.Any, name) == nil {
					t.Errorf("%d parties: party %d does not send %s", n, p, name)
				}
				for _, later := range steps[i+1:] {
					if out.Recording.Frames(p, roundtest.Any, later) != nil {
						t.Errorf("%d parties: party %d sends %s without %s from a peer", n, p, later, name)
					}
				}
			}
		}
	}
}

// A masked factor whose message differs from the sender's value fails the check.
func TestMaskedFactorsAreChecked(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	for _, plan := range []*Plan{
		w.plan(t, Scalar, Shape{}, 0, 10), w.plan(t, Square, Shape{}, 0, 10), w.plan(t, Matrix, Shape{5, 6, 2}, 4, 1),
	} {
		size := w.scheme.Field.Size()
		for _, at := range []int{0, plan.maskedElements()/2 + 1, plan.maskedElements() - 1} {
			w.abandons(t, w.run(plan, roundtest.Rewrite(1, sacrificeName, roundtest.Flip(8*at*size))).Errors, maccheck.CheckZero)
		}
		for _, c := range []struct {
			edit  roundtest.Edit
			check string
		}{{roundtest.Truncate(1), round.CheckShape}, {roundtest.Extend(1), round.CheckSize}} {
			w.run(plan, roundtest.Rewrite(1, sacrificeName, c.edit)).Blamed(t, 1, c.check)
		}
	}
}

// Kinds without products sacrifice nothing, and nothing can be trusted there.
func TestTrusting(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 4)
	for name, kind := range kinds {
		plan := w.plan(t, kind, Shape{}, 0, 3*w.scheme.Slots()/2)
		trusting, err := plan.Trusting()
		if plan.Sacrifice != kind.Multiplies() || (err == nil) != kind.Multiplies() {
			t.Errorf("%s: sacrificed: %v; %v", name, plan.Sacrifice, err)
		}
		if err != nil {
			continue
		}
		if trusting.Sacrifice || trusting.Decryptions() >= plan.Decryptions() || trusting.Count != plan.Count {
			t.Errorf("%s: %+v", name, trusting)
		}
		w.verifyKind(t, trusting, w.run(trusting).OK(t).Results)
	}
	for _, plan := range []*Plan{w.plan(t, Scalar, Shape{}, 0, 10), w.plan(t, Matrix, Shape{5, 6, 2}, 4, 1)} {
		trusting := w.trusting(t, plan)
		w.verify(t, trusting, w.run(trusting).OK(t).Results)
		if out := w.run(trusting, roundtest.Record()); out.Recording.Frames(0, roundtest.Any, sacrificeName) != nil {
			t.Error("masked factors are opened")
		}
	}
}

// A wrong batch passes with 5/p at most, and sets promise no more statistical security than that
// leaves.
func TestFieldsAreLargeEnoughForOneRepetition(t *testing.T) {
	for _, s := range params.Sets() {
		for _, spec := range s.Fields {
			if sound := spec.P().BitLen() - 1 - 3; sound < s.StatSecurityBits() {
				t.Errorf("%s promises %d bits, and a check modulo %s gives %d", s.Name, s.StatSecurityBits(), spec.Name, sound)
			}
		}
	}
}

// The errors of all ciphertexts that a batch decrypts, including sacrificed ones, are within the
// bound that flooding assumes.
func TestPhasesOfABatch(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 3, 4)
	s := w.scheme
	secret := s.Q.NewNTT()
	for _, k := range w.keys {
		s.Q.AddNTT(secret, secret, keygen.Lift(s, k.Secret))
	}
	for _, plan := range []*Plan{
		w.plan(t, Scalar, Shape{}, 0, 3*s.Slots()/2), w.plan(t, Square, Shape{}, 0, 1), w.plan(t, Matrix, Shape{5, 9, 2}, 4, 1),
	} {
		seen := 0
		h := byzantine.On(byzantine.New(), "triple/compared", func(list []*gbfv.Ciphertext) {
			for i, ct := range list {
				seen++
				k := len(ct.C0.C)
				b := s.Prefix(k)
				x, ideal, coeffs := b.NewPoly(), b.NewPoly(), s.Field.NewVec(s.Slots())
				s.Phase(x, ct, secret, k)
				s.Decode(coeffs, x.Clone(), k)
				s.ScalePlain(ideal, coeffs, k)
				b.Sub(x, x, ideal)
				for _, c := range b.ToBig(x) {
					if c.CmpAbs(plan.Instance.PhaseBound) > 0 {
						t.Fatalf("kind %d: an error of ciphertext %d has %d bits, the bound %d", plan.Kind, i, c.BitLen(), plan.Instance.PhaseBound.BitLen())
					}
				}
			}
		})
		w.run(plan, roundtest.Watch(0, h)).OK(t)
		if seen != plan.Decryptions() {
			t.Errorf("kind %d: %d ciphertexts, want %d", plan.Kind, seen, plan.Decryptions())
		}
	}
}
