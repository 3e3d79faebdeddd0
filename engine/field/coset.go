package field

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// A random plaintext of given coefficients c is mu = P·x for a Gaussian x on the coset
// P^-1·c + Z^N; mu then has covariance s^2·P·P^T and reduces to c (RandPack of MatriGear, section 3;
// sampling x instead of mu is exact and keeps the sampler spherical). With the digits e of c and
// x = z - t, where t = -P^-1·e, the integers z are independent, z_k ~ D_{Z,s,t_k}, and
// mu = e + P·z. From P·t = -e,
//
//	t_i = (e_i + t_{i-1}) / b,  t_{-1} = -t_{M-1},
//
// for each of the D columns e_{iD+j}, so that few digits determine t_i to 128 bits, and |t_i| < 1.
//
// A sampler takes centres in [0,1): it gets the fractional part of t_k, and floor(t_k), which is 0
// or -1 for balanced digits, is added to the integer that it returns.

// fixed is a signed fixed-point number: words 0 and 1 hold 128 fractional bits, word 2 the integer
// part, in two's complement.
type fixed [3]uint64

// cosetPlan is how t is computed: T steps, b^T >= 2^125, before the first index that counts.
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
// holds of the result if b >= 4). It divides e+t+2b >= 0 and subtracts 2.
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
	pl.byB.divide(x[:])
	return fixed{x[0], x[1], x[2] - 2}
}

// column calls visit with t_{iD+j} for i = 0..M-1. The error is below 2^-123: |t| <= 1 instead
// of 0 at the start leaves b^-T, and each rounding down at most 2^-128 at the end.
func (p *Packing) column(digits intpoly.Poly, j int, visit func(i int, t fixed)) {
	var t fixed
	m := p.f.m
	for i := -p.coset.lead; i < m; i++ {
		at := i & (2*m - 1) // e_{i+M} = -e_i
		negate := bitMask(uint64(at / m))
		t = p.coset.step(t, digits.Coeff(at%m*p.d+j), negate)
		if i >= 0 {
			visit(i, t)
		}
	}
}

// CosetCentres writes, for each coefficient k of digits, the fractional part of the centre t_k as
// two words: centres[2k] the high and centres[2k+1] the low 64 of 128 bits, in [0,1), with an error
// below 2^-120. digits are those of Digits, or any integers of magnitude at most b, b >= 4.
// AssembleRandPack takes the integers that are sampled about these centres.
func (p *Packing) CosetCentres(centres []uint64, digits intpoly.Poly) {
	p.wants(digits, p.digits.outWords)
	if len(centres) != 2*p.n {
		panic(fmt.Sprintf("field: %d words for %d centres", len(centres), p.n))
	}
	for j := range p.d {
		p.column(digits, j, func(i int, t fixed) {
			k := 2 * (i*p.d + j)
			centres[k], centres[k+1] = t[1], t[0]
		})
	}
}

// AssembleRandPack sets dst = e + P·z: dst_{iD+j} = e_{iD+j} + z_{(i-1)D+j} - b·z_{iD+j}, with
// z_{-D+j} = -z_{(M-1)D+j}, where e are the digits that were given to CosetCentres and z the sampled
// integers plus the integer parts of the centres. dst reduces to the same plaintext as the digits
// and |dst| <= |e| + (b+1)(max|z|+1), which dst's words must hold. dst must not alias digits. In
// columns where digits are zero, centres are zero; leaving z zero there keeps a plaintext
// of the subring Z[X^D] in it.
func (p *Packing) AssembleRandPack(dst, digits intpoly.Poly, z []int64) {
	p.wants(digits, p.digits.outWords)
	p.wants(dst, 1)
	if len(z) != p.n {
		panic(fmt.Sprintf("field: %d integers for ring degree %d", len(z), p.n))
	}
	for j := range p.d {
		var prev, last uint64
		p.column(digits, j, func(i int, t fixed) {
			k := i*p.d + j
			zk := uint64(z[k]) + t[2]
			out := dst.Coeff(k)
			signExtend(out, digits.Coeff(k))
			addSmall(out, prev)
			p.subtractTimesB(out, zk)
			prev, last = zk, zk
		})
		addSmall(dst.Coeff(j), -last)
	}
}

// signExtend copies the two's-complement src to dst, cutting it or repeating its sign.
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
