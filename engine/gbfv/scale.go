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
//	sum over t < M of -g_t·(-1)^[t > i]·e_{(i-t) mod M, j},  g_t = Q·b^(M-1-t)/p, about Q/b^(t+1).
//
// It is the sum of g_t·(x_{i-t} - 2^(bitlen(b)-1)) for integers x_v = 2^(bitlen(b)-1) -+ e_{v mod M, j} that are not
// negative, with a minus for v >= 0 and a plus for v < 0. The sum is evaluated in fixed point, in two's complement,
// with so many fractional bits and terms that its error is below 2^-64. Its operations do not depend on the digits.
type scaler struct {
	m          int
	words      int // of a sum: frac fractional ones and the integer part
	frac       int
	digitWords int
	g          [][]uint64 // terms of the sum over t, without words of zeros; further terms are negligible
	offset     []uint64   // 2^(bitlen(b)-1)
	base       []uint64   // 1/2 less what the offset adds to the sum
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
	bound, terms := new(big.Int).Lsh(scale, 66), 0
	for power := big.NewInt(1); terms < z.m && power.Cmp(bound) < 0; terms++ {
		power.Mul(power, spec.B)
	}

	wide := new(big.Int).Lsh(scale, uint(64*z.frac))
	base := new(big.Int).Lsh(big.NewInt(1), uint(64*z.frac-1))
	for t := range terms {
		power := new(big.Int).Exp(spec.B, big.NewInt(int64(z.m-1-t)), nil)
		g := roundQuotient(power.Mul(power, wide), spec.P())
		z.g = append(z.g, wordsOf(g, (g.BitLen()+63)/64))
		base.Sub(base, g.Mul(g, offset))
	}
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(64*z.words))
	z.base = wordsOf(base.Mod(base, modulus), z.words)
	return z
}

// outWords is the width of a result.
func (z *scaler) outWords() int { return z.words - z.frac }

// scale sets dst to round(Q/P·e). dst has outWords words; d is the number of columns, N/M.
func (z *scaler) scale(dst, digits intpoly.Poly, d int) {
	w, first := z.digitWords, len(z.g)-1
	x := make([]uint64, (first+z.m)*w) // from v = -first on
	acc := make([]uint64, z.words)
	for j := range d {
		for v := -first; v < z.m; v++ {
			z.loadDigit(x[(first+v)*w:(first+v+1)*w], digits.Coeff((v+z.m)%z.m*d+j), v >= 0)
		}
		for i := range z.m {
			copy(acc, z.base)
			for t, g := range z.g {
				at := (first + i - t) * w
				addProduct(acc, g, x[at:at+w])
			}
			copy(dst.Coeff(i*d+j), acc[z.frac:])
		}
	}
	clear(x)
	clear(acc)
}

// loadDigit sets x = 2^(bitlen(b)-1) + e, or - e; neither is negative.
func (z *scaler) loadDigit(x, e []uint64, minus bool) {
	sign := -(e[len(e)-1] >> 63)
	var c uint64
	for k := range x {
		w := sign
		if k < len(e) {
			w = e[k]
		}
		if minus {
			x[k], c = bits.Sub64(z.offset[k], w, c)
		} else {
			x[k], c = bits.Add64(z.offset[k], w, c)
		}
	}
}

// addProduct adds a·b to acc modulo 2^(64 len(acc)).
func addProduct(acc, a, b []uint64) {
	for s, w := range b {
		sum := acc[s:]
		x := a[:min(len(a), len(sum))]
		var carry, c uint64
		for k, v := range x {
			hi, lo := bits.Mul64(v, w)
			lo, c = bits.Add64(lo, sum[k], 0)
			hi, _ = bits.Add64(hi, 0, c)
			sum[k], c = bits.Add64(lo, carry, 0)
			carry, _ = bits.Add64(hi, 0, c)
		}
		for k := len(x); k < len(sum); k++ {
			sum[k], carry = bits.Add64(sum[k], carry, 0)
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
