package ring

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// block is the number of coefficients that a lift or a division treats at a time, to stay in cache.
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
	inverse  []kernel.Factor // (F/f_i)^-1 mod f_i
	scaled   []uint64        // floor(2^(63+bits)/f_i) for bits = length of f_i
	shift    []uint8         // bits-1
	factor   [][]uint64      // [j][i] F/f_i mod t_j
	negF     []uint64        // -F mod t_j
	shared   []int           // i with f_i = t_j, else -1
}

// NewExtender prepares the lift, from at most 60 primes; the bases may share primes.
func NewExtender(from, to *Basis) *Extender {
	if from.Len() > maxTerms || from.n != to.n {
		panic(fmt.Sprintf("ring: extension of degree %d from %d primes to degree %d", from.n, from.Len(), to.n))
	}
	e := &Extender{from: from, to: to}
	f := from.Modulus()
	rest := make([]*big.Int, from.Len())
	for i, l := range from.limbs {
		p := new(big.Int).SetUint64(l.Q)
		rest[i] = new(big.Int).Quo(f, p)
		e.inverse = append(e.inverse, l.Factor(l.Inverse(new(big.Int).Mod(rest[i], p).Uint64())))
		e.shift = append(e.shift, uint8(bits.Len64(l.Q)-1))
		s := new(big.Int).Lsh(big.NewInt(1), 64+uint(e.shift[i]))
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
		e.shared = append(e.shared, slices.IndexFunc(from.limbs, func(o *limb) bool { return o.Q == l.Q }))
	}
	return e
}

// Lift holds what the lift of a polynomial to any prime starts from, so that it is computed once when the primes
// are wanted one at a time. It is as large as the polynomial, and an eighth of a limb more.
type Lift struct {
	y []uint64 // y_i of coefficient k at k·len+i
	v []uint8
}

// NewLift returns storage for Prepare.
func (e *Extender) NewLift() *Lift { return newLift(e.from.n, e.from.Len()) }

func newLift(n, terms int) *Lift { return &Lift{make([]uint64, n*terms), make([]uint8, n)} }

// Wipe zeroes the lift.
func (l *Lift) Wipe() {
	clear(l.y)
	clear(l.v)
}

// Prepare sets dst to the lift of src. It does not depend on the basis to.
func (e *Extender) Prepare(dst *Lift, src Poly) {
	for start := 0; start < e.from.n; start += block {
		e.digits(dst.part(start, min(block, e.from.n-start)), src, start)
	}
}

// Limb sets dst to prime j of the basis to of what Extend gives.
func (e *Extender) Limb(dst []uint64, src *Lift, j int) { e.combine(dst, *src, j) }

// part views the lift of size coefficients from start.
func (l *Lift) part(start, size int) Lift {
	terms := len(l.y) / len(l.v)
	return Lift{l.y[start*terms : (start+size)*terms], l.v[start : start+size]}
}

// Extend sets dst, on the basis to, to the lift of src, on the basis from. dst may hold limbs of src.
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

// digits fills in y_i and v for the coefficients of src from start that dst has room for.
func (e *Extender) digits(dst Lift, src Poly, start int) {
	var fraction [block]uint64
	for k := range dst.v {
		fraction[k], dst.v[k] = 1<<63, 0
	}
	terms := len(e.from.limbs)
	for i, l := range e.from.limbs {
		m, f, scaled, shift := l.Modulus, e.inverse[i], e.scaled[i], e.shift[i]
		for k, x := range src.C[i][start : start+len(dst.v)] {
			y := m.Scale(x, f)
			dst.y[k*terms+i] = y
			hi, lo := bits.Mul64(y, scaled)
			var c uint64
			fraction[k], c = bits.Add64(fraction[k], hi<<((64-shift)&63)|lo>>(shift&63), 0)
			dst.v[k] += uint8(c)
		}
	}
	clear(fraction[:])
}

// combine computes sum_i y_i (F/f_i) - v F modulo t_j. At most maxTerms+1 products below 2^122 fit in 128 bits.
func (e *Extender) combine(dst []uint64, src Lift, j int) {
	m, terms := e.to.limbs[j].Modulus, len(e.from.limbs)
	if i := e.shared[j]; i >= 0 { // x mod f_i = y_i F/f_i
		f := m.Factor(e.factor[j][i])
		for k := range dst {
			dst[k] = m.Scale(src.y[k*terms+i], f)
		}
		return
	}
	factor, negF := e.factor[j], e.negF[j]
	for k := range dst {
		hi, lo := bits.Mul64(uint64(src.v[k]), negF)
		y := src.y[k*terms : (k+1)*terms]
		for i, f := range factor[:len(y)] {
			h, l := bits.Mul64(y[i], f)
			var c uint64
			lo, c = bits.Add64(lo, l, 0)
			hi, _ = bits.Add64(hi, h, c)
		}
		dst[k] = m.Reduce(hi, lo)
	}
}

// Divider divides by the modulus of some primes: for x on keep and drop together it gives round(x/Drop) on
// keep. It subtracts the remainder as Extender lifts it: exact for a single prime; otherwise a quotient whose
// fraction is above 1/2 by less than 3·len·2^-64 may be rounded down, the same way on every machine.
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
			panic(fmt.Sprintf("ring: division by %d keeps it", l.Q))
		}
		d.inverse = append(d.inverse, l.Factor(l.Inverse(new(big.Int).Mod(m, new(big.Int).SetUint64(l.Q)).Uint64())))
	}
	return d
}

// DivRound sets dst, on keep, to round(x/Drop) for x with residues keepPart and dropPart. dst may be keepPart.
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
			m, f := l.Modulus, d.inverse[j]
			to, from := dst.C[j][start:start+size], keepPart.C[j][start:start+size]
			for k := range to {
				to[k] = m.Scale(m.Sub(from[k], remainder[k]), f)
			}
		}
	}
	scratch.Wipe()
	clear(remainder[:])
}
