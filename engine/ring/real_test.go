package ring_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// realBases returns the bases of a parameter set in use and random polynomials on both.
func realBases(t testing.TB) (q, aux *ring.Basis, x, y ring.Poly) {
	set, err := params.Lookup("S14-32")
	if err != nil {
		t.Fatal(err)
	}
	if q, err = ring.NewBasis(set.LogN, set.Q); err != nil {
		t.Fatal(err)
	}
	if aux, err = ring.NewBasis(set.LogN, set.Aux); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	x, y = q.NewPoly(), aux.NewPoly()
	for i, p := range set.Q {
		for k := range x.C[i] {
			x.C[i][k] = r.Uint64N(p)
		}
	}
	for i, p := range set.Aux {
		for k := range y.C[i] {
			y.C[i][k] = r.Uint64N(p)
		}
	}
	return q, aux, x, y
}

func TestRealSize(t *testing.T) {
	q, aux, x, y := realBases(t)
	// Multiplies by a sparse factor; the product is a sum of few monomials.
	sparse, want, v, w := q.NewPoly(), q.NewPoly(), q.NewNTT(), q.NewNTT()
	for _, e := range []int{0, 1, 77, q.N() - 1} {
		for i := range sparse.C {
			sparse.C[i][e] = 1
		}
		q.AddMonomial(want, x, e)
	}
	q.Forward(v, x)
	q.Forward(w, sparse)
	turned := q.NewNTT()
	q.AutomorphismNTT(turned, v, 5)
	q.MulNTT(v, v, w)
	got := q.NewPoly()
	q.Inverse(got, v)
	if !got.Equal(want) {
		t.Error("the product with a sum of monomials is wrong")
	}
	q.Automorphism(want, x, 5)
	q.Inverse(got, turned)
	if !got.Equal(want) {
		t.Error("X -> X^5 differs between the forms")
	}

	lifted, wantAux := aux.NewPoly(), aux.NewPoly()
	ring.NewExtender(q, aux).Extend(lifted, x)
	values := q.ToBig(x)
	aux.FromBig(wantAux, values)
	if !lifted.Equal(wantAux) {
		t.Error("extension")
	}

	// round((lift of x, y)/Q): its difference to x, y modulo Aux is the lift divided by Q.
	ring.NewDivider(aux, q).DivRound(lifted, y, x)
	m := q.Modulus()
	residues := make([]uint64, aux.Len())
	for i, p := range aux.Primes() {
		residues[i] = new(big.Int).Mod(m, new(big.Int).SetUint64(p)).Uint64()
	}
	aux.MulScalar(lifted, lifted, residues)
	aux.Add(lifted, lifted, wantAux)
	if !lifted.Equal(y) {
		t.Error("the division by Q is wrong")
	}
}

func BenchmarkForward(b *testing.B) {
	q, _, x, _ := realBases(b)
	one, v := q.Prefix(1), q.NewNTT()
	for b.Loop() {
		one.Forward(v, x)
	}
}

func BenchmarkInverse(b *testing.B) {
	q, _, x, _ := realBases(b)
	one, v := q.Prefix(1), q.NewPoly()
	for b.Loop() {
		one.Inverse(v, ring.NTT(x))
	}
}

func BenchmarkMulAddNTT(b *testing.B) {
	q, _, x, _ := realBases(b)
	v, w := ring.NTT(x), q.NewNTT()
	for b.Loop() {
		q.MulAddNTT(w, v, v)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(q.N()*q.Len()), "ns/coeff")
}

func BenchmarkExtend(b *testing.B) {
	q, aux, x, y := realBases(b)
	e := ring.NewExtender(q, aux)
	for b.Loop() {
		e.Extend(y, x)
	}
}

func BenchmarkAutomorphismNTT(b *testing.B) {
	q, _, x, _ := realBases(b)
	v := q.NewNTT()
	for b.Loop() {
		q.AutomorphismNTT(v, ring.NTT(x), 5)
	}
}

func BenchmarkFromInt(b *testing.B) {
	q, _, x, _ := realBases(b)
	for _, w := range []int{1, 2, 5} {
		v := intpoly.New(q.N(), w)
		for i := range v.C {
			v.C[i] = uint64(i) * 0x9e3779b97f4a7c15
		}
		b.Run(fmt.Sprintf("words=%d", w), func(b *testing.B) {
			for b.Loop() {
				q.FromInt(x, v)
			}
		})
	}
}
