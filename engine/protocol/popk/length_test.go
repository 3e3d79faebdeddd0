package popk

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// lengthen replaces the first witness by another encoding of its message: mu + x P X^k for P = X^D
// - b, whose norm is about |x| b. The prover is otherwise honest.
func lengthen(b *bench, x int64, k int) func(p *prover) {
	return func(p *prover) {
		s := b.scheme
		minus := new(big.Int).Mul(b.instance.Field.B, big.NewInt(-x))
		addTo(p.secret[0].z, k, minus)
		addTo(p.secret[0].z, k+s.Slots(), big.NewInt(x))
	}
}

// times returns k v.
func times(v *big.Int, k int) *big.Int { return new(big.Int).Mul(v, big.NewInt(int64(k))) }

// A witness longer than the proof allows fails only the bound: it encodes its message, its
// responses open the masks, and parties that skip the bound accept it.
func TestALongWitnessIsRefusedForItsBound(t *testing.T) {
	for _, n := range []int{2, 3} {
		b, culprit := newBench(t, n), round.Party(n-1)
		// Just over the bound, so that responses still fit the bits that messages have for them.
		x := new(big.Int).Div(times(b.instance.B1, 21), times(b.instance.Field.B, 20)).Int64()
		long := func() roundtest.Option {
			return roundtest.Cheat(culprit, byzantine.On(byzantine.New(), "p/witness", lengthen(b, x, 5)))
		}
		b.run(false, nil, long()).Blamed(t, culprit, CheckBound)

		options := []roundtest.Option{long()}
		for p := range round.Party(n) {
			h := byzantine.New().Skip(CheckBound)
			if p == culprit {
				byzantine.On(h, "p/witness", lengthen(b, x, 5))
			}
			options = append(options, roundtest.Watch(p, h))
		}
		out := b.run(false, nil, options...).OK(t)
		f := b.scheme.Field
		sum := f.NewVec(b.scheme.Slots())
		for _, r := range out.Results {
			f.AddVec(sum, sum, r.Shares[0])
		}
		if !f.EqualVec(b.key.Decrypt(out.Results[0].Ciphertexts[0]), sum) {
			t.Errorf("%d parties: the long witness encodes another message", n)
		}
	}
}

// Responses for a witness of norm 2^20 b do not fit a message. The prover fails to respond, or
// sends an encodable response that is out of bounds or does not open the mask, or sends too many
// bits.
func TestAWitnessOf2To20B(t *testing.T) {
	const x = 1 << 20
	for _, n := range []int{2, 3} {
		b, culprit := newBench(t, n), round.Party(n-1)
		p := b.instance.Proof
		wz, _ := widths(p)
		top := new(big.Int).Lsh(big.NewInt(1), uint(wz-1))
		long := func() byzantine.Hooks { return byzantine.On(byzantine.New(), "p/witness", lengthen(b, x, 5)) }
		// every applies a change to all coefficients that are out of bounds; at least one is.
		every := func(change func(v *big.Int) *big.Int) byzantine.Hooks {
			return byzantine.On(long(), "p/response", func(own []response) {
				over := 0
				for _, r := range own {
					for k := range b.scheme.N() {
						if v := r.z.Big(k); v.CmpAbs(p.B1) >= 0 {
							over++
							r.z.SetBig(k, change(v))
						}
					}
				}
				if over == 0 {
					t.Error("no response is out of bounds")
				}
			})
		}
		b.run(false, nil, roundtest.Cheat(culprit, long())).Stalls(t, culprit, "p/response")
		for _, c := range []struct {
			name  string
			hooks byzantine.Hooks
			check string
		}{
			{"the largest that a message carries", every(func(v *big.Int) *big.Int {
				w := new(big.Int).Sub(top, big.NewInt(1))
				if v.Sign() < 0 {
					w.Neg(w)
				}
				return w
			}), CheckBound},
			{"the bound", every(func(*big.Int) *big.Int { return p.B1 }), CheckBound},
			{"reduced below the bound", every(func(v *big.Int) *big.Int { return new(big.Int).Rem(v, p.B1) }), CheckEquation},
		} {
			t.Run(fmt.Sprint(c.name, ", ", n, " parties"), func(t *testing.T) {
				b.run(false, nil, roundtest.Cheat(culprit, c.hooks)).Blamed(t, culprit, c.check)
			})
		}
	}
}

// Empty hooks at every message do not change a run, and every hook exists.
func TestHooksAreReached(t *testing.T) {
	for _, n := range []int{2, 3} {
		h := byzantine.New()
		byzantine.On(h, "p/witness", func(*prover) {})
		byzantine.On(h, "p/encrypted", func([]*gbfv.Ciphertext) {})
		byzantine.On(h, "p/statement/commit", func(*[]byte) {})
		byzantine.On(h, "p/statement/open", func(*[]byte) {})
		byzantine.On(h, "p/ciphertexts", func(*round.Body) {})
		byzantine.On(h, "p/challenge", func([][]byte) {})
		byzantine.On(h, "p/response", func([]response) {})
		newBench(t, n).run(false, nil, roundtest.Cheat(round.Party(n-1), h)).OK(t)
		for _, name := range []string{
			"p/witness", "p/encrypted", "p/statement/commit", "p/statement/open", "p/challenge", "p/ciphertexts", "p/response",
		} {
			if h.Fired(name) != 1 {
				t.Errorf("%d parties: hook %s has run %d times", n, name, h.Fired(name))
			}
		}
	}
}
