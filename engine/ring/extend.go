package ring

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// block is the number of coefficients that an extension treats at a time, to stay in cache.
const block = 512

// maxTerms is the largest number of primes to extend from: as many products below 2^122 fit in 128 bits.
const maxTerms = 60

// Extender lifts a polynomial from one basis to another: the residues of its centred coefficients, in
// (-F/2, F/2] for the modulus F of the basis it comes from. With y_i = x_i (F/f_i)^-1 mod f_i,
//
//	x = sum_i y_i F/f_i - v F,   v = floor(sum_i y_i/f_i + 1/2).
//
// v is computed from 64-bit approximations of y_i/f_i that are below by less than 3·2^-64 each, so it may be 1 too
// small for a centred x in (-F/2, -F/2 + 3·len·2^-64·F), whose lift is then x+F, just above F/2. Which one it is
// is fixed by integers alone. There is no such x for a single prime.
type Extender struct {
	from, to *Basis
	inverse  []uint64   // (F/f_i)^-1 mod f_i
	scaled   []uint64   // floor(2^(63+bits)/f_i) for bits = length of f_i
	shift    []uint     // bits-1
	factor   [][]uint64 // [j][i] F/f_i mod t_j
	negF     []uint64   // -F mod t_j
}

// NewExtender prepares the lift, from at most 60 primes; the bases may share primes.
func NewExtender(from, to *Basis) *Extender {
	if from.Len() > maxTerms {
		panic(fmt.Sprintf("ring: extension from %d primes, more than %d", from.Len(), maxTerms))
	}
	e := &Extender{from: from, to: to}
	f := from.Modulus()
	rest := make([]*big.Int, from.Len())
	for i, l := range from.limbs {
		p := new(big.Int).SetUint64(l.Q)
		rest[i] = new(big.Int).Quo(f, p)
		e.inverse = append(e.inverse, l.Inverse(new(big.Int).Mod(rest[i], p).Uint64()))
		e.shift = append(e.shift, uint(bits.Len64(l.Q)-1))
		s := new(big.Int).Lsh(big.NewInt(1), 64+e.shift[i])
		e.scaled = append(e.scaled, s.Quo(s, p).Uint64())
	}
	for _, l := range to.limbs {
		t := new(big.Int).SetUint64(l.Q)
		row := make([]uint64, from.Len())
		for i := range row {
			row[i] = new(big.Int).Mod(rest[i], t).Uint64()
		}
		e.factor = append(e.factor, row)
		e.negF = append(e.negF, l.Neg(new(big.Int).Mod(f, t).Uint64()))
	}
	return e
}

// Extend sets dst, on the basis to, to the lift of src, on the basis from. dst may hold limbs of src.
func (e *Extender) Extend(dst, src Poly) {
	y := make([][block]uint64, e.from.Len())
	var v [block]uint64
	for start := 0; start < e.from.n; start += block {
		size := min(block, e.from.n-start)
		e.digits(y, &v, src, start, size)
		for j, l := range e.to.limbs {
			e.combine(dst.C[j][start:start+size], y, &v, l.Modulus, j)
		}
	}
	for i := range y {
		clear(y[i][:])
	}
}

// digits fills y_i and v for size coefficients.
func (e *Extender) digits(y [][block]uint64, v *[block]uint64, src Poly, start, size int) {
	var fraction [block]uint64
	for k := range size {
		fraction[k], v[k] = 1<<63, 0
	}
	for i, l := range e.from.limbs {
		s := src.C[i][start : start+size]
		inverse, scaled, shift := e.inverse[i], e.scaled[i], e.shift[i]
		yi := &y[i]
		for k := range s {
			yk := l.Mul(s[k], inverse)
			yi[k] = yk
			hi, lo := bits.Mul64(yk, scaled)
			var c uint64
			fraction[k], c = bits.Add64(fraction[k], hi<<(64-shift)|lo>>shift, 0)
			v[k] += c
		}
	}
}

// combine computes sum_i y_i (F/f_i) - v F modulo t_j. At most 32 terms below 2^122 fit 128 bits.
func (e *Extender) combine(dst []uint64, y [][block]uint64, v *[block]uint64, m kernel.Modulus, j int) {
	factor, negF := e.factor[j], e.negF[j]
	for k := range dst {
		hi, lo := bits.Mul64(v[k], negF)
		for i := range y {
			h, l := bits.Mul64(y[i][k], factor[i])
			var c uint64
			lo, c = bits.Add64(lo, l, 0)
			hi += h + c
		}
		dst[k] = m.Reduce(hi, lo)
	}
}

// Divider divides by the modulus of some primes: for x on keep and drop together it gives round(x/Drop) on
// keep. It subtracts the centred remainder, which is subject to the note on Extender: a quotient whose
// fraction is within 2^-57 of 1/2 may be rounded either way, the same way on every machine.
type Divider struct {
	keep    *Basis
	extend  *Extender
	inverse []uint64 // Drop^-1 modulo the primes of keep
}

// NewDivider prepares the division; the bases have no prime in common.
func NewDivider(keep, drop *Basis) *Divider {
	d := &Divider{keep: keep, extend: NewExtender(drop, keep)}
	m := drop.Modulus()
	for _, l := range keep.limbs {
		d.inverse = append(d.inverse, l.Inverse(new(big.Int).Mod(m, new(big.Int).SetUint64(l.Q)).Uint64()))
	}
	return d
}

// DivRound sets dst, on keep, to round(x/Drop) for x with residues keepPart and dropPart. dst may be keepPart.
func (d *Divider) DivRound(dst, keepPart, dropPart Poly) {
	r := d.keep.NewPoly()
	d.extend.Extend(r, dropPart)
	d.keep.Sub(dst, keepPart, r)
	d.keep.MulScalar(dst, dst, d.inverse)
	r.Zero()
}
