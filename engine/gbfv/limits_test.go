package gbfv_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// TestDistributedDecryptionAtItsLimits decrypts with the arithmetic of distributed decryption where the phase error is
// its bound and every party floods with E, the signs chosen so that P times the error is as large as it can be. That
// decodes for every set and field. Three more than E does not: the condition on E is tight, and the test sees it.
func TestDistributedDecryptionAtItsLimits(t *testing.T) {
	var cases []longtest.Case
	for _, set := range params.Sets() {
		for _, f := range set.Fields {
			for _, n := range slices.Compact([]int{2, mostParties(t, set, f.Name, 1)}) {
				cases = append(cases, longtest.Case{
					Name: fmt.Sprintf("%s/%s/n=%d", set.Name, f.Name, n), Everyday: set.LogN <= 8,
					Run: func(t *testing.T) { decryptsUpToItsLimit(t, set, f.Name, n) },
				})
			}
		}
	}
	longtest.Run(t, cases)
}

func decryptsUpToItsLimit(t *testing.T, set *params.Set, field string, n int) {
	s := newScheme(t, set.Name, field)
	inst, err := params.Resolve(set, field, params.Use{Parties: n, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := newLimit(s, inst)
	for _, signs := range []func(k int) bool{
		func(k int) bool { return k/s.Slots()%2 == 1 }, // v_{k-D} and -b·v_k have one sign, but for the first D
		func(k int) bool { return k/s.Slots()%2 == 0 },
		func(int) bool { return false },
		func(k int) bool { return k%3 == 0 },
	} {
		if !l.decrypts(signs, inst.FloodBound) {
			t.Error("wrong at the limit")
		}
	}
	over := new(big.Int).Add(inst.FloodBound, big.NewInt(3))
	if l.decrypts(func(k int) bool { return k/s.Slots()%2 == 1 }, over) {
		t.Error("right beyond the limit: the bound on the flooding is not tight")
	}
}

// limit is a ciphertext whose phase is known.
type limit struct {
	s       *gbfv.Scheme
	inst    *params.Instance
	k       *gbfvtest.Key
	message field.Vec // coefficients
	ct      *gbfv.Ciphertext
	ideal   ring.Poly // the phase without an error
	phase   ring.Poly // the phase of ct
}

func newLimit(s *gbfv.Scheme, inst *params.Instance) *limit {
	k, primes := gbfvtest.New(s, inst.Use.Parties, 1, seed), inst.DDecPrimes
	l := &limit{s: s, inst: inst, k: k, message: s.Field.NewVec(s.Slots()), ideal: s.Prefix(primes).NewPoly(), phase: s.Prefix(primes).NewPoly()}
	slots := k.Random(0)
	s.Pack.Pack(l.message, slots)
	l.ct = s.SwitchModulus(k.Encrypt(slots, 0), primes)
	s.Phase(l.phase, l.ct, k.Secret, primes)
	s.ScalePlain(l.ideal, l.message, primes)
	return l
}

// decrypts reports whether the message comes out when the phase error is the bound and every party floods with flood,
// with minus signs where negative says.
func (l *limit) decrypts(negative func(k int) bool, flood *big.Int) bool {
	s, primes := l.s, l.inst.DDecPrimes
	b, f := s.Prefix(primes), s.Field
	fill := func(bound *big.Int) intpoly.Poly {
		e := intpoly.New(s.N(), (bound.BitLen()+64)/64)
		minus := new(big.Int).Neg(bound)
		for k := range s.N() {
			if negative(k) {
				e.SetBig(k, minus)
			} else {
				e.SetBig(k, bound)
			}
		}
		return e
	}
	// c0 + (ideal + error - phase) has the error in place of its own.
	sum, t := l.ct.C0.Clone(), b.NewPoly()
	b.FromInt(t, fill(l.inst.PhaseBound))
	b.Add(sum, sum, t)
	b.Add(sum, sum, l.ideal)
	b.Sub(sum, sum, l.phase)

	e := fill(flood)
	masks, coeffs := f.NewVec(s.Slots()), f.NewVec(s.Slots())
	for party, share := range l.k.Shares {
		s.Pack.Pack(coeffs, l.k.Random(uint64(1+party)))
		f.AddVec(masks, masks, coeffs)
		s.DecryptionShare(t, l.ct.C1, share, e, coeffs, primes)
		b.Add(sum, sum, t)
	}
	s.Decode(coeffs, sum, primes)
	f.SubVec(coeffs, coeffs, masks)
	return f.EqualVec(coeffs, l.message)
}
