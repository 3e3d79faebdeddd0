package maccheck

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// summed adds up the values that all parties have broadcast or opened under a name.
func summed(t *testing.T, d *dealt, out *roundtest.Outcome[Passed], name string, elements int) field.Vec {
	t.Helper()
	f := d.f
	sum, v := f.NewVec(elements), f.NewVec(elements)
	for p := range round.Party(len(d.inputs)) {
		b := out.Recording.Frames(p, (p+1)%round.Party(len(d.inputs)), name)[0]
		if err := f.DecodeVec(v, b[len(b)-elements*f.Size():]); err != nil {
			t.Fatal(err)
		}
		f.AddVec(sum, sum, v)
	}
	return sum
}

// quotient returns x/y.
func quotient(f *field.Field, x, y field.Element) field.Element {
	q := f.NewElement()
	f.Inverse(q, y)
	f.Mul(q, q, x)
	return q
}

// cheating returns the option for a last party that cheats only in its input.
func cheating(n int) roundtest.Option { return roundtest.Cheat(round.Party(n-1), byzantine.New()) }

// A check triple whose b leaks elsewhere reveals alpha when the check fails. A sacrifice of the
// triple leaks it: with a wrong opening of the masked factor, the relation that is opened is a
// multiple of b.
func TestTrapSacrificedCheckTriple(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		d := deal(t, f, n, 1)
		for p := range d.inputs {
			x := &d.inputs[p].Material.Triples[0]
			d.inputs[p].Sacrificed = []Pair{{x.B.Clone(), x.MACB.Clone()}}
		}
		bump(f, d.inputs[n-1].Material.Mask.Value.At(0)) // an error of one in combination 0
		out := d.run(cheating(n), roundtest.Record())
		aborts(t, out.Errors, round.Party(n-1), CheckMAC)

		chi := f.NewVec(1)
		coin := round.Coin(round.Hash("roundtest session"), step+"/coin", seeds(out, n))
		if err := f.Random(chi, round.XOF("lodge mac check weights", sessionID(), []byte(step), coin[:], round.Uint(2))); err != nil {
			t.Fatal(err)
		}
		b := quotient(f, summed(t, d, out, step+"/open", 2*Combinations).At(2), chi.At(0))
		guess := quotient(f, summed(t, d, out, step+"/z/open", Combinations).At(0), b)
		f.Neg(guess, guess)
		if !f.Equal(guess, d.alpha) {
			t.Errorf("%d parties: the experiment does not find alpha", n)
		}
	}
}

func sessionID() []byte {
	id := round.Hash("roundtest session")
	return id[:]
}

// seeds returns the opened seeds of the coin.
func seeds(out *roundtest.Outcome[Passed], n int) (list [][]byte) {
	for p := range round.Party(n) {
		list = append(list, out.Recording.Frames(p, (p+1)%round.Party(n), step+"/coin/open")[0][round.NonceSize:])
	}
	return list
}

// A check triple that serves two checks reveals alpha even if both pass. Start refuses consumed
// material.
func TestTrapCheckTripleUsedTwice(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		d := deal(t, f, n, 0)
		id := round.Hash("another session") // with another coin, hence another Y
		first, second := d.run(roundtest.Record()).OK(t), d.run(roundtest.Record(), roundtest.ID(id)).OK(t)
		x, y := summed(t, d, first, step+"/open", 2*Combinations), summed(t, d, second, step+"/open", 2*Combinations)
		f.SubVec(x, x, y)
		if !f.Equal(quotient(f, x.At(Combinations), x.At(0)), d.alpha) {
			t.Errorf("%d parties: the experiment does not find alpha", n)
		}

		c := d.inputs[0]
		c.Session, c.Source = round.Session{Parties: n}, source("run", 0)
		if _, err := Start(c); err != nil {
			t.Fatal(err)
		}
		c.Source = source("again", 0)
		if _, err := Start(c); err == nil {
			t.Error("material is used twice")
		}
	}
}

// One check triple for the sum of the combinations, with weights known before the opening, lets a
// cheat open a wrong zero: it moves the difference into the opening of the values, and the sum of
// the sigmas is zero for every alpha. With a triple for each combination the same cheat fails.
func TestTrapOneCheckForAllCombinations(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		d := deal(t, f, n, 5)
		culprit := round.Party(n - 1)
		// The zeros hold one value that is one, with a right MAC.
		own := d.inputs[culprit].Zeros[0]
		bump(f, own.Value.At(0))
		f.Add(own.MAC.At(0), own.MAC.At(0), d.alpha)
		// The weights w of the single sigma are w_0 = w_1 = 1.
		v := &roundtest.View{}
		difference := f.NewElement()
		hooks := byzantine.On(byzantine.New(), step+"/open", func(own field.Vec) {
			y, x := own.Clone(), f.NewVec(2*Combinations)
			for p := range culprit {
				if err := f.DecodeVec(x, v.Frames(p, culprit, step+"/open")[0]); err != nil {
					t.Error(err)
				}
				f.AddVec(y, y, x)
			}
			copy(difference, y.At(1))
			f.Sub(own.At(1), own.At(1), difference)
			f.Add(own.At(0), own.At(0), difference)
		})
		out := d.run(roundtest.Cheat(culprit, hooks), roundtest.Rushing(culprit, v), roundtest.Record())
		aborts(t, out.Errors, culprit, CheckMAC)

		opened := summed(t, d, out, step+"/open", 2*Combinations)
		if f.IsZero(difference) || !f.IsZero(opened.At(1)) {
			t.Fatalf("%d parties: the experiment does not open a wrong zero", n)
		}
		// sigma_0 = gamma(Y_0) - alpha (Y_0 + difference), and sigma_1 = alpha difference - alpha
		// 0.
		s0, s1 := f.NewElement(), f.NewElement()
		f.Mul(s1, d.alpha, difference)
		f.Neg(s0, s1)
		f.Add(s0, s0, s1)
		if !f.IsZero(s0) {
			t.Errorf("%d parties: the single sigma is not zero", n)
		}
	}
}

// Without the commitment to z, a party that speaks last cancels the sum and a wrong value passes.
// With it, the party is blamed.
func TestTrapZWithoutCommitment(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		for _, committed := range []bool{false, true} {
			d := deal(t, f, n, 0)
			bump(f, d.inputs[culprit].Values[0].Value.At(3))
			v := &roundtest.View{}
			cancel := func(_ *roundtest.View, frames [][]byte) [][]byte {
				sum, x := f.NewVec(Combinations), f.NewVec(Combinations)
				for p := range culprit {
					b := v.Frames(p, culprit, step+"/z/open")[0]
					if err := f.DecodeVec(x, b[round.NonceSize:]); err != nil {
						t.Error(err)
					}
					f.AddVec(sum, sum, x)
				}
				f.NegVec(sum, sum)
				out := append([]byte(nil), frames[0]...)
				f.EncodeVec(out[round.NonceSize:], sum)
				return [][]byte{out}
			}
			options := []roundtest.Option{
				roundtest.Cheat(culprit, byzantine.New()), roundtest.Rushing(culprit, v), roundtest.Rewrite(culprit, step+"/z/open", cancel),
			}
			if !committed {
				for p := range culprit {
					options = append(options, roundtest.Watch(p, byzantine.New().Skip(round.CheckCommitment)))
				}
			}
			out := d.run(options...)
			if committed {
				out.Blamed(t, culprit, round.CheckCommitment)
				continue
			}
			for p := range culprit {
				if out.Errors[p] != nil {
					t.Errorf("%d parties: the experiment does not pass: %v", n, out.Errors[p])
				}
			}
		}
	}
}

// MACs that are opened after a failure reveal alpha, even if the failure itself does not. No party
// sends anything after the check has failed.
func TestTrapNothingIsOpenedAfterAFailure(t *testing.T) {
	f := testField(t, "p128")
	for _, n := range []int{2, 3} {
		d := deal(t, f, n, 5)
		culprit := round.Party(n - 1)
		bump(f, d.inputs[culprit].Values[0].Value.At(3))
		sent := map[string]bool{}
		out := d.run(cheating(n), roundtest.Record())
		aborts(t, out.Errors, culprit, CheckMAC)
		names := []string{step + "/coin/commit", step + "/coin/open", step + "/open", step + "/z/commit", step + "/z/open", round.EchoName}
		for _, name := range names {
			sent[name] = true
		}
		for name := range out.Recording.Names() {
			if !sent[name] {
				t.Errorf("%d parties: %s is sent", n, name)
			}
		}
		// Opening the MAC of an honest value would reveal alpha.
		value, mac := f.NewVec(1), f.NewVec(1)
		for p := range d.inputs {
			f.Add(value.At(0), value.At(0), d.inputs[p].Values[0].Value.At(0))
			f.Add(mac.At(0), mac.At(0), d.inputs[p].Values[0].MAC.At(0))
		}
		if !f.Equal(quotient(f, mac.At(0), value.At(0)), d.alpha) {
			t.Errorf("%d parties: the experiment does not find alpha", n)
		}
	}
}

// The first message of a failing check is an ordinary one: the error is detected at the end.
func TestWrongValueOpensNoSigma(t *testing.T) {
	f := testField(t, "p128")
	d := deal(t, f, 2, 0)
	bump(f, d.inputs[1].Material.Mask.Value.At(0))
	out := d.run(cheating(2), roundtest.Record())
	var abort *round.Abort
	if !errors.As(out.Errors[0], &abort) {
		t.Fatal(out.Errors[0])
	}
	// The opened sum is b times alpha times the error; the check that this one replaced opened
	// alpha times the error.
	z := summed(t, d, out, step+"/z/open", Combinations).At(0)
	f.Neg(z, z)
	if f.Equal(z, d.alpha) {
		t.Error("the opened sum is alpha times the error")
	}
}

// Opening runs once before this party opens its combinations. If it fails, they are not opened.
func TestOpening(t *testing.T) {
	f := testField(t, "p128")
	const n = 3
	for name, c := range map[string]struct {
		fault roundtest.Option
		want  bool
	}{
		"no coin from a peer":       {roundtest.Rewrite(2, step+"/coin/open", roundtest.Drop), false},
		"no value from a peer":      {roundtest.Rewrite(2, step+"/open", roundtest.Drop), true},
		"no commitment from a peer": {roundtest.Rewrite(2, step+"/z/commit", roundtest.Drop), true},
		"no opening from a peer":    {roundtest.Rewrite(2, step+"/z/open", roundtest.Drop), true},
	} {
		d := deal(t, f, n, 0)
		calls := make([]int, n)
		for p := range d.inputs {
			d.inputs[p].Opening = func() error {
				calls[p]++
				return nil
			}
		}
		out := d.run(c.fault, roundtest.Record())
		for p := range round.Party(2) {
			opened := out.Recording.Frames(p, roundtest.Any, step+"/open") != nil
			if opened != c.want || (calls[p] == 1) != c.want || out.Errors[p] == nil {
				t.Errorf("%s: party %d has opened: %v, calls: %d, error: %v", name, p, opened, calls[p], out.Errors[p])
			}
		}
	}
	d := deal(t, f, n, 0)
	failure := errors.New("disk is full")
	d.inputs[0].Opening = func() error { return failure }
	out := d.run(roundtest.Record())
	if !errors.Is(out.Errors[0], failure) || out.Recording.Frames(0, roundtest.Any, step+"/open") != nil {
		t.Errorf("a party that cannot note the check ends with %v", out.Errors[0])
	}
}
