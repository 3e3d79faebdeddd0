package field

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// A random plaintext of given coefficients c is mu = P·x for a Gaussian x on the coset P^-1·c +
// Z^N; mu then has covariance s^2·P·P^T and reduces to c (RandPack of MatriGear, section 3;
// sampling x instead of mu is exact and keeps the sampler spherical). With the digits e of c and x
// = z - t, where t = -P^-1·e, the integers z are independent, z_k ~ D_{Z,s,t_k}, and mu = e + P·z.
// From P·t = -e,
//
//	t_i = (e_i + t_{i-1}) / b,  t_{-1} = -t_{M-1},
//
// for each of the D columns e_{iD+j}, so that few digits determine t_i to 128 bits, and |t_i| < 1.
//
// A sampler takes centres in [0,1): it gets the fractional part of t_k, and floor(t_k), which is 0
// or -1 for balanced digits, is added to the integer that it returns. The sum is x_k + t_k.

// fixed is a signed fixed-point number in two's complement: words 0 and 1 hold 128 fractional bits,
// word 2 the integer part.
type fixed [3]uint64

// cosetPlan describes how t is computed: T steps, b^T >= 2^125, before the first index that counts.
type cosetPlan struct {
	lead int     // T
	byB  divisor // b
	b2   [3]uint64
}

func newCosetPlan(f *Field) cosetPlan {
	pl := cosetPlan{byB: newDivisor(f.b)}
	for power := big.NewInt(1); power.BitLen() <= 125; pl.lead++ {
		power.Mul(power, f.b)
	}
	b1, b0 := twoWords(f.b)
	pl.b2 = [3]uint64{b0 << 1, b1<<1 | b0>>63, b1 >> 63}
	return pl
}

// step returns floor((e+t)/b) at 128 fractional bits, for a signed e, |e| <= b, and |t| < 2 (which
// holds for the result if b >= 4). It divides e+t+2b >= 0 and subtracts 2.
func (pl *cosetPlan) step(t fixed, e []uint64, negate uint64) fixed {
	// x = ±e as three words, plus 2b, plus t
	ext := bitMask(e[len(e)-1]>>63) ^ negate
	x := [5]uint64{2: e[0] ^ negate, 3: ext, 4: ext}
	if len(e) > 1 {
		x[3] = e[1] ^ negate
	}
	var c uint64
	x[2], c = bits.Add64(x[2], pl.b2[0], negate&1)
	x[3], c = bits.Add64(x[3], pl.b2[1], c)
	x[4], _ = bits.Add64(x[4], pl.b2[2], c)
	sign := bitMask(t[2] >> 63)
	x[0], x[1] = t[0], t[1]
	x[2], c = bits.Add64(x[2], t[2], 0)
	x[3], c = bits.Add64(x[3], sign, c)
	x[4], _ = bits.Add64(x[4], sign, c)
	if d := &pl.byB; d.words == 1 && d.shift == 0 { // x < 4b: its upper word is 0 and its next word is below b
		var r uint64
		x[2], r = d.step1(x[3], x[2])
		x[1], r = d.step1(r, x[1])
		x[0], _ = d.step1(r, x[0])
	} else {
		d.divide(x[:])
	}
	return fixed{x[0], x[1], x[2] - 2}
}

// CosetCentres writes, for each coefficient k of digits, the integer part of the centre t_k to
// floors[k] and its fractional part as two words: centres[2k] the high and centres[2k+1] the low 64
// of 128 bits, in [0,1). The error of the sum is below 2^-120. digits are those of Digits, or any
// integers of magnitude at most b, b >= 4.
func (p *Packing) CosetCentres(centres []uint64, floors []int64, digits intpoly.Poly) {
	p.wants(digits, p.digits.outWords)
	if len(centres) != 2*p.n || len(floors) != p.n {
		panic(fmt.Sprintf("field: storage for %d words and %d integers does not fit %d centres", len(centres), len(floors), p.n))
	}
	for j := 0; j < p.d; j += abreast {
		p.columns(centres, floors, digits, j, min(abreast, p.d-j))
	}
}

// columns is CosetCentres for n <= abreast columns from j on. It interleaves them because every
// step of a column waits for the previous one. The error is below 2^-123: starting with 0 instead
// of |t| <= 1 contributes b^-T, and each rounding down at most 2^-128 at the end.
func (p *Packing) columns(centres []uint64, floors []int64, digits intpoly.Poly, j, n int) {
	var t [abreast]fixed
	m := p.f.m
	for i := -p.coset.lead; i < m; i++ {
		at := i & (2*m - 1) // e_{i+M} = -e_i
		negate := bitMask(uint64(at / m))
		at = at%m*p.d + j
		for c := range n {
			t[c] = p.coset.step(t[c], digits.Coeff(at+c), negate)
		}
		if i < 0 {
			continue
		}
		for c, v := range t[:n] {
			k := at + c
			centres[2*k], centres[2*k+1], floors[k] = v[1], v[0], int64(v[2])
		}
	}
}

// AssembleRandPack sets dst = e + P·x: dst_{iD+j} = e_{iD+j} + x_{(i-1)D+j} - b·x_{iD+j}, with
// x_{-D+j} = -x_{(M-1)D+j}. e are the digits passed to CosetCentres, and x the sampled integers
// plus the integer parts of the centres. The result reduces to the same plaintext as the digits,
// and |dst| <= |e| + (b+1) max|x|, which dst's words must hold. dst must not alias digits. In
// columns where digits are zero, centres and integer parts are zero; if x is left zero there, a
// plaintext of the subring Z[X^D] stays in it.
func (p *Packing) AssembleRandPack(dst, digits intpoly.Poly, x []int64) {
	p.wants(digits, p.digits.outWords)
	p.wants(dst, 1)
	if len(x) != p.n {
		panic(fmt.Sprintf("field: %d integers do not match ring degree %d", len(x), p.n))
	}
	for k, v := range x {
		var prev uint64
		if k >= p.d {
			prev = uint64(x[k-p.d])
		} else {
			prev = -uint64(x[k-p.d+p.n])
		}
		out := dst.Coeff(k)
		signExtend(out, digits.Coeff(k))
		addSmall(out, prev)
		p.subtractTimesB(out, uint64(v))
	}
}

// signExtend copies the two's-complement src to dst, truncating or sign-extending it.
func signExtend(dst, src []uint64) {
	sign := bitMask(src[len(src)-1] >> 63)
	for k := copy(dst, src); k < len(dst); k++ {
		dst[k] = sign
	}
}

// subtractTimesB subtracts b·z from x, mod 2^(64 len(x)), for a signed word z.
func (p *Packing) subtractTimesB(x []uint64, z uint64) {
	b := [2]uint64{p.digits.b0, p.digits.b1}
	sign := bitMask(z >> 63)
	// b·z = b·(z mod 2^64) - 2^64·b·[z < 0]
	var carry, borrow, c uint64
	for k := range x {
		var w, s uint64
		if k < 2 {
			carry, w = mulAddWord(b[k], z, carry, 0)
		} else {
			w, carry = carry, 0
		}
		if k == 1 || k == 2 {
			s = b[k-1] & sign
		}
		x[k], borrow = bits.Sub64(x[k], w, borrow)
		x[k], c = bits.Add64(x[k], s, c)
	}
}
