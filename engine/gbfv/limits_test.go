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

// TestDistributedDecryptionAtItsLimits runs the arithmetic of distributed decryption with a phase
// error equal to its bound. Every party floods with E, with the signs that make P times the error
// as large as possible. This decodes for every set and field. Flooding with E + 3 does not: the
// condition on E is tight, and the test detects it.
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
		func(k int) bool { return k/s.Slots()%2 == 1 }, // v_{k-D} and -b·v_k have one sign, except for the first D
		func(k int) bool { return k/s.Slots()%2 == 0 },
		func(int) bool { return false },
		func(k int) bool { return k%3 == 0 },
	} {
		if !l.decrypts(signs, inst.FloodBound) {
			t.Error("decryption fails at the limit")
		}
	}
	over := new(big.Int).Add(inst.FloodBound, big.NewInt(3))
	if l.decrypts(func(k int) bool { return k/s.Slots()%2 == 1 }, over) {
		t.Error("decryption succeeds beyond the limit: the bound on the flooding is not tight")
	}
}

// limit is a ciphertext with known phase.
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

// decrypts reports whether the message is recovered when the phase error is the bound and every
// party floods with flood, negated where negative says so.
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
	// c0 + (ideal + error - phase) replaces the error of the ciphertext.
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
