package gbfv_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/params"
)

// TestRealSize runs the default set at full size: two levels, switch and decryption. Honest fresh
// ciphertexts stay far below the worst that proofs accept. After the first product the error of the
// relinearisation key dominates, both in measurements and in the bounds.
func TestRealSize(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the full ring degree; run without -short")
	}
	const parties = 3
	s := newScheme(t, params.Default, "p128")
	inst, err := params.Resolve(s.Set, "p128", params.Use{Parties: parties, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	k := measured{gbfvtest.New(s, parties, 1, seed), s}
	e := gbfv.NewEvaluator(s, k.Eval)
	x, y, z := k.Random(0), k.Random(1), k.Random(2)
	cx, cy, cz := k.Encrypt(x, 0), k.Encrypt(y, 1), k.Encrypt(z, 2)
	check := func(term string, ct *gbfv.Ciphertext, slots field.Vec, margin int) {
		t.Helper()
		wantSlots(t, s.Field, term, k.Decrypt(ct), slots)
		bound, _ := inst.Term(term)
		noise := k.noise(ct, slots)
		t.Logf("%s: noise of %d bits, bound of %d bits", term, noise.BitLen(), bound.Bound.BitLen())
		if new(big.Int).Lsh(noise, uint(margin)).Cmp(bound.Bound) > 0 {
			t.Errorf("%s: noise of %d bits is not %d under its bound", term, noise.BitLen(), margin)
		}
	}
	check("fresh", cx, x, 20)
	left, right := s.Left(cx), s.Right(cy)
	start := time.Now()
	c := e.Mul(left, right)
	t.Logf("product of prepared operands: %v", time.Since(start))
	xy := mulVec(s.Field, x, y)
	check("product", c, xy, 5)
	alpha := s.Left(cz)
	start = time.Now()
	ac := e.Mul(alpha, s.Right(c))
	t.Logf("product with one operand prepared: %v", time.Since(start))
	xyz := mulVec(s.Field, xy, z)
	check("mac.c", ac, xyz, 7)
	check("mac.a", e.Mul(alpha, s.Right(cx)), mulVec(s.Field, z, x), 5)

	start = time.Now()
	switched := s.SwitchModulus(ac, inst.DDecPrimes)
	t.Logf("modulus switch to %d primes: %v", inst.DDecPrimes, time.Since(start))
	if noise := k.noise(switched, xyz); noise.Cmp(inst.PhaseBound) > 0 {
		t.Errorf("noise %v after the switch, bound %v", noise, inst.PhaseBound)
	}
	phase := s.Prefix(inst.DDecPrimes).NewPoly()
	s.Phase(phase, switched, k.Secret, inst.DDecPrimes)
	coeffs := s.Field.NewVec(s.Slots())
	start = time.Now()
	s.Decode(coeffs, phase, inst.DDecPrimes)
	t.Logf("decode: %v", time.Since(start))
	start = time.Now()
	s.ScalePlain(phase, coeffs, inst.DDecPrimes)
	t.Logf("scale: %v", time.Since(start))
	s.Pack.Unpack(coeffs, coeffs.Clone())
	wantSlots(t, s.Field, "after the switch", coeffs, xyz)
}
