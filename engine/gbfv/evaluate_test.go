package gbfv_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/params"
)

func TestMulDepthTwo(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		k := gbfvtest.New(s, 3, 1, seed)
		e := gbfv.NewEvaluator(s, k.Eval)
		x, y, z := k.Random(0), k.Random(1), k.Random(2)
		xy := mulVec(s.Field, x, y)
		alpha := s.Left(k.Encrypt(z, 2)) // used twice
		ct := e.Mul(s.Left(k.Encrypt(x, 0)), s.Right(k.Encrypt(y, 1)))
		wantSlots(t, s.Field, "product", k.Decrypt(ct), xy)
		xyz := mulVec(s.Field, xy, z)
		ct = e.Mul(alpha, s.Right(ct))
		wantSlots(t, s.Field, "depth 2", k.Decrypt(ct), xyz)
		ct = e.Mul(alpha, s.Right(k.Encrypt(y, 3)))
		wantSlots(t, s.Field, "hoisted", k.Decrypt(ct), mulVec(s.Field, z, y))
	})
}

// TestNoiseUnderBound compares phase errors with the registry's terms. Honest inputs lie below the proved bounds, by
// less in small rings; TestRealSize has the margin of a shipped set. The last level is a bound on coefficients.
func TestNoiseUnderBound(t *testing.T) {
	const margin = 10 // bits
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		const parties = 3
		inst, err := params.Resolve(s.Set, s.Spec.Name, params.Use{Parties: parties, Dim: 1})
		var miss *params.DoesNotFit
		if errors.As(err, &miss) {
			t.Skip(miss)
		} else if err != nil {
			t.Fatal(err)
		}
		k := gbfvtest.New(s, parties, 1, seed)
		e := gbfv.NewEvaluator(s, k.Eval)
		x, y, z := k.Random(0), k.Random(1), k.Random(2)
		check := func(term string, ct *gbfv.Ciphertext, slots field.Vec) {
			t.Helper()
			bound, ok := inst.Term(term)
			if !ok {
				t.Fatalf("no term %q", term)
			}
			noise := k.Noise(ct, slots)
			if new(big.Int).Lsh(noise, margin).Cmp(bound.Bound) > 0 {
				t.Errorf("%s: noise of %d bits, bound of %d, want %d less", term, noise.BitLen(), bound.Bound.BitLen(), margin)
			}
		}
		cx, cy, cz := k.Encrypt(x, 0), k.Encrypt(y, 1), k.Encrypt(z, 2)
		check("fresh", cx, x)
		c := e.Mul(s.Left(cx), s.Right(cy))
		xy := mulVec(s.Field, x, y)
		check("product", c, xy)
		check("mac.a", e.Mul(s.Left(cz), s.Right(cx)), mulVec(s.Field, z, x))
		xyz := mulVec(s.Field, xy, z)
		ac := e.Mul(s.Left(cz), s.Right(c))
		check("mac.c", ac, xyz)
		switched := s.SwitchModulus(ac, inst.DDecPrimes)
		if noise := k.Noise(switched, xyz); noise.Cmp(inst.PhaseBound) > 0 {
			t.Errorf("noise %v after the switch, bound %v", noise, inst.PhaseBound)
		}
	})
}

func TestRotate(t *testing.T) {
	for _, tc := range []struct{ set, field string }{
		{"insecure-6", "p64"}, {"insecure-6", "p512"}, {"insecure-8-64", "p256"}, {"insecure-8-16", "p128"},
	} {
		t.Run(tc.set+"/"+tc.field, func(t *testing.T) {
			s := newScheme(t, tc.set, tc.field)
			d := s.Slots()
			k := gbfvtest.New(s, 2, d, seed)
			e := gbfv.NewEvaluator(s, k.Eval)
			x := k.Random(0)
			ct := k.Encrypt(x, 0)
			want := s.Field.NewVec(d)
			for dim := d; dim >= 1; dim /= 2 { // keys for d serve smaller dimensions
				for i := range dim {
					got, err := e.Rotate(ct, i, dim)
					if err != nil {
						t.Fatal(err)
					}
					for j := range d {
						copy(want.At(j), x.At((j+i*(d/dim))%d))
					}
					wantSlots(t, s.Field, "rotated", k.Decrypt(got), want)
				}
			}
			if g, h := gbfv.Galois(s.N(), 3, d), s.Pack.Galois(3); g != h {
				t.Errorf("Galois element %d, packing has %d", g, h)
			}
		})
	}
}

func TestRotateRefusals(t *testing.T) {
	s := newScheme(t, "insecure-6", "p64")
	k := gbfvtest.New(s, 2, 4, seed)
	e := gbfv.NewEvaluator(s, k.Eval)
	ct := s.NewCiphertext()
	if _, err := e.Rotate(ct, 1, 8); !errors.Is(err, gbfv.ErrNoKey) {
		t.Errorf("rotation without a key: %v", err)
	}
	for _, d := range []int{0, 3, 2 * s.Slots()} {
		if _, err := e.Rotate(ct, 1, d); err == nil || errors.Is(err, gbfv.ErrNoKey) {
			t.Errorf("dimension %d: %v", d, err)
		}
	}
}

func TestHashSeparates(t *testing.T) {
	s := newScheme(t, "insecure-6", "p64")
	a, b := s.NewCiphertext(), s.NewCiphertext()
	b.C1.C[0][0] = 1
	seen := map[[32]byte]bool{}
	for _, list := range [][]*gbfv.Ciphertext{nil, {a}, {b}, {a, b}, {b, a}, {s.SwitchModulus(a, 2)}} {
		h := gbfv.Hash(list)
		if seen[h] || h != gbfv.Hash(list) {
			t.Error("hashes collide or vary")
		}
		seen[h] = true
	}
}
