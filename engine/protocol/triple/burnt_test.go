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

// A peer that adds one to a value makes the check of its batch fail. The check that opened sigma
// revealed the MAC key then, so that the peer could forge the next batch. The openings of the
// present check do not help: the forged batch fails as well, and honest batches under the same key
// continue.
func TestARetryAfterAFailedCheckIsNotForged(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		plan, culprit := w.trusting(t, w.plan(t, Scalar, Shape{}, 0, 1)), round.Party(n-1)
		f, masks := w.scheme.Field, plan.Count // the slot that masks the check, with weight one

		h := byzantine.On(byzantine.New(), "popk.Result", func(r *popk.Result) {
			f.Add(r.Shares[0].At(masks), r.Shares[0].At(masks), f.One())
		})
		opened := f.NewVec(3)
		byzantine.On(h, "triple/mac/z/open", func(b *[]byte) {
			if err := f.DecodeVec(opened, *b); err != nil {
				t.Error(err)
			}
		})
		out := w.run(plan, roundtest.Cheat(culprit, h), roundtest.Record())
		sum, v := opened.Clone(), f.NewVec(3)
		for p := range culprit {
			w.failsMAC(t, out.Errors[p])
			opening := out.Recording.Frames(p, culprit, "triple/mac/z/open")[0]
			if err := f.DecodeVec(v, opening[len(opening)-3*f.Size():]); err != nil {
				t.Fatal(err)
			}
			f.AddVec(sum, sum, v)
		}
		alpha, found := f.NewElement(), sum.At(0)
		for _, m := range w.macs {
			f.Add(alpha, alpha, m.Share.At(0))
		}
		if f.Neg(found, found); f.Equal(found, alpha) || f.IsZero(found) {
			t.Fatalf("%d parties: the openings give the MAC key away", n)
		}

		forge := func(mac field.Element) byzantine.Hooks {
			return byzantine.On(byzantine.New(), "ddec.Shares", func(s ddec.Shares) {
				of := s[plan.extent().productMAC(0)]
				f.Add(s[0].At(0), s[0].At(0), f.One())
				f.Add(of.At(0), of.At(0), mac)
			})
		}
		w.label = "retry"
		for p, err := range w.run(plan, roundtest.Cheat(culprit, forge(found))).Errors[:culprit] {
			if w.failsMAC(t, err); t.Failed() {
				t.Fatalf("%d parties: party %d accepts the forged batch", n, p)
			}
		}
		w.label = "with the key" // the same forgery passes with the key, so the experiment is about it
		w.run(plan, roundtest.Cheat(culprit, forge(alpha))).OK(t)
		w.label = "afterwards"
		w.verify(t, plan, w.run(plan).OK(t).Results)
	}
}

func (w *network) failsMAC(t *testing.T, err error) {
	t.Helper()
	var abort *round.Abort
	if !errors.As(err, &abort) || abort.Check != maccheck.CheckMAC {
		t.Errorf("%d parties: a party ends with %v, want an abort of check %s", w.n, err, maccheck.CheckMAC)
	}
}
