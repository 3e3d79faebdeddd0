package linear

import (
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// slots implements double packing: modulo T, with T = 1 mod 2l, X^N + 1 is the product of l factors
// X^d - beta, d = N/l, for the odd powers beta of a root w of order 2l. With Y = X^d, the values of
// coefficient r in all slots are the values at the betas of the polynomial in Y that belongs to
// X^r. So packing is a negacyclic transform of l vectors of d coefficients. Slots are in the order
// in which the transform leaves them.
type slots struct {
	mod     kernel.Modulus
	l, d    int
	powers  []kernel.Factor // of w, exponents with their bits reversed
	inverse []kernel.Factor // of 1/w
	last    kernel.Factor   // 1/l
}

// newSlots prepares l slots, a power of two that divides N.
func (s *Scheme) newSlots(l int) *slots {
	mod := *s.plaintext()
	z := &slots{mod: mod, l: l, d: s.N() / l, last: mod.Factor(mod.Inverse(uint64(l)))}
	w := rootOfUnity(&mod, uint64(2*l))
	back := mod.Inverse(w)
	for i := range l {
		e := uint64(bits.Reverse64(uint64(i)) >> (64 - bits.Len(uint(l-1))))
		z.powers = append(z.powers, mod.Factor(mod.Exp(w, e)))
		z.inverse = append(z.inverse, mod.Factor(mod.Exp(back, e)))
	}
	return z
}

// rootOfUnity returns an element of the given order, a power of two that divides T-1: a power of
// the smallest non-square.
func rootOfUnity(m *kernel.Modulus, order uint64) uint64 {
	q := new(big.Int).SetUint64(m.Q)
	g := int64(2)
	for big.Jacobi(big.NewInt(g), q) != -1 {
		g++
	}
	return m.Exp(uint64(g), (m.Q-1)/order)
}

// unpack replaces coefficients of N/width positions, width for each power of Y, by those of the
// slots, width for each slot.
func (z *slots) unpack(v []uint64, width int) {
	scratch := make([]uint64, len(v)/2+1)
	for m, t := 1, z.l*width/2; m < z.l; m, t = 2*m, t/2 {
		for i := range m {
			low, high := v[2*i*t:(2*i+1)*t], v[(2*i+1)*t:(2*i+2)*t]
			z.mod.ScaleByVec(scratch[:t], high, z.powers[m+i])
			z.mod.SubVec(high, low, scratch[:t])
			z.mod.AddVec(low, low, scratch[:t])
		}
	}
	clear(scratch)
}

// pack is the inverse of unpack.
func (z *slots) pack(v []uint64, width int) {
	scratch := make([]uint64, len(v)/2+1)
	for m, t := z.l/2, width; m >= 1; m, t = m/2, 2*t {
		for i := range m {
			low, high := v[2*i*t:(2*i+1)*t], v[(2*i+1)*t:(2*i+2)*t]
			z.mod.SubVec(scratch[:t], low, high)
			z.mod.AddVec(low, low, high)
			z.mod.ScaleByVec(high, scratch[:t], z.inverse[m+i])
		}
	}
	z.mod.ScaleByVec(v, v, z.last)
	clear(scratch)
}
