// Package intpoly implements polynomials of Z[X]/(X^N+1) whose coefficients are signed integers of
// a fixed, small number of words: witnesses, masks and responses of proofs, and flooding noise.
// Apart from functions documented as being for public values, nothing branches on or indexes by a
// coefficient.
package intpoly

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
)

// Poly is a polynomial with N signed coefficients. Coefficient k is the two's-complement
// little-endian integer C[k*W : (k+1)*W]. Operations wrap modulo 2^(64 W); callers choose W by
// bounds.
type Poly struct {
	W int
	C []uint64
}

// New returns the zero polynomial with n coefficients of w words.
func New(n, w int) Poly { return Poly{W: w, C: make([]uint64, n*w)} }

// FromInt64 sets dst to v, one value per coefficient, sign-extended.
func FromInt64(dst Poly, v []int64) {
	if len(v) != dst.N() {
		panic(fmt.Sprintf("intpoly: %d values for %d coefficients", len(v), dst.N()))
	}
	if dst.W == 1 {
		for k, x := range v {
			dst.C[k] = uint64(x)
		}
		return
	}
	for k, x := range v {
		c := dst.Coeff(k)
		c[0] = uint64(x)
		for i := 1; i < dst.W; i++ {
			c[i] = uint64(x >> 63)
		}
	}
}

// N returns the number of coefficients.
func (p Poly) N() int { return len(p.C) / p.W }

// Coeff returns the words of coefficient k, aliased.
func (p Poly) Coeff(k int) []uint64 { return p.C[k*p.W : (k+1)*p.W] }

// Clone returns a copy.
func (p Poly) Clone() Poly { return Poly{W: p.W, C: slices.Clone(p.C)} }

// Wipe zeroes p.
func (p Poly) Wipe() { clear(p.C) }

// Format prints the shape of p and never its coefficients, which may be secret, for any verb.
func (p Poly) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "[%d words, %d to a coefficient]", len(p.C), p.W)
}

// MarshalText returns the output of Format.
func (p Poly) MarshalText() ([]byte, error) { return fmt.Append(nil, p), nil }

// Add sets dst = a + b, all of one width. dst may be an operand.
func Add(dst, a, b Poly) {
	same(dst, a, b)
	for k := 0; k < len(dst.C); k += dst.W {
		var c uint64
		for i := k; i < k+dst.W; i++ {
			dst.C[i], c = bits.Add64(a.C[i], b.C[i], c)
		}
	}
}

// Sub sets dst = a - b, all of one width. dst may be an operand.
func Sub(dst, a, b Poly) {
	same(dst, a, b)
	for k := 0; k < len(dst.C); k += dst.W {
		var c uint64
		for i := k; i < k+dst.W; i++ {
			dst.C[i], c = bits.Sub64(a.C[i], b.C[i], c)
		}
	}
}

// Neg sets dst = -a, of one width. dst may be a.
func Neg(dst, a Poly) {
	same(dst, a)
	for k := 0; k < len(dst.C); k += dst.W {
		var c uint64
		for i := k; i < k+dst.W; i++ {
			dst.C[i], c = bits.Sub64(0, a.C[i], c)
		}
	}
}

func same(ps ...Poly) {
	for _, p := range ps {
		if p.W != ps[0].W || len(p.C) != len(ps[0].C) {
			panic(fmt.Sprintf("intpoly: polynomials differ in shape: %d coefficients of %d words and %d of %d", p.N(), p.W, ps[0].N(), ps[0].W))
		}
	}
}

// AddMonomial sets dst += X^e a for e in [0, 2N). dst is at least as wide as a, which is
// sign-extended. They share no storage.
func AddMonomial(dst, a Poly, e int) {
	n := dst.N()
	if a.N() != n || a.W > dst.W || e < 0 || e >= 2*n {
		panic(fmt.Sprintf("intpoly: X^%d times %d coefficients of %d words added to %d of %d", e, a.N(), a.W, n, dst.W))
	}
	sign := uint64(0)
	if e >= n {
		e, sign = e-n, ^sign
	}
	addRun(dst.C[e*dst.W:], a.C[:(n-e)*a.W], dst.W, a.W, sign)
	addRun(dst.C[:e*dst.W], a.C[(n-e)*a.W:], dst.W, a.W, ^sign)
}

// AddAutomorphism sets dst += a(X^g) for odd g. dst is as wide as a and shares no storage with it.
func AddAutomorphism(dst, a Poly, g int) {
	same(dst, a)
	n := dst.N()
	mask := 2*n - 1
	for k, at := 0, 0; k < n; k, at = k+1, (at+g)&mask {
		to, sign := at, uint64(0)
		if at >= n {
			to, sign = at-n, ^sign
		}
		if dst.W == 1 {
			dst.C[to] += (a.C[k] ^ sign) - sign
			continue
		}
		addSigned(dst.Coeff(to), a.Coeff(k), sign)
	}
}

// addRun adds a run of coefficients of narrow words to coefficients of wide words, or subtracts
// them if sign is all ones. There are separate loops for equal and usual widths.
func addRun(dst, a []uint64, wide, narrow int, sign uint64) {
	switch {
	case wide == 1 && narrow == 1:
		dst = dst[:len(a)]
		for i, x := range a {
			dst[i] += (x ^ sign) - sign
		}
	case wide == 2 && narrow == 2:
		dst = dst[:len(a)]
		for i := 0; i <= len(a)-2; i += 2 {
			d, x := (*[2]uint64)(dst[i:]), (*[2]uint64)(a[i:])
			var c uint64
			d[0], c = bits.Add64(d[0], x[0]^sign, sign&1)
			d[1], _ = bits.Add64(d[1], x[1]^sign, c)
		}
	case wide == 3 && narrow == 3:
		dst = dst[:len(a)]
		for i := 0; i <= len(a)-3; i += 3 {
			d, x := (*[3]uint64)(dst[i:]), (*[3]uint64)(a[i:])
			var c uint64
			d[0], c = bits.Add64(d[0], x[0]^sign, sign&1)
			d[1], c = bits.Add64(d[1], x[1]^sign, c)
			d[2], _ = bits.Add64(d[2], x[2]^sign, c)
		}
	case wide == 2 && narrow == 1:
		dst = dst[:2*len(a)]
		for i, x := range a {
			d := (*[2]uint64)(dst[2*i:])
			var c uint64
			d[0], c = bits.Add64(d[0], x^sign, sign&1)
			d[1], _ = bits.Add64(d[1], uint64(int64(x)>>63)^sign, c)
		}
	case wide == 3 && narrow == 2:
		for ; len(a) > 1; dst, a = dst[3:], a[2:] {
			d, x := (*[3]uint64)(dst), (*[2]uint64)(a)
			var c uint64
			d[0], c = bits.Add64(d[0], x[0]^sign, sign&1)
			d[1], c = bits.Add64(d[1], x[1]^sign, c)
			d[2], _ = bits.Add64(d[2], uint64(int64(x[1])>>63)^sign, c)
		}
	default:
		for ; len(a) > 0; dst, a = dst[wide:], a[narrow:] {
			addSigned(dst[:wide], a[:narrow], sign)
		}
	}
}

// addSigned adds a, or its negation if sign is all ones, to dst.
func addSigned(dst, a []uint64, sign uint64) {
	extension := uint64(int64(a[len(a)-1])>>63) ^ sign
	c := sign & 1
	for i := range dst {
		w := extension
		if i < len(a) {
			w = a[i] ^ sign
		}
		dst[i], c = bits.Add64(dst[i], w, c)
	}
}

// Within reports whether every coefficient c has |c| < bound. It is for public values.
func (p Poly) Within(bound *big.Int) bool {
	if bound.Sign() <= 0 {
		return false
	}
	if new(big.Int).Sub(bound, big.NewInt(1)).BitLen() > 64*p.W-1 {
		return true // bound > 2^(64W-1)
	}
	limit := make([]uint64, p.W)
	fill(limit, bound)
	magnitude := make([]uint64, p.W)
	for k := range p.N() {
		c := p.Coeff(k)
		sign := uint64(int64(c[p.W-1]) >> 63)
		clear(magnitude)
		addSigned(magnitude, c, sign) // -2^(64W-1) gives 2^(64W-1), not below any limit
		if !below(magnitude, limit) {
			return false
		}
	}
	return true
}

func below(a, b []uint64) bool {
	var c uint64
	for i := range a {
		_, c = bits.Sub64(a[i], b[i], c)
	}
	return c == 1
}

// SetBig sets coefficient k. It is for public values.
func (p Poly) SetBig(k int, v *big.Int) {
	m := v
	if v.Sign() < 0 {
		m = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(64*p.W)))
	}
	fill(p.Coeff(k), m)
}

// Big returns coefficient k. It is for public values.
func (p Poly) Big(k int) *big.Int {
	c := p.Coeff(k)
	v := new(big.Int)
	for i := p.W - 1; i >= 0; i-- {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(c[i]))
	}
	if c[p.W-1]>>63 == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(64*p.W)))
	}
	return v
}

// fill writes v >= 0 modulo 2^(64 len(dst)).
func fill(dst []uint64, v *big.Int) {
	t := new(big.Int).Set(v)
	mask := new(big.Int).SetUint64(^uint64(0))
	for i := range dst {
		dst[i] = new(big.Int).And(t, mask).Uint64()
		t.Rsh(t, 64)
	}
}
