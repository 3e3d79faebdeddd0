package ring

import "math/big"

// ToBig returns the coefficients of x, centred in (-q/2, q/2]. It is for set-up, public values and
// tests.
func (b *Basis) ToBig(x Poly) []*big.Int {
	q := b.Modulus()
	half := new(big.Int).Rsh(q, 1)
	parts := make([]*big.Int, len(b.limbs)) // q/q_i [(q/q_i)^-1 mod q_i]
	for i, l := range b.limbs {
		p := new(big.Int).SetUint64(l.Q)
		rest := new(big.Int).Quo(q, p)
		parts[i] = rest.Mul(rest, new(big.Int).ModInverse(rest, p))
	}
	out := make([]*big.Int, b.n)
	t := new(big.Int)
	for k := range out {
		v := new(big.Int)
		for i := range b.limbs {
			v.Add(v, t.Mul(parts[i], t.SetUint64(x.C[i][k])))
		}
		if v.Mod(v, q); v.Cmp(half) > 0 {
			v.Sub(v, q)
		}
		out[k] = v
	}
	return out
}

// FromBig sets x to coefficients of any size. It is for set-up, public values and tests.
func (b *Basis) FromBig(x Poly, v []*big.Int) {
	t, q := new(big.Int), new(big.Int)
	for i, l := range b.limbs {
		q.SetUint64(l.Q)
		for k := range v {
			x.C[i][k] = t.Mod(v[k], q).Uint64()
		}
	}
}
