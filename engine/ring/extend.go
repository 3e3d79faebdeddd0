package ring

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// block is the number of coefficients that a lift or a division processes at a time, to stay in
// cache.
const block = 512

// maxTerms is the largest number of primes to extend from.
const maxTerms = kernel.MaxTerms

// Extender lifts a polynomial from one basis to another. The result holds the residues of its
// centred coefficients, in (-F/2, F/2] for the modulus F of the source basis. With y_i = x_i
// (F/f_i)^-1 mod f_i,
//
//	x = sum_i y_i F/f_i - v F,   v = floor(sum_i y_i/f_i + 1/2).
//
// v is computed from 64-bit approximations of y_i/f_i that are below by less than 3·2^-64 each, so
// it may be 1 too small for a centred x in (-F/2, -F/2 + 3·len·2^-64·F), whose lift is then x+F,
// just above F/2. Integer arithmetic alone decides which of the two results. There is no such x for
// a single prime.
type Extender struct {
	from, to  *Basis
	inverse   []kernel.Factor // (F/f_i)^-1 mod f_i
	fractions []kernel.Fraction
	sums      []*kernel.Sum // [j] of y_i F/f_i - v F mod t_j
	shared    []int         // i with f_i = t_j, else -1
}

// NewExtender prepares the lift, from at most 60 primes; the bases may share primes.
func NewExtender(from, to *Basis) *Extender {
	if from.Len() > maxTerms || from.n != to.n {
		panic(fmt.Sprintf("ring: extension of degree %d from %d primes to degree %d", from.n, from.Len(), to.n))
	}
	e := &Extender{from: from, to: to}
	f := from.Modulus()
	rest, length := make([]*big.Int, from.Len()), 0
	for i, l := range from.limbs {
		p := new(big.Int).SetUint64(l.Q)
		rest[i] = new(big.Int).Quo(f, p)
		e.inverse = append(e.inverse, l.Factor(l.Inverse(new(big.Int).Mod(rest[i], p).Uint64())))
		e.fractions = append(e.fractions, l.Fraction())
		length = max(length, bits.Len64(l.Q))
	}
	for _, l := range to.limbs {
		t := new(big.Int).SetUint64(l.Q)
		weights := make([]uint64, from.Len())
		for i := range weights {
			weights[i] = new(big.Int).Mod(rest[i], t).Uint64()
		}
		e.sums = append(e.sums, l.NewSum(weights, l.Neg(new(big.Int).Mod(f, t).Uint64()), length))
		e.shared = append(e.shared, slices.IndexFunc(from.limbs, func(o *limb) bool { return o.Q == l.Q }))
	}
	return e
}

// lifting holds the precomputation that lifts of a polynomial to all primes share, so that it is
// computed once when primes are processed one at a time. It is as large as the polynomial plus an
// eighth of a limb.
type lifting struct {
	y []uint64 // per block of coefficients: all y_0, all y_1, and so on
	v []uint8
}

func newLift(n, terms int) *lifting { return &lifting{make([]uint64, n*terms), make([]uint8, n)} }

// Wipe zeroes the lift.
func (l *lifting) Wipe() {
	clear(l.y)
	clear(l.v)
}

// part views the lift of size coefficients from start.
func (l *lifting) part(start, size int) lifting {
	terms := len(l.y) / len(l.v)
	return lifting{l.y[start*terms : (start+size)*terms], l.v[start : start+size]}
}

// Extend sets dst, on the basis to, to the lift of src, on the basis from. dst may hold limbs of
// src.
func (e *Extender) Extend(dst, src Poly) {
	scratch := newLift(min(block, e.from.n), e.from.Len())
	for start := 0; start < e.from.n; start += block {
		y := scratch.part(0, min(block, e.from.n-start))
		e.digits(y, src, start)
		for j := range e.to.limbs {
			e.combine(dst.C[j][start:start+len(y.v)], y, j)
		}
	}
	scratch.Wipe()
}

// digits computes y_i and v for the coefficients of src from start on; dst, a block, determines
// their number.
func (e *Extender) digits(dst lifting, src Poly, start int) {
	size := len(dst.v)
	for i, l := range e.from.limbs {
		l.ScaleByVec(dst.y[i*size:(i+1)*size], src.C[i][start:start+size], e.inverse[i])
	}
	kernel.RoundFractions(dst.v, dst.y, size, e.fractions)
}

// combine computes sum_i y_i (F/f_i) - v F modulo t_j for a block.
func (e *Extender) combine(dst []uint64, src lifting, j int) {
	size, sum := len(src.v), e.sums[j]
	if i := e.shared[j]; i >= 0 { // x mod f_i = y_i F/f_i
		sum.ScaleByVec(dst, src.y[i*size:(i+1)*size], sum.Weight(i))
		return
	}
	sum.Apply(dst, src.y, size, src.v)
}

// Divider divides by the modulus of some primes: for x on keep and drop together it computes
// round(x/Drop) on keep. It subtracts the remainder as Extender lifts it. The result is exact for a
// single prime; otherwise a quotient whose fraction is above 1/2 by less than 3·len·2^-64 may be
// rounded down, the same way on every machine.
type Divider struct {
	keep    *Basis
	extend  *Extender
	inverse []kernel.Factor // Drop^-1 modulo the primes of keep
}

// NewDivider prepares the division; the bases have no prime in common.
func NewDivider(keep, drop *Basis) *Divider {
	d := &Divider{keep: keep, extend: NewExtender(drop, keep)}
	m := drop.Modulus()
	for j, l := range keep.limbs {
		if d.extend.shared[j] >= 0 {
			panic(fmt.Sprintf("ring: the divisor %d is among the primes to keep", l.Q))
		}
		d.inverse = append(d.inverse, l.Factor(l.Inverse(new(big.Int).Mod(m, new(big.Int).SetUint64(l.Q)).Uint64())))
	}
	return d
}

// DivRound sets dst, on keep, to round(x/Drop) for x with residues keepPart and dropPart. dst may
// be keepPart.
func (d *Divider) DivRound(dst, keepPart, dropPart Poly) {
	e, n := d.extend, d.keep.n
	scratch := newLift(min(block, n), e.from.Len())
	var remainder [block]uint64
	for start := 0; start < n; start += block {
		y := scratch.part(0, min(block, n-start))
		size := len(y.v)
		e.digits(y, dropPart, start)
		for j, l := range d.keep.limbs {
			e.combine(remainder[:size], y, j)
			to := dst.C[j][start : start+size]
			l.SubVec(to, keepPart.C[j][start:start+size], remainder[:size])
			l.ScaleByVec(to, to, d.inverse[j])
		}
	}
	scratch.Wipe()
	clear(remainder[:])
}
