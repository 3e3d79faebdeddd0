package gbfv_test

import (
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// edgeVectors returns random coefficients, and coefficients around multiples of p/b where digits
// carry.
func edgeVectors(t *testing.T, s *gbfv.Scheme) []field.Vec {
	f := s.Field
	random, edges := f.NewVec(s.Slots()), f.NewVec(s.Slots())
	if err := f.Random(random, sample.NewSource(seed).Stream("edges")); err != nil {
		t.Fatal(err)
	}
	half := new(big.Int).Rsh(f.Modulus(), 1)
	values := []*big.Int{
		big.NewInt(0), big.NewInt(1), big.NewInt(-1), half, new(big.Int).Add(half, big.NewInt(1)),
		s.Spec.B, new(big.Int).Rsh(s.Spec.B, 1), new(big.Int).Neg(s.Spec.B),
	}
	for i := range edges.Len() {
		f.SetBig(edges.At(i), values[i%len(values)])
	}
	return []field.Vec{random, edges, f.NewVec(s.Slots())}
}

// TestScalePlainAgainstBig compares with q'·(c_j·b^-(i+1) mod p)/p mod q', the fractions of mu/P.
// The error is at most (b/2+1)/(b-1).
func TestScalePlainAgainstBig(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		p, d := s.Field.Modulus(), s.Slots()
		inverse := new(big.Int).ModInverse(s.Spec.B, p)
		for _, coeffs := range edgeVectors(t, s) {
			for k := 1; k <= s.Q.Len(); k++ {
				b := s.Prefix(k)
				q := b.Modulus()
				dst := b.NewPoly()
				s.ScalePlain(dst, coeffs, k)
				got := b.ToBig(dst)
				// 2(b-1)·|got - q·v/p| <= b+2, over p and modulo q
				scale := new(big.Int).Lsh(new(big.Int).Sub(s.Spec.B, big.NewInt(1)), 1)
				limit := new(big.Int).Mul(p, new(big.Int).Add(s.Spec.B, big.NewInt(2)))
				qp := new(big.Int).Mul(q, p)
				for j := range d {
					v := s.Field.Big(coeffs.At(j))
					for i := range s.Spec.M {
						v.Mul(v, inverse).Mod(v, p)
						w := new(big.Int).Mul(v, q)
						w.Sub(w, new(big.Int).Mul(got[i*d+j], p)).Mod(w, qp)
						if r := new(big.Int).Sub(qp, w); r.Cmp(w) < 0 {
							w = r
						}
						if w.Mul(w, scale).Cmp(limit) > 0 {
							t.Fatalf("k=%d: coefficient (%d, %d) is wrong", k, i, j)
						}
					}
				}
			}
		}
	})
}

// bigDecode returns round(P/q'·x) mod P, computed with big integers.
func bigDecode(s *gbfv.Scheme, x ring.Poly, k int) field.Vec {
	b := s.Prefix(k)
	q, n, d := b.Modulus(), s.N(), s.Slots()
	lifted := b.ToBig(x)
	coeffs := s.Field.NewVec(d)
	for j := range d {
		sum := new(big.Int)
		for i := s.Spec.M - 1; i >= 0; i-- {
			at := i*d + j
			y := new(big.Int).Mul(s.Spec.B, lifted[at])
			y.Neg(y)
			if at >= d {
				y.Add(y, lifted[at-d])
			} else {
				y.Sub(y, lifted[at-d+n])
			}
			y.Lsh(y, 1).Add(y, q).Div(y, new(big.Int).Lsh(q, 1)) // floor
			sum.Mul(sum, s.Spec.B).Add(sum, y)
		}
		s.Field.SetBig(coeffs.At(j), sum)
	}
	return coeffs
}

func TestDecodeAgainstBig(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		source := sample.NewSource(seed)
		for k := 1; k <= s.Q.Len(); k++ {
			b := s.Prefix(k)
			x, y := b.NewPoly(), b.NewPoly()
			for l, q := range b.Primes() {
				sample.Uniform(x.C[l], q, source.Stream("uniform", uint64(k), uint64(l)))
			}
			// Values of y next to the places where rounding changes: x_k = (2m+1)·q'/(2b) for
			// integers m, rounded.
			values := make([]*big.Int, s.N())
			for i := range values {
				v := new(big.Int).Mul(b.Modulus(), big.NewInt(int64(2*i+1)))
				values[i] = v.Div(v, new(big.Int).Lsh(s.Spec.B, 1))
				if i < s.N()-s.Slots() && i%2 == 0 { // so that x_{k-D} is sometimes 0
					values[i].SetInt64(0)
				}
			}
			b.FromBig(y, values)
			for _, v := range []ring.Poly{x, y, b.NewPoly()} {
				got := s.Field.NewVec(s.Slots())
				s.Decode(got, v, k)
				wantSlots(t, s.Field, "decoded", got, bigDecode(s, v, k))
			}
		}
	})
}
