package kernel

import (
	"fmt"
	"math/bits"
)

// NTT transforms elements of Z_q[X]/(X^N+1): slot k of a transform is the value at psi^(2 rev(k) +
// 1), where rev reverses log N bits. It uses Cooley-Tukey and Gentleman-Sande butterflies with
// Shoup's products, on lazily reduced values (Harvey, Faster arithmetic for number-theoretic
// transforms, 2014).
type NTT struct {
	Modulus
	n                int
	forward, inverse roots
	last             [4]uint64 // 1/N and psi^-rev(1)/N, each with its scaled quotient
}

// roots are factors: c[k] = r^rev(k) and scaled[k] = floor(2^64 c[k]/q), for r = psi or its
// inverse.
type roots struct{ c, scaled []uint64 }

// NewNTT prepares transforms of degree n, a power of two from 16 to 2^20, for psi with psi^n = -1
// mod q.
func NewNTT(m Modulus, n int, psi uint64) (*NTT, error) {
	if n < 16 || n > 1<<20 || n&(n-1) != 0 {
		return nil, fmt.Errorf("kernel: degree %d is not supported: a transform needs a power of two from 16 to 2^20", n)
	}
	if psi >= m.Q || m.Exp(psi, uint64(n)) != m.Q-1 {
		return nil, fmt.Errorf("kernel: %d is not a root of order %d modulo %d", psi, 2*n, m.Q)
	}
	t := &NTT{Modulus: m, n: n}
	t.forward = t.powers(psi)
	t.inverse = t.powers(m.Exp(psi, uint64(2*n-1)))
	scale := m.Exp((m.Q+1)/2, uint64(bits.TrailingZeros(uint(n))))
	for i, c := range []uint64{scale, m.Mul(scale, t.inverse.c[1])} {
		f := m.Factor(c)
		t.last[2*i], t.last[2*i+1] = f.c, f.scaled
	}
	return t, nil
}

func (t *NTT) powers(r uint64) roots {
	out := roots{make([]uint64, t.n), make([]uint64, t.n)}
	x, shift := uint64(1), bits.LeadingZeros64(uint64(t.n))+1
	for i := range uint64(t.n) {
		f := t.Factor(x)
		k := bits.Reverse64(i) >> shift
		out.c[k], out.scaled[k] = f.c, f.scaled
		x = t.Mul(x, r)
	}
	return out
}

// N returns the degree.
func (t *NTT) N() int { return t.n }

// Forward sets dst to the transform of src, N residues each. dst may be src.
func (t *NTT) Forward(dst, src []uint64) {
	dst, src = dst[:t.n], src[:t.n]
	if !t.vectorForward(dst, src) {
		t.plainForward(dst, src)
	}
}

// Inverse sets dst to the polynomial whose transform is src. dst may be src.
func (t *NTT) Inverse(dst, src []uint64) {
	dst, src = dst[:t.n], src[:t.n]
	if !t.vectorInverse(dst, src) {
		t.plainInverse(dst, src)
	}
}

// lazy returns a c mod q or that plus q, for any word a.
func lazy(a, c, scaled, q uint64) uint64 {
	quotient, _ := bits.Mul64(a, scaled)
	return a*c - quotient*q
}

// plainForward computes two levels at a time. Values are below 4q between levels.
func (t *NTT) plainForward(dst, src []uint64) {
	copy(dst, src)
	m, q2 := 1, 2*t.Q
	if bits.TrailingZeros(uint(t.n))&1 == 1 {
		c, scaled := t.forward.c[1], t.forward.scaled[1]
		half := t.n / 2
		x, y := dst[:half], dst[half:][:half]
		for j, a := range x {
			b := lazy(y[j], c, scaled, t.Q)
			x[j], y[j] = a+b, a+q2-b
		}
		m = 2
	}
	for ; 4*m < t.n; m *= 4 {
		quarter := t.n / m / 4
		for i := range m {
			t.forwardBlock(dst[4*i*quarter:4*(i+1)*quarter], m+i)
		}
	}
	t.forwardFours(dst)
}

// forwardBlock computes two levels of a block, with root k and its successors.
func (t *NTT) forwardBlock(v []uint64, k int) {
	quarter := len(v) / 4
	w, s := &t.forward.c, &t.forward.scaled
	c1, s1, c2, s2, c3, s3 := (*w)[k], (*s)[k], (*w)[2*k], (*s)[2*k], (*w)[2*k+1], (*s)[2*k+1]
	v0, v1 := v[:quarter], v[quarter:][:quarter]
	v2, v3 := v[2*quarter:][:quarter], v[3*quarter:][:quarter]
	q, q2 := t.Q, 2*t.Q
	for j := range v0 {
		x0, x1 := v0[j], v1[j]
		x0, x1 = min(x0, x0-q2), min(x1, x1-q2)
		x2, x3 := lazy(v2[j], c1, s1, q), lazy(v3[j], c1, s1, q)
		x0, x2 = x0+x2, x0+q2-x2
		x1, x3 = x1+x3, x1+q2-x3
		x0, x2 = min(x0, x0-q2), min(x2, x2-q2)
		x1, x3 = lazy(x1, c2, s2, q), lazy(x3, c3, s3, q)
		v0[j], v1[j] = x0+x1, x0+q2-x1
		v2[j], v3[j] = x2+x3, x2+q2-x3
	}
}

// forwardFours computes the last two levels, on blocks of four words. The result is canonical.
func (t *NTT) forwardFours(v []uint64) {
	q, q2 := t.Q, 2*t.Q
	m := len(v) / 4
	c1, s1 := t.forward.c[m:2*m], t.forward.scaled[m:2*m]
	for i, c := range c1 {
		x := (*[4]uint64)(v[4*i:])
		c2, s2 := (*[2]uint64)(t.forward.c[2*m+2*i:]), (*[2]uint64)(t.forward.scaled[2*m+2*i:])
		x0, x1 := min(x[0], x[0]-q2), min(x[1], x[1]-q2)
		x2, x3 := lazy(x[2], c, s1[i], q), lazy(x[3], c, s1[i], q)
		x0, x2 = x0+x2, x0+q2-x2
		x1, x3 = x1+x3, x1+q2-x3
		x0, x2 = min(x0, x0-q2), min(x2, x2-q2)
		x1, x3 = lazy(x1, c2[0], s2[0], q), lazy(x3, c2[1], s2[1], q)
		for j, y := range [4]uint64{x0 + x1, x0 + q2 - x1, x2 + x3, x2 + q2 - x3} {
			y = min(y, y-q2)
			x[j] = min(y, y-q)
		}
	}
}

// inverseFours inverts forwardFours up to a factor 4.
func (t *NTT) inverseFours(v []uint64) {
	q, q2 := t.Q, 2*t.Q
	m := len(v) / 4
	c1, s1 := t.inverse.c[m:2*m], t.inverse.scaled[m:2*m]
	for i, c := range c1 {
		x := (*[4]uint64)(v[4*i:])
		c2, s2 := (*[2]uint64)(t.inverse.c[2*m+2*i:]), (*[2]uint64)(t.inverse.scaled[2*m+2*i:])
		x0, x1 := x[0]+x[1], lazy(x[0]+q2-x[1], c2[0], s2[0], q)
		x2, x3 := x[2]+x[3], lazy(x[2]+q2-x[3], c2[1], s2[1], q)
		x0, x2 = min(x0, x0-q2), min(x2, x2-q2)
		y0, y1 := x0+x2, x1+x3
		x[0], x[1] = min(y0, y0-q2), min(y1, y1-q2)
		x[2], x[3] = lazy(x0+q2-x2, c, s1[i], q), lazy(x1+q2-x3, c, s1[i], q)
	}
}

// plainInverse computes two levels at a time, except the last ones, which are computed singly. The
// very last level includes the division by N. Values are below 2q between levels.
func (t *NTT) plainInverse(dst, src []uint64) {
	copy(dst, src)
	q, q2 := t.Q, 2*t.Q
	t.inverseFours(dst)
	m := t.n / 4
	for m > 4 {
		m /= 4
		quarter := t.n / m / 4
		for i := range m {
			t.inverseBlock(dst[4*i*quarter:4*(i+1)*quarter], m+i)
		}
	}
	if m == 4 {
		for i := range 2 {
			c, s := t.inverse.c[2+i], t.inverse.scaled[2+i]
			half := t.n / 4
			x, y := dst[2*i*half:][:half], dst[(2*i+1)*half:][:half]
			for j, a := range x {
				b := y[j]
				x[j], y[j] = min(a+b, a+b-q2), lazy(a+q2-b, c, s, q)
			}
		}
	}
	f, g := Factor{t.last[0], t.last[1]}, Factor{t.last[2], t.last[3]}
	half := t.n / 2
	x, y := dst[:half], dst[half:][:half]
	for j, a := range x {
		b := y[j]
		x[j], y[j] = t.Scale(a+b, f), t.Scale(a+q2-b, g)
	}
}

// inverseBlock inverts forwardBlock up to a factor 4.
func (t *NTT) inverseBlock(v []uint64, k int) {
	quarter := len(v) / 4
	w, s := &t.inverse.c, &t.inverse.scaled
	c1, s1, c2, s2, c3, s3 := (*w)[k], (*s)[k], (*w)[2*k], (*s)[2*k], (*w)[2*k+1], (*s)[2*k+1]
	v0, v1 := v[:quarter], v[quarter:][:quarter]
	v2, v3 := v[2*quarter:][:quarter], v[3*quarter:][:quarter]
	q, q2 := t.Q, 2*t.Q
	for j := range v0 {
		x0, x1, x2, x3 := v0[j], v1[j], v2[j], v3[j]
		x0, x1 = x0+x1, lazy(x0+q2-x1, c2, s2, q)
		x2, x3 = x2+x3, lazy(x2+q2-x3, c3, s3, q)
		x0, x2 = min(x0, x0-q2), min(x2, x2-q2)
		y0, y1 := x0+x2, x1+x3
		v0[j], v1[j] = min(y0, y0-q2), min(y1, y1-q2)
		v2[j], v3[j] = lazy(x0+q2-x2, c1, s1, q), lazy(x1+q2-x3, c1, s1, q)
	}
}
