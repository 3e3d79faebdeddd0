package gbfvtest

import (
	"math/big"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
)

// Noise returns the largest coefficient of the phase error of ct as an encryption of slots: of c0 + c1·s - (q/P)·mu,
// centred, to within 1. It works after SwitchModulus too.
func (k *Key) Noise(ct *gbfv.Ciphertext, slots field.Vec) *big.Int {
	s := k.scheme
	primes := len(ct.C0.C)
	b := s.Prefix(primes)
	x, ideal := b.NewPoly(), b.NewPoly()
	s.Phase(x, ct, k.Secret, primes)
	coeffs := s.Field.NewVec(s.Slots())
	s.Pack.Pack(coeffs, slots)
	s.ScalePlain(ideal, coeffs, primes)
	b.Sub(x, x, ideal)
	top := new(big.Int)
	for _, c := range b.ToBig(x) {
		if c.CmpAbs(top) > 0 {
			top.Abs(c)
		}
	}
	return top
}
