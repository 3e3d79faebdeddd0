package gbfv_test

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
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
				t.Errorf("Galois element is %d, that of the packing is %d", g, h)
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
			t.Error("hashes collide or are not deterministic")
		}
		seen[h] = true
	}
}
