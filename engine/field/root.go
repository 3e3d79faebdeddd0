package field

import (
	"fmt"
	"math/big"
)

// Roots computes square roots of public elements; its time depends on them. It is immutable and
// safe for concurrent use.
type Roots struct {
	f         *Field
	two, half Element
	odd       *big.Int // (p-1)/4 = odd 2^doublings
	doublings int
}

// NewRoots prepares square roots in a field with M >= 2, whose p is 1 modulo 4.
func NewRoots(f *Field) *Roots {
	if f.mod[0]%4 != 1 {
		panic(fmt.Sprintf("field: square roots modulo %v are not supported: p must be 1 mod 4", f.p))
	}
	r := &Roots{f: f, two: f.NewElement(), half: f.NewElement(), odd: new(big.Int).Rsh(f.p, 2)}
	f.SetUint64(r.two, 2)
	f.Inverse(r.half, r.two)
	r.doublings = int(r.odd.TrailingZeroBits())
	r.odd.Rsh(r.odd, uint(r.doublings))
	return r
}

// maxTurns bounds the number of attempts of Sqrt. Each succeeds with probability one half.
const maxTurns = 256

// Sqrt sets dst to the smaller square root of a, compared as integers. It reports false if a is not
// a square, or if no attempt succeeds, for those squares, if there are any, where this happens.
//
// It uses the method of Müller (2004). Let V_k = x^k + x^-k, a Lucas sequence, for x + 1/x = w - 2
// with w = 4^i·a. If a is a square and w - 4 is not, then x is not in the field and x^((p+1)/2) =
// 1, so that V_{(p-1)/4}^2 = x + 1/x + 2 = w.
func (r *Roots) Sqrt(dst, a Element) bool {
	f := r.f
	if f.IsZero(a) {
		clear(dst)
		return true
	}
	w, v, scale := append(Element(nil), a...), f.NewElement(), f.One() // scale is 2^-i
	for turn := 0; ; turn++ {
		if turn == maxTurns {
			return false
		}
		f.Sub(v, w, r.two)
		f.Sub(v, v, r.two) // w - 4
		switch big.Jacobi(f.Big(v), f.p) {
		case -1:
			f.Sub(v, w, r.two)
			r.lucas(v)
		case 0:
			copy(v, r.two)
		default:
			f.Add(w, w, w)
			f.Add(w, w, w)
			f.Mul(scale, scale, r.half)
			continue
		}
		break
	}
	f.Mul(v, v, scale)
	f.Mul(w, v, v)
	if !f.Equal(w, a) {
		return false
	}
	f.Neg(w, v)
	if f.Big(w).Cmp(f.Big(v)) < 0 {
		v = w
	}
	copy(dst, v)
	return true
}

// lucas sets v = V_1 to V_{(p-1)/4}: V_{2k} = V_k^2 - 2 and V_{2k+1} = V_k V_{k+1} - V_1.
func (r *Roots) lucas(v Element) {
	f := r.f
	one, next := append(Element(nil), v...), f.NewElement() // next is the one after v
	f.Mul(next, v, v)
	f.Sub(next, next, r.two)
	for i := r.odd.BitLen() - 2; i >= 0; i-- {
		low, high := v, next // V_k and V_{k+1}
		if r.odd.Bit(i) == 0 {
			f.Mul(high, high, low)
			f.Sub(high, high, one)
			f.Mul(low, low, low)
			f.Sub(low, low, r.two)
		} else {
			f.Mul(low, low, high)
			f.Sub(low, low, one)
			f.Mul(high, high, high)
			f.Sub(high, high, r.two)
		}
	}
	for range r.doublings {
		f.Mul(v, v, v)
		f.Sub(v, v, r.two)
	}
}

// InverseVec sets dst to the inverses of nonzero public elements. It uses three products per
// element and one inversion.
func (f *Field) InverseVec(dst, a Vec) {
	f.same(dst, a)
	n := a.Len()
	if n == 0 {
		return
	}
	products, rest := f.NewVec(n), f.NewElement() // a_0, a_0 a_1, ...
	copy(products.At(0), a.At(0))
	for i := 1; i < n; i++ {
		f.Mul(products.At(i), products.At(i-1), a.At(i))
	}
	f.Inverse(rest, products.At(n-1))
	for i := n - 1; i > 0; i-- {
		x := append(Element(nil), a.At(i)...) // dst may be a
		f.Mul(dst.At(i), rest, products.At(i-1))
		f.Mul(rest, rest, x)
	}
	copy(dst.At(0), rest)
}
