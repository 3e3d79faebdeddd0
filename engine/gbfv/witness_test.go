package gbfv_test

import (
	"math"
	"math/big"
	"math/cmplx"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// witness is a message and encryption randomness: twice the sum over all parties.
type witness struct {
	mu intpoly.Poly
	r  [3]intpoly.Poly
}

// muWords is the width of messages at the proved bound: at most b times 2^64, with a sign.
const muWords = 4

func noRandomness(s *gbfv.Scheme) (r [3]intpoly.Poly) {
	for i := range r {
		r[i] = intpoly.New(s.N(), 1)
	}
	return r
}

// extracted returns the bounds that an accepted proof implies for the doubled sum of witnesses, in
// the canonical norm: differences of challenges have an inverse of at most 1/sin(pi/c), and
// responses of dim coefficients are below n·B1 and n·Bt1.
func (st *study) extracted(p params.Proof) (mu2, r2 float64) {
	n, c, dim := float64(st.s.N()), 2*float64(st.s.N()), float64(st.s.N())
	if p.Diag {
		c, dim = 2*float64(st.s.Spec.M), float64(st.s.Spec.M)
	}
	gap, parties := 1/math.Sin(math.Pi/c), float64(st.inst.Use.Parties)
	return gap * 2 * dim * parties * float64Of(p.B1), gap * 2 * n * parties * float64Of(p.Bt1)
}

// witness generates the inputs of a pattern for a proof; index separates them.
func (st *study) witness(p pattern, proof params.Proof, index uint64) witness {
	if p == honest {
		return st.honestWitness(proof, index)
	}
	s := st.s
	mu2, r2 := st.extracted(proof)
	every := 1 // the message has these coefficients
	if proof.Diag {
		every = s.Slots()
	}
	w := witness{mu: intpoly.New(s.N(), muWords), r: noRandomness(s)}
	if p == signs {
		st.signs(w.mu, mu2, every, "mu", index)
		for i, r := range w.r {
			st.signs(r, r2, 1, "r", index, uint64(i))
		}
		return w
	}
	// |e_rd|·mu, e·r0, r1 and s·r2 are positive in every embedding. e_rd has coefficients only at
	// multiples of D, and so has mu. The error is -e_rd·mu + e·r0 + r1 + s·r2.
	mu := inPhase(-mu2*(1-1e-9), st.roundingOfDelta())
	if proof.Diag {
		mu = embed(only(mu.coefficients(), every))
	}
	st.place(w.mu, mu, mu2, every, index)
	r2 -= float64(s.N()) // leaves a margin for rounding
	key := embed(floats(st.k.publicError()))
	for i, with := range []embedding{key, constant(s.N()), st.secret} {
		setFloats(w.r[i], inPhase(r2, with).coefficients())
	}
	return w
}

// honestWitness adds up the random values of n parties and doubles the sum.
func (st *study) honestWitness(proof params.Proof, index uint64) witness {
	s := st.s
	w := witness{mu: intpoly.New(s.N(), muWords), r: noRandomness(s)}
	gx, err := sample.NewGaussian(proof.WidthX)
	if err != nil {
		st.t.Fatal(err)
	}
	gr, err := sample.NewGaussian(proof.WidthR)
	if err != nil {
		st.t.Fatal(err)
	}
	values := make([]int64, s.N())
	twice := func(dst, src intpoly.Poly) {
		intpoly.AddMonomial(dst, src, 0)
		intpoly.AddMonomial(dst, src, 0)
	}
	for party := range st.inst.Use.Parties {
		stream := st.source.Stream("honest witness", index, uint64(party))
		mu, coeffs := intpoly.New(s.N(), s.MessageWords()), s.Field.NewVec(s.Slots())
		if err := s.Field.Random(coeffs, stream); err != nil {
			st.t.Fatal(err)
		}
		if proof.Diag {
			s.RandPackDiag(mu, coeffs.At(0), gx, stream)
		} else {
			s.RandPack(mu, coeffs, gx, stream)
		}
		twice(w.mu, mu)
		for i := range w.r {
			r := intpoly.New(s.N(), 1)
			gr.Sample(values, stream)
			intpoly.FromInt64(r, values)
			twice(w.r[i], r)
		}
	}
	return w
}

// signs sets dst to random signs times the size whose canonical norm is bound.
func (st *study) signs(dst intpoly.Poly, bound float64, every int, label string, index ...uint64) {
	stream := st.source.Stream("signs "+label, index...)
	c := make([]float64, dst.N())
	for k := 0; k < len(c); k += every {
		c[k] = float64(int(stream.Uint64()&1)*2 - 1)
	}
	size := math.Floor(bound * (1 - 1e-9) / embed(c).norm())
	for k := range c {
		c[k] *= size
	}
	setFloats(dst, c)
}

// place rounds a message to integers, with random low bits below the precision of doubles, and
// checks its norm.
func (st *study) place(dst intpoly.Poly, v embedding, bound float64, every int, index uint64) {
	if n := v.norm(); n > bound {
		st.t.Fatalf("the witness has norm %g, above its bound %g", n, bound)
	}
	setFloats(dst, v.coefficients())
	low := new(big.Int).SetUint64(uint64(min(math.MaxInt64, bound*1e-10/float64(st.s.N()))))
	if low.Sign() == 0 {
		return
	}
	noise := intpoly.New(st.s.N(), 2)
	sample.Flood(noise, low, st.source.Stream("low bits", index))
	for k := 0; k < st.s.N(); k += every {
		dst.SetBig(k, new(big.Int).Add(dst.Big(k), noise.Big(k)))
	}
}

// roundingOfDelta is q/P - Delta: coefficient iD is the rounding of -q·b^(M-1-i)/p.
func (st *study) roundingOfDelta() embedding {
	s := st.s
	p, q := s.Field.Modulus(), s.Q.Modulus()
	delta := s.Q.ToBig(s.Delta())
	e := make([]float64, s.N())
	for i := range s.Spec.M {
		num := new(big.Int).Exp(s.Spec.B, big.NewInt(int64(s.Spec.M-1-i)), nil)
		num.Mul(num, q).Neg(num)
		num.Sub(num, new(big.Int).Mul(delta[i*s.Slots()], p)) // modulo q·p, as Delta is modulo q
		qp := new(big.Int).Mul(q, p)
		if num.Mod(num, qp); new(big.Int).Lsh(num, 1).Cmp(qp) > 0 {
			num.Sub(num, qp)
		}
		f, _ := new(big.Rat).SetFrac(num, p).Float64()
		e[i*s.Slots()] = f
	}
	return embed(e)
}

// only keeps every nth coefficient.
func only(c []float64, every int) []float64 {
	for k := range c {
		if k%every != 0 {
			c[k] = 0
		}
	}
	return c
}

func constant(n int) embedding {
	v := make(embedding, n)
	for j := range v {
		v[j] = 1
	}
	return v
}

// setFloats rounds to integers.
func setFloats(dst intpoly.Poly, v []float64) {
	for k, x := range v {
		i, _ := new(big.Float).SetFloat64(math.Round(x)).Int(nil)
		dst.SetBig(k, i)
	}
}

// Witnesses of the study lie on their bounds, and their errors are in phase.
func TestWitnessesAreAtTheirBounds(t *testing.T) {
	s := newScheme(t, "insecure-8", "p128")
	inst, err := params.Resolve(s.Set, "p128", params.Use{Parties: 3, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	st := newStudy(t, s, inst, 2)
	near := func(what string, got, want float64) {
		t.Helper()
		if got > want*(1+1e-6) || got < want*(1-1e-4) {
			t.Errorf("%s: norm %g, bound %g", what, got, want)
		}
	}
	for _, proof := range []params.Proof{inst.Proof, inst.MACKey} {
		mu2, r2 := st.extracted(proof)
		for _, p := range []pattern{signs, aligned} {
			w := st.witness(p, proof, 0)
			near(string(p)+" message", norm(integers(w.mu)), mu2)
			for _, r := range w.r {
				near(string(p)+" randomness", norm(integers(r)), r2)
			}
			if proof.Diag {
				coeffs := s.Field.NewVec(s.Slots())
				s.Pack.Reduce(coeffs, w.mu)
				if !s.Pack.IsConstant(coeffs) || isZero(s.Field, coeffs) {
					t.Errorf("%s: the message of the MAC key is not a constant", p)
				}
			}
		}
		// The error of aligned witnesses equals the sum of the maxima of its parts, in every
		// embedding.
		w := st.witness(aligned, proof, 0)
		got := embed(floats(st.errorOf(st.encrypt(w))))
		key, rounding := embed(floats(st.k.publicError())), st.roundingOfDelta()
		for j := range got {
			want := mu2*cmplx.Abs(rounding[j]) + r2*(cmplx.Abs(key[j])+1+cmplx.Abs(st.secret[j]))
			if d := cmplx.Abs(got[j] - complex(want, 0)); d > 1e-3*want {
				t.Fatalf("embedding %d has error %v, want %g", j, got[j], want)
			}
		}
	}
}

func integers(p intpoly.Poly) []*big.Int {
	v := make([]*big.Int, p.N())
	for k := range v {
		v[k] = p.Big(k)
	}
	return v
}

func isZero(f *field.Field, v field.Vec) bool {
	return f.EqualVec(v, f.NewVec(v.Len()))
}
