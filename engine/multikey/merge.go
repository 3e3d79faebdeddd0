package multikey

import (
	"bytes"

	"github.com/sp301415/tfhe-go/math/poly"
	"github.com/sp301415/tfhe-go/math/vec"
)

// merge rotates the constant 1/8 by the whole phase of a bootstrap, whose parties are already
// rotated, and extracts the constant coefficient. Before product i only c_0, ..., c_i-1 are
// nonzero, and the cost of a product depends only on these.
func (b *bench) merge(e *Evaluator, in *bootstrap) *extracted {
	s, t := e.s, b.transform
	k := len(in.in.Parts)
	c := make([]poly.Poly[uint64], k+1)
	for j := range c {
		c[j] = t.NewPoly()
	}
	vec.Fill(c[0].Coeffs, eighthWide)
	start := t.NewPoly()
	t.MonomialMulPolyAssign(c[0], 2*s.N()-s.body(in.in), start)
	c[0] = start

	digits := make([]poly.FourierPoly, max(s.Lev.Digits, s.Uni.Digits))
	for j := range digits {
		digits[j] = t.NewFourierPoly()
	}
	sums := make([]poly.FourierPoly, k+1)
	for j := range sums {
		sums[j] = t.NewFourierPoly()
	}
	public := b.sums[0] // v of the paper: the sum of digits of y_j times b_j
	for i, acc := range in.acc {
		for j := range i + 1 {
			// (x_j, y_j) = c_j (.) acc, with x_j replacing c_j.
			b.decompose(c[j], s.lev, digits)
			for half, row := range b.rows {
				for l := range s.Lev.Digits {
					b.multiply(row, acc[l][half], digits[l], l == 0)
				}
			}
			t.ToPolyAssignUnsafe(b.rows[0], c[j])
			t.ToPolyAssignUnsafe(b.rows[1], b.product)

			// u_j = <h(y_j), d_i>, and the contribution of y_j to v.
			part := e.public
			if j > 0 {
				part = in.keys[j-1].public
			}
			b.decompose(b.product, s.uni, digits)
			for l := range s.Uni.Digits {
				b.multiply(sums[j], in.keys[i].relin[l], digits[l], l == 0)
				b.multiply(public, part[l], digits[l], j == 0 && l == 0)
			}
		}
		t.ToPolyAssignUnsafe(public, b.product)
		b.decompose(b.product, s.uni, digits)
		for l := range s.Uni.Digits {
			b.multiply(sums[0], in.keys[i].relin2[l][0], digits[l], false)
			b.multiply(sums[i+1], in.keys[i].relin2[l][1], digits[l], l == 0)
		}
		for j := range i + 2 {
			t.ToPolyAddAssignUnsafe(sums[j], c[j])
		}
	}
	return extract(in, c)
}

// extracted is an LWE ciphertext under all coefficients of the parties' secrets, with words modulo
// 2^64.
type extracted struct {
	ids  []KeyID
	keys []*expanded
	a    [][]uint64 // N words for each party
	b    uint64

	short []Part // after the key switch
	body  []uint32
}

// extract returns the constant coefficient of a merged ciphertext: (c_j s_j)_0 = <(c_0, -c_N-1,
// ..., -c_1), s_j>.
func extract(in *bootstrap, c []poly.Poly[uint64]) *extracted {
	x := &extracted{b: c[0].Coeffs[0], keys: in.keys}
	for i, p := range in.in.Parts {
		from := c[i+1].Coeffs
		a := make([]uint64, len(from))
		a[0] = from[0]
		for j := 1; j < len(a); j++ {
			a[j] = -from[len(from)-j]
		}
		x.ids, x.a = append(x.ids, p.Key), append(x.a, a)
	}
	return x
}

// sum adds up the bootstraps of a job. Each of the two of a multiplexer is -1/8 or 1/8, and not
// both are 1/8.
func (j *job) sum() *extracted {
	x := j.bootstraps[0].merged
	for _, o := range j.bootstraps[1:] {
		x = x.add(o.merged)
		x.b += eighthWide
	}
	x.short, x.body = make([]Part, len(x.ids)), make([]uint32, len(x.ids))
	return x
}

// add returns the sum of two, under the keys of both.
func (x *extracted) add(y *extracted) *extracted {
	sum := &extracted{b: x.b + y.b}
	for i, j := 0, 0; i < len(x.ids) || j < len(y.ids); {
		switch {
		case j == len(y.ids) || i < len(x.ids) && bytes.Compare(x.ids[i][:], y.ids[j][:]) < 0:
			sum.append(x, i)
			i++
		case i == len(x.ids) || bytes.Compare(x.ids[i][:], y.ids[j][:]) > 0:
			sum.append(y, j)
			j++
		default:
			sum.append(x, i)
			vec.AddAssign(x.a[i], y.a[j], sum.a[len(sum.a)-1])
			i, j = i+1, j+1
		}
	}
	return sum
}

// append appends part i of another ciphertext.
func (x *extracted) append(o *extracted, i int) {
	x.ids, x.keys, x.a = append(x.ids, o.ids[i]), append(x.keys, o.keys[i]), append(x.a, o.a[i])
}

// switchKey converts part i to z: its first n words are already under z and are rounded to 2^32
// parts; digits of the others are multiplied by the party's switching key.
func (x *extracted) switchKey(s *Scheme, i int) {
	a, width := x.a[i], s.Dim+1
	out := make([]uint32, width) // the sample is last
	for j := range s.Dim {
		out[j] = round(a[j])
	}
	g := s.Switch
	rest := ringBits - g.LogBase*g.Digits
	half := uint64(1) << g.LogBase >> 1
	digits := make([]uint32, g.Digits)
	for j, w := range a[s.Dim:] {
		w = (w + 1<<(rest-1)) >> rest
		for d := g.Digits - 1; d >= 0; d-- { // the lowest first, with its carry
			low := w & (2*half - 1)
			w >>= g.LogBase
			if low >= half {
				low -= 2 * half
				w++
			}
			digits[d] = uint32(low)
		}
		for d, digit := range digits {
			if digit != 0 {
				at := (j*g.Digits + d) * width
				vec.ScalarMulAddAssign(x.keys[i].switches[at:at+width], digit, out)
			}
		}
	}
	x.short[i], x.body[i] = Part{x.ids[i], out[:s.Dim:s.Dim]}, out[s.Dim]
}

// round returns a word modulo 2^64 in 2^32 parts.
func round(x uint64) uint32 { return uint32((x + 1<<31) >> 32) }

// ciphertext assembles the switched parts.
func (x *extracted) ciphertext() Ciphertext {
	c := Ciphertext{Parts: x.short, B: round(x.b)}
	for _, b := range x.body {
		c.B += b
	}
	return c
}
