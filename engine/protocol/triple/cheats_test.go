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
	"github.com/lodge-mpc/lodge/engine/ring"
)

// A cheat is one deviation of the last party in a batch, and how it ends.
type cheat struct {
	name  string
	hooks func(w *network) byzantine.Hooks
	// check that ends the batch; empty when it passes
	check  string
	blamed bool // in public
}

var cheats = []cheat{
	{"shares that are not doubled", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "popk.Result", func(r *popk.Result) {
			f := w.scheme.Field
			half := f.NewElement()
			f.SetUint64(half, 2)
			f.Inverse(half, half)
			for _, x := range r.Shares {
				f.ScaleVec(x, x, half)
			}
		})
	}, maccheck.CheckMAC, false},
	{"a decryption share plus Delta", func(w *network) byzantine.Hooks {
		return shifted(func(d ring.Poly, b *ring.Basis) {
			delta := w.scheme.Delta()
			for l := range d.C {
				d.C[l][0] = (d.C[l][0] + delta.C[l][0]) % b.Primes()[l]
			}
		}, w)
	}, maccheck.CheckMAC, false},
	{"a decryption share off by one in one residue", func(w *network) byzantine.Hooks {
		return shifted(func(d ring.Poly, b *ring.Basis) { d.C[0][3] = (d.C[0][3] + 1) % b.Primes()[0] }, w)
	}, maccheck.CheckMAC, false},
	{"a decryption share plus an encoded one", func(w *network) byzantine.Hooks {
		return shifted(func(d ring.Poly, b *ring.Basis) {
			s := w.scheme
			one, coeffs, p := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots()), b.NewPoly()
			s.Field.Fill(one, s.Field.One())
			s.Pack.Pack(coeffs, one)
			s.ScalePlain(p, coeffs, b.Len())
			b.Add(d, d, p)
		}, w)
	}, maccheck.CheckMAC, false},
	{"the decryption share of the last MAC off by Delta", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "triple/share", func(messages []ring.Poly) {
			d, delta := messages[len(messages)-1], w.scheme.Delta()
			for l, q := range w.scheme.Prefix(len(d.C)).Primes() {
				d.C[l][1] = (d.C[l][1] + delta.C[l][0]) % q
			}
		})
	}, maccheck.CheckMAC, false},
	{"own shares shifted after decryption", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "ddec.Shares", func(s ddec.Shares) {
			w.scheme.Field.Add(s[0].At(0), s[0].At(0), w.scheme.Field.One())
		})
	}, maccheck.CheckMAC, false},
	{"another evaluated ciphertext", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "triple/compared", func(list []*gbfv.Ciphertext) { list[0].C0.C[0][0] ^= 1 })
	}, CheckEvaluated, false},
	{"the ciphertexts of an earlier batch", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "triple/compared", func(list []*gbfv.Ciphertext) {
			for i, ct := range w.earlier {
				if ct.Equal(list[i]) {
					panic("the earlier batch is this one")
				}
				list[i] = ct
			}
		})
	}, CheckEvaluated, false},
	{"an opened value that is wrong", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "triple/mac/open", func(v field.Vec) { w.scheme.Field.Add(v.At(0), v.At(0), w.scheme.Field.One()) })
	}, maccheck.CheckMAC, false},
	{"a z that is wrong from the start", func(*network) byzantine.Hooks { return flipped("triple/mac/z/commit") }, maccheck.CheckMAC, false},
	{"a z that changes after its commitment", func(*network) byzantine.Hooks { return flipped("triple/mac/z/open") }, round.CheckCommitment, true},
	{"a coin that changes after its commitment", func(*network) byzantine.Hooks { return flipped("triple/mac/coin/open") }, round.CheckCommitment, true},
	{"a ciphertext that changes after its commitment", func(*network) byzantine.Hooks { return touched() }, round.CheckCommitment, true},
	{"an answer to another challenge", func(*network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "triple/challenge", func(fields [][]byte) { fields[len(fields)-1] = make([]byte, 32) })
	}, popk.CheckEquation, true},
	// A seed of the coin that the culprit chose before it saw another is as good as any.
	{"a coin that the party chooses", func(*network) byzantine.Hooks { return flipped("triple/mac/coin/commit") }, "", false},
}

// Those of the sacrifice.
var sacrificeCheats = []cheat{
	{"a coin for the sacrifice that changes after its commitment", func(*network) byzantine.Hooks { return flipped(sacrificeCoin + "/open") }, round.CheckCommitment, true},
	{"a coin for the sacrifice that the party chooses", func(*network) byzantine.Hooks { return flipped(sacrificeCoin + "/commit") }, "", false},
	{"a masked factor that is wrong from then on", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), sacrificeName, func(v field.Vec) { w.scheme.Field.Add(v.At(7), v.At(7), w.scheme.Field.One()) })
	}, maccheck.CheckMAC, false},
	{"the mask of another tuple", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), sacrificeName, func(v field.Vec) { copy(v.At(1), v.At(0)) })
	}, maccheck.CheckMAC, false},
	{"the sacrificed ciphertexts of an earlier batch", func(w *network) byzantine.Hooks {
		return byzantine.On(byzantine.New(), "triple/compared", func(list []*gbfv.Ciphertext) {
			for i := 4; i < len(list); i++ { // h, alpha f and alpha h, of one block
				list[i] = w.earlier[i]
			}
		})
	}, CheckEvaluated, false},
}

// flipped changes a bit of the commitment or the opening of a commit-then-open step.
func flipped(name string) byzantine.Hooks {
	return byzantine.On(byzantine.New(), name, func(b *[]byte) { *b = append([]byte{(*b)[0] ^ 1}, (*b)[1:]...) })
}

// touched changes a bit of the first ciphertext, which is not that of the statement then.
func touched() byzantine.Hooks {
	return byzantine.On(byzantine.New(), "triple/ciphertexts", func(b *round.Body) {
		inner := *b
		*b = round.Frames(inner.Frames(), func(i int) ([]byte, error) {
			f, err := inner.Frame(i)
			if i == 0 && err == nil {
				f = append([]byte{f[0] ^ 1}, f[1:]...)
			}
			return f, err
		})
	})
}

// shifted changes the decryption share of the first ciphertext that another party combines.
func shifted(change func(d ring.Poly, b *ring.Basis), w *network) byzantine.Hooks {
	return byzantine.On(byzantine.New(), "triple/share", func(messages []ring.Poly) {
		change(messages[0], w.scheme.Prefix(len(messages[0].C)))
	})
}

func TestCheatsInABatch(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		plan := w.plan(t, Scalar, Shape{}, 0, 50)
		culprit := round.Party(n - 1)
		w.label = "earlier"
		keep := byzantine.On(byzantine.New(), "triple/compared", func(list []*gbfv.Ciphertext) {
			for _, ct := range list {
				w.earlier = append(w.earlier, ct.Clone())
			}
		})
		w.run(plan, roundtest.Watch(0, keep)).OK(t)
		w.label = ""
		for _, c := range slices.Concat(cheats, sacrificeCheats) {
			t.Run(fmt.Sprint(n, " parties, ", c.name), func(t *testing.T) {
				h := c.hooks(w)
				out := w.run(plan, roundtest.Cheat(culprit, h), roundtest.Record())
				if names := h.Unfired(); names != nil {
					t.Fatalf("the cheats %v did not run", names)
				}
				for from := range round.Party(n) {
					sent := out.Recording.Frames(from, roundtest.Any, "triple/share") != nil
					if decrypts := out.Recording.Frames(from, roundtest.Any, sacrificeCoin+"/commit") != nil; sent != decrypts {
						t.Errorf("party %d has sent a decryption share: %v", from, sent)
					}
					if early := c.check == CheckEvaluated || c.check == popk.CheckEquation; sent && early {
						t.Errorf("party %d has decrypted", from)
					}
				}
				if c.check == "" {
					failOn(t, out.Errors)
					w.verify(t, plan, out.Results)
					return
				}
				if c.blamed {
					out.Blamed(t, culprit, c.check)
					return
				}
				for p, err := range out.Errors {
					if round.Party(p) == culprit {
						continue
					}
					var abort *round.Abort
					if !errors.As(err, &abort) || abort.Check != c.check {
						t.Errorf("party %d ends with %v, want an abort of check %s", p, err, c.check)
					}
				}
			})
		}
	}
}

// Malformed messages and two versions of one, at every step that sends polynomials or decides.
func TestFaultsInABatch(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		plan := w.plan(t, Scalar, Shape{}, 0, 50)
		culprit := round.Party(n - 1)
		for _, name := range []string{"triple/ciphertexts", "triple/response", "triple/share"} {
			for _, c := range []struct {
				fault string
				edit  roundtest.Edit
				check string
			}{
				{"all ones", allOnes, round.CheckShape},
				{"cut short", roundtest.Truncate(1), round.CheckShape},
				{"a byte more", roundtest.Extend(1), round.CheckSize},
				{"a frame more", roundtest.ExtraFrame(nil), round.CheckShape},
				{"a frame less", func(_ *roundtest.View, f [][]byte) [][]byte { return f[:len(f)-1] }, round.CheckShape},
			} {
				if name == "triple/response" && c.fault == "all ones" {
					continue // it is -1 in every place, and the equation fails
				}
				t.Run(fmt.Sprint(name, ": ", c.fault, ", ", n, " parties"), func(t *testing.T) {
					w.run(plan, roundtest.Rewrite(culprit, name, c.edit)).Blamed(t, culprit, c.check)
				})
			}
		}
		if n == 2 {
			continue
		}
		for _, name := range []string{
			"triple/statement/commit", "triple/statement/open", "triple/ciphertexts", "triple/response", "triple/evaluated",
			sacrificeCoin + "/commit", sacrificeCoin + "/open", sacrificeName, "triple/mac/coin/commit", "triple/mac/coin/open", "triple/mac/open", "triple/mac/z/commit", "triple/mac/z/open",
		} {
			t.Run("two versions of "+name, func(t *testing.T) {
				w.run(plan, roundtest.Link(culprit, 0, name, roundtest.Flip(0))).Aborted(t, culprit, round.CheckEcho)
			})
		}
	}
}

// allOnes fills the last polynomial.
func allOnes(_ *roundtest.View, frames [][]byte) [][]byte {
	last := frames[len(frames)-1]
	for i := range last {
		last[i] = 0xff
	}
	return frames
}

// A check counts from the moment at which its combinations are opened, and not before.
func TestOpening(t *testing.T) {
	for _, n := range []int{2, 3} {
		w, culprit := newNetwork(t, "insecure-8", "p128", n, 1), round.Party(n-1)
		plan := w.plan(t, Scalar, Shape{}, 0, 50)
		for name, want := range map[string]bool{"triple/share": false, "triple/mac/coin/open": false, "triple/mac/open": true, "triple/mac/z/open": true} {
			w.opened = make([]bool, n)
			w.run(plan, roundtest.Rewrite(culprit, name, roundtest.Drop))
			for p, got := range w.opened[:culprit] {
				if got != want {
					t.Errorf("%d parties, without %s: party %d has opened: %v", n, name, p, got)
				}
			}
		}
	}
}

// A peer that shifts its decryption share and its own share to match redefines its share: the batch
// passes, and c = ab.
func TestAShiftThatIsCarriedThroughPasses(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		plan := w.plan(t, Scalar, Shape{}, 0, 50)
		culprit := round.Party(n - 1)
		s := w.scheme
		one, coeffs := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
		s.Field.Fill(one, s.Field.One())
		s.Pack.Pack(coeffs, one)
		h := byzantine.New()
		byzantine.On(h, "triple/share", func(messages []ring.Poly) {
			b := s.Prefix(len(messages[0].C))
			p := b.NewPoly()
			s.ScalePlain(p, coeffs, b.Len())
			b.Add(messages[0], messages[0], p)
		})
		byzantine.On(h, "ddec.Shares", func(shares ddec.Shares) { s.Field.SubVec(shares[0], shares[0], one) })
		out := w.run(plan, roundtest.Cheat(culprit, h))
		failOn(t, out.Errors)
		w.verify(t, plan, out.Results)
		if h.Fired("triple/share") != 1 || h.Fired("ddec.Shares") != 1 {
			t.Error("the cheat did not run")
		}
	}
}

// Padding that is not zero would add to c; the zero check stops the batch.
func TestPaddingThatIsNotZero(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 16)
		plan := w.plan(t, Matrix, Shape{4, 3, 4}, 4, 1)
		h := byzantine.New().Skip(Padding)
		out := w.run(plan, roundtest.Cheat(round.Party(n-1), h))
		for p := range n - 1 {
			var abort *round.Abort
			if !errors.As(out.Errors[p], &abort) || abort.Check != maccheck.CheckZero {
				t.Errorf("party %d ends with %v, want an abort of check %s", p, out.Errors[p], maccheck.CheckZero)
			}
		}
		honest := w.run(plan)
		failOn(t, honest.Errors)
		w.verify(t, plan, honest.Results)
	}
}
