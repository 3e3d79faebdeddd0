package triple

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// Why a MAC key whose check has failed is burnt: a peer that adds one to a value in a batch of its own making learns the
// key from the openings of that batch's check. Were the key used again, the peer would add one to the product and the
// key to its MAC, and wrong triples would pass. Whoever keeps MAC keys refuses them after a failure; this package cannot.
func TestARetryAfterAFailedCheckIsForged(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		f, plan, culprit := w.scheme.Field, w.trusting(t, w.plan(t, Scalar, Shape{}, 0, w.scheme.Slots()-1)), round.Party(n-1)
		last := w.scheme.Slots() - 1 // masks the check, with weight one

		opened := f.NewVec(3)
		h := byzantine.On(byzantine.New(), "triple/shares", func(r *popk.Result) {
			f.Add(r.Shares[0].At(last), r.Shares[0].At(last), f.One())
		})
		byzantine.On(h, "triple/mac/sigma/open", func(b *[]byte) {
			if err := f.DecodeVec(opened, *b); err != nil {
				t.Error(err)
			}
		})
		out := w.run(plan, roundtest.Cheat(culprit, h), roundtest.Record())
		sum, v := opened.Clone(), f.NewVec(3)
		for p := range culprit {
			var abort *round.Abort
			if !errors.As(out.Errors[p], &abort) || abort.Check != maccheck.CheckMAC {
				t.Fatalf("party %d ends with %v, want an abort of check %s", p, out.Errors[p], maccheck.CheckMAC)
			}
			opening := out.Recording.Frames(p, culprit, "triple/mac/sigma/open")[0]
			if err := f.DecodeVec(v, opening[len(opening)-3*f.Size():]); err != nil {
				t.Fatal(err)
			}
			f.AddVec(sum, sum, v)
		}
		alpha, found := f.NewElement(), sum.At(0)
		for _, m := range w.macs {
			f.Add(alpha, alpha, m.Share.At(0))
		}
		f.Neg(found, found)
		if !f.Equal(found, alpha) {
			t.Fatalf("%d parties: the openings do not give the MAC key away", n)
		}

		w.label = "retry"
		h = byzantine.On(byzantine.New(), "triple/decrypted", func(s ddec.Shares) {
			mac := s[plan.extent().productMAC(0)]
			f.Add(s[0].At(0), s[0].At(0), f.One())
			f.Add(mac.At(0), mac.At(0), found)
		})
		out = w.run(plan, roundtest.Cheat(culprit, h)).OK(t)
		a, b, c, want := w.sum(out.Results, func(r *Result) field.Vec { return r.A }), w.sum(out.Results, func(r *Result) field.Vec { return r.B }),
			w.sum(out.Results, func(r *Result) field.Vec { return r.C }), f.NewElement()
		f.Mul(want, a.At(0), b.At(0))
		f.Add(want, want, f.One())
		if !f.Equal(c.At(0), want) {
			t.Errorf("%d parties: the forged product is not off by one", n)
		}
	}
}
