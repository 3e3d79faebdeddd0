package gbfv

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// scaler computes round(Q/P·e) for an integer Q and digits e, |e| <= b/2+1, of a plaintext. From
// P^-1 = -(1/p)·sum_t b^(M-1-t)·X^(tD), coefficient (i, j) of Q/P·e is
//
//	sum over t < M of g_t·(-1)^[t > i]·e_{(i-t) mod M, j},  g_t = -Q·b^(M-1-t)/p, about -Q/b^(t+1).
//
// The sum is evaluated in fixed point, in two's complement, with so many fractional bits and terms that
// its error is below 2^-64. Its operations do not depend on the digits.
type scaler struct {
	m          int
	words      int // of a sum: frac fractional ones and the integer part
	frac       int
	digitWords int
	terms      int         // of the sum over t; further ones are negligible
	g          [2][]uint64 // g_t and -g_t, words each
	offset     []uint64    // 2^(bitlen(b)-1), added to digits so that they are not negative
	base       []uint64    // per i: 1/2 minus what the offset adds to the sum
}

func newScaler(spec params.FieldSpec, scale *big.Int) *scaler {
	bitlen := spec.B.BitLen()
	offset := new(big.Int).Lsh(big.NewInt(1), uint(bitlen-1))
	top := new(big.Int).Add(offset, new(big.Int).Rsh(spec.B, 1)) // largest digit plus offset
	z := &scaler{
		m: spec.M,
		// each of at most M terms is wrong by less than 2^bitlen units of the last place
		frac:       (bitlen + bits.Len(uint(spec.M)) + 66 + 63) / 64,
		digitWords: (top.Add(top, big.NewInt(1)).BitLen() + 63) / 64,
	}
	z.offset = wordsOf(offset, z.digitWords)
	z.words = z.frac + (scale.BitLen()+2+63)/64
	// The terms from t on sum to less than Q/b^t.
	bound := new(big.Int).Lsh(scale, 66)
	for power := big.NewInt(1); z.terms < z.m && power.Cmp(bound) < 0; z.terms++ {
		power.Mul(power, spec.B)
	}

	modulus := new(big.Int).Lsh(big.NewInt(1), uint(64*z.words))
	wide := new(big.Int).Lsh(scale, uint(64*z.frac))
	g := make([]*big.Int, z.terms)
	for t := range g {
		power := new(big.Int).Exp(spec.B, big.NewInt(int64(z.m-1-t)), nil)
		g[t] = roundQuotient(power.Mul(power, wide), spec.P())
		z.g[1] = append(z.g[1], wordsOf(g[t], z.words)...)
		z.g[0] = append(z.g[0], wordsOf(g[t].Sub(modulus, g[t]), z.words)...)
	}
	half := new(big.Int).Lsh(big.NewInt(1), uint(64*z.frac-1))
	for i := range z.m {
		sum := new(big.Int).Set(half)
		for t := range g {
			v := new(big.Int).Mul(g[t], offset)
			if t <= i {
				v.Neg(v)
			}
			sum.Add(sum, v)
		}
		z.base = append(z.base, wordsOf(sum.Mod(sum, modulus), z.words)...)
	}
	return z
}

// outWords is the width of a result.
func (z *scaler) outWords() int { return z.words - z.frac }

// scale sets dst to round(Q/P·e). dst has outWords words; d is the number of columns, N/M.
func (z *scaler) scale(dst, digits intpoly.Poly, d int) {
	column := make([]uint64, z.m*z.digitWords)
	acc := make([]uint64, z.words)
	for j := range d {
		for i := range z.m {
			z.loadDigit(column[i*z.digitWords:(i+1)*z.digitWords], digits.Coeff(i*d+j))
		}
		for i := range z.m {
			copy(acc, z.base[i*z.words:])
			for t := range z.terms {
				at, sign := i-t, 0
				if at < 0 {
					at, sign = at+z.m, 1
				}
				addProduct(acc, z.g[sign][t*z.words:(t+1)*z.words], column[at*z.digitWords:(at+1)*z.digitWords])
			}
			copy(dst.Coeff(i*d+j), acc[z.frac:])
		}
	}
	clear(column)
	clear(acc)
}

// loadDigit sets x = e + 2^(bitlen(b)-1), which is not negative.
func (z *scaler) loadDigit(x, e []uint64) {
	sign := -(e[len(e)-1] >> 63)
	var c uint64
	for k := range x {
		w := sign
		if k < len(e) {
			w = e[k]
		}
		x[k], c = bits.Add64(w, z.offset[k], c)
	}
}

// addProduct adds a·b to acc modulo 2^(64 len(acc)). a is as long as acc.
func addProduct(acc, a, b []uint64) {
	for s, w := range b {
		var carry uint64
		for k := s; k < len(acc); k++ {
			hi, lo := bits.Mul64(a[k-s], w)
			var c uint64
			lo, c = bits.Add64(lo, carry, 0)
			hi += c
			acc[k], c = bits.Add64(acc[k], lo, 0)
			carry = hi + c
		}
	}
}

// wordsOf returns 0 <= v < 2^(64n) as n little-endian words.
func wordsOf(v *big.Int, n int) []uint64 {
	w := make([]uint64, n)
	buf := v.FillBytes(make([]byte, 8*n))
	for i := range w {
		w[i] = binary.BigEndian.Uint64(buf[8*(n-1-i):])
	}
	return w
}

// ScalePlain sets dst to round(q'/P·mu) mod q' for the plaintext mu of the coefficients c_j in Z_p, where q'
// is the product of the first k primes of Q and dst is on Prefix(k). Each coefficient is within
// 1/2 + 2^-64 of q'/P·mu modulo q'.
func (s *Scheme) ScalePlain(dst ring.Poly, coeffs field.Vec, k int) {
	p := s.prefix(k)
	digits := intpoly.New(s.N(), s.Pack.DigitWords())
	scaled := intpoly.New(s.N(), p.scale.outWords())
	s.Pack.Digits(digits, coeffs)
	p.scale.scale(scaled, digits, s.Slots())
	p.basis.FromInt(dst, scaled)
	digits.Wipe()
	scaled.Wipe()
}
