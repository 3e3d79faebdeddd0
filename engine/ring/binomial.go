package ring

import (
	"fmt"
	"math/big"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Binomial is X^d - c, prepared as a divisor.
type Binomial struct {
	basis   *Basis
	d       int
	c, last []kernel.Factor // c, and -1/(c^m + 1) for m = N/d, modulo the primes
}

// NewBinomial prepares X^d - c. d must divide N, and none of the primes may divide c^(N/d) + 1.
func NewBinomial(b *Basis, d int, c *big.Int) *Binomial {
	if d < 1 || b.n%d != 0 {
		panic(fmt.Sprintf("ring: division by a binomial of degree %d in degree %d", d, b.n))
	}
	z := &Binomial{basis: b, d: d}
	for _, l := range b.limbs {
		r := new(big.Int).Mod(c, new(big.Int).SetUint64(l.Q)).Uint64()
		norm := l.Add(l.Exp(r, uint64(b.n/d)), 1)
		if norm == 0 {
			panic(fmt.Sprintf("ring: a binomial has no inverse modulo %d", l.Q))
		}
		z.c = append(z.c, l.Factor(r))
		z.last = append(z.last, l.Factor(l.Neg(l.Inverse(norm))))
	}
	return z
}

// Divide sets dst to y with (X^d - c)·y = x. dst must not be x. In parts of d coefficients, y_{i-1}
// = x_i + c·y_i for i > 0 and y_{m-1} = -sum_i c^i·x_i/(c^m + 1).
func (z *Binomial) Divide(dst, x Poly) {
	n, d := z.basis.n, z.d
	for j, l := range z.basis.limbs {
		y, x := dst.C[j], x.C[j]
		part := func(v []uint64, i int) []uint64 { return v[i*d : (i+1)*d] }
		end := part(y, n/d-1)
		copy(end, part(x, n/d-1))
		for i := n/d - 2; i >= 0; i-- {
			l.ScaleByVec(end, end, z.c[j])
			l.AddVec(end, end, part(x, i))
		}
		l.ScaleByVec(end, end, z.last[j])
		for i := n/d - 1; i > 0; i-- {
			to := part(y, i-1)
			l.ScaleByVec(to, part(y, i), z.c[j])
			l.AddVec(to, to, part(x, i))
		}
	}
}
