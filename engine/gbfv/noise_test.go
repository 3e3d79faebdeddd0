package gbfv_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/cmplx"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The noise study compares the phase error after every operation with the registry's terms, one by
// one. Keys are made as honest parties make them; ciphertexts are the worst that a proof of
// plaintext knowledge accepts. docs/internals/noise.md describes the model and the results; "make
// noise" runs the study at full size and writes the tables of that file.

var write = flag.String("write", "", "file whose tables the noise study replaces; with -long all")

// A pattern is a way to choose the inputs of an operation.
type pattern string

const (
	// honest: sums of all parties' random values, doubled. These are not at the bounds.
	honest pattern = "honest"
	// signs: witnesses with coefficients of one size and random signs, at the bound of the
	// canonical norm.
	signs pattern = "signs"
	// aligned: witnesses at the bound in every embedding, and in phase with the key errors, the
	// secret key and the rounding of Delta, so that all their contributions add up. Both factors
	// are the same ciphertext, and so are all terms of an inner product. Choosing them requires the
	// key.
	aligned pattern = "aligned"
	// step: errors at the bounds of the term's own inputs in every embedding; for products, in
	// phase with the other factor.
	step pattern = "step"
)

// A study measures one instance.
type study struct {
	t      testing.TB
	s      *gbfv.Scheme
	inst   *params.Instance
	k      measured
	source *sample.Source
	real   *gbfv.Evaluator
	exact  *gbfv.Evaluator // the same keys without errors
	q      float64
	secret embedding
	p      embedding // P = X^D-b
	found  map[string]map[pattern]float64
}

func newStudy(t testing.TB, s *gbfv.Scheme, inst *params.Instance, keyDim int) *study {
	st := &study{
		t: t, s: s, inst: inst, k: measured{scheme: s},
		source: sample.NewSource(seed), found: map[string]map[pattern]float64{},
	}
	if inst.Set.IsProved() {
		b := bounds{secret: st.bound("s"), error: st.bound("e")}
		b.relinError = 2*b.secret*b.error + 2*b.error // S·E0 + U·E1 + 2·E2
		st.k.Key = atBounds(s, b, keyDim, seed)
	} else {
		st.k.Key = gbfvtest.New(s, inst.Use.Parties, keyDim, seed)
	}
	k := st.k
	st.real, st.exact = gbfv.NewEvaluator(s, k.Eval), gbfv.NewEvaluator(s, k.exact())
	st.secret = embed(floats(k.secretPoly()))
	st.q = float64Of(s.Q.Modulus())
	p := make([]float64, s.N())
	p[0], p[s.Slots()] = -float64Of(s.Spec.B), 1
	st.p = embed(p)
	return st
}

func float64Of(v *big.Int) float64 {
	f, _ := new(big.Float).SetInt(v).Float64()
	return f
}

// note records the largest value of a term for a pattern.
func (st *study) note(term string, p pattern, value float64) {
	st.bound(term)
	if st.found[term] == nil {
		st.found[term] = map[pattern]float64{}
	}
	st.found[term][p] = max(st.found[term][p], value)
}

// norm and top return the canonical norm of an error and its largest coefficient.
func norm(e []*big.Int) float64 { return embed(floats(e)).norm() }

func top(e []*big.Int) (v float64) {
	for _, x := range floats(e) {
		v = max(v, math.Abs(x))
	}
	return v
}

// encrypted is a ciphertext with its message, as coefficients and as slots.
type encrypted struct {
	ct            *gbfv.Ciphertext
	coeffs, slots field.Vec
}

func (st *study) known(ct *gbfv.Ciphertext, slots field.Vec) encrypted {
	coeffs := st.s.Field.NewVec(st.s.Slots())
	st.s.Pack.Pack(coeffs, slots)
	return encrypted{ct, coeffs, slots}
}

func (st *study) errorOf(x encrypted) []*big.Int { return st.k.phaseError(x.ct, x.coeffs) }

// encrypt returns the ciphertext of a witness, which stands for twice the sum of all parties'
// witnesses.
func (st *study) encrypt(w witness) encrypted {
	s := st.s
	x := encrypted{s.NewCiphertext(), s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())}
	s.EncryptWith(x.ct, st.k.Public, w.mu, w.r)
	s.Pack.Reduce(x.coeffs, w.mu)
	s.Pack.Unpack(x.slots, x.coeffs)
	return x
}

// wraps records |(c0+c1·s)/q| and returns its values.
func (st *study) wraps(p pattern, ct *gbfv.Ciphertext) embedding {
	c0, c1 := embed(floats(st.s.Q.ToBig(ct.C0))), embed(floats(st.s.Q.ToBig(ct.C1)))
	for j := range c0 {
		c0[j] = (c0[j] + c1[j]*st.secret[j]) / complex(st.q, 0)
	}
	st.note("wrap", p, c0.norm())
	for _, c := range c0.coefficients() {
		st.note("wrap.coeff", p, math.Abs(c))
	}
	return c0
}

// difference returns the phase of a-b: the contribution of the keys' errors.
func (st *study) difference(a, b *gbfv.Ciphertext) []*big.Int {
	d := st.s.NewCiphertext()
	st.s.Sub(d, a, b)
	return st.k.phaseError(d, st.s.Field.NewVec(st.s.Slots()))
}

// keys measures the joint key.
func (st *study) keys() {
	st.note("s", st.drawn(), st.secret.norm())
	st.note("e", st.drawn(), norm(st.k.publicError()))
}

// drawn returns the pattern by which the keys were chosen.
func (st *study) drawn() pattern {
	if st.inst.Set.IsProved() {
		return step
	}
	return honest
}

// rotation measures a rotation of a ciphertext without error.
func (st *study) rotation() {
	x := st.synthetic("rotated", nil)
	ct, err := st.real.Rotate(x.ct, 1, 2)
	if err != nil {
		st.t.Fatal(err)
	}
	bare, err := st.exact.Rotate(x.ct, 1, 2)
	if err != nil {
		st.t.Fatal(err)
	}
	st.note("ks.rotate", st.drawn(), norm(st.difference(ct, bare)))
}

// synthetic encrypts zero with a uniform c1 and the error with the values v; nil means no error.
func (st *study) synthetic(label string, v embedding) encrypted {
	s := st.s
	x := encrypted{s.NewCiphertext(), s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())}
	for l, q := range s.Q.Primes() {
		sample.Uniform(x.ct.C1.C[l], q, st.source.Stream("synthetic "+label, uint64(l)))
	}
	phase := s.Q.NewPoly()
	s.Phase(phase, x.ct, st.k.Secret, s.Q.Len())
	s.Q.Neg(x.ct.C0, phase)
	if v != nil {
		st.addError(x.ct, v)
	}
	return x
}

// addError adds an error, rounded to integers.
func (st *study) addError(ct *gbfv.Ciphertext, v embedding) {
	e, p := intpoly.New(st.s.N(), len(st.s.Q.Primes())+1), st.s.Q.NewPoly()
	setFloats(e, v.coefficients())
	st.s.Q.FromInt(p, e)
	st.s.Q.Add(ct.C0, ct.C0, p)
}

// bound returns a term as a double. In addition to the registry's terms there are phase, which is
// decrypted, and alpha.own, the MAC key's own bound: alpha is the larger of this and a proved
// ciphertext's bound.
func (st *study) bound(term string) float64 {
	switch term {
	case "sacrifice.h":
		term = "product"
	case "sacrifice.mac":
		term = "mac.c"
	case "phase":
		return float64Of(st.inst.PhaseBound)
	case "alpha.own":
		mu2, r2 := st.extracted(st.inst.MACKey)
		return mu2*float64(st.s.Spec.M)/2 + r2*(st.bound("e")+1+st.bound("s"))
	}
	t, ok := st.inst.Term(term)
	if !ok {
		st.t.Fatalf("unknown term %q", term)
	}
	return float64Of(t.Bound)
}

// last measures a product with alpha: errors of coefficients.
func (st *study) last(term string, p pattern, alpha *gbfv.Left, mac, x encrypted) encrypted {
	out := st.known(st.real.Mul(alpha, st.s.Right(x.ct)), mulVec(st.s.Field, mac.slots, x.slots))
	st.note(term, p, top(st.errorOf(out)))
	return out
}

// switched measures the switch to the decryption modulus, and the phase error at decryption.
func (st *study) switched(p pattern, x encrypted) {
	s, primes := st.s, st.inst.DDecPrimes
	before := st.errorOf(x)
	after := st.errorOf(encrypted{s.SwitchModulus(x.ct, primes), x.coeffs, x.slots})
	st.note("phase", p, top(after))
	if primes == s.Q.Len() {
		return
	}
	q, small := s.Q.Modulus(), s.Prefix(primes).Modulus()
	rounding := make([]*big.Int, len(after))
	for k := range after { // (q·after - q'·before)/q
		v := new(big.Int).Mul(q, after[k])
		rounding[k] = v.Sub(v, new(big.Int).Mul(small, before[k]))
	}
	st.note("switch", p, top(rounding)/st.q)
}

// chain measures every operation of a scalar batch on witnesses of a pattern.
func (st *study) chain(p pattern) {
	st.t.Helper()
	s := st.s
	wx, wy, wa := st.witness(p, st.inst.Proof, 0), st.witness(p, st.inst.Proof, 1), st.witness(p, st.inst.MACKey, 2)
	x, y, mac := st.encrypt(wx), st.encrypt(wy), st.encrypt(wa)
	if p == aligned {
		y = x
	}
	st.note("fresh", p, norm(st.errorOf(x)))
	st.note("fresh", p, norm(st.errorOf(y)))
	st.note("alpha", p, norm(st.errorOf(mac)))
	st.note("alpha.own", p, norm(st.errorOf(mac)))
	st.note("delta.mu", p, norm(st.errorOf(st.encrypt(witness{mu: wx.mu, r: noRandomness(s)}))))
	st.note("r.key", p, norm(st.errorOf(st.encrypt(witness{mu: intpoly.New(s.N(), 1), r: wx.r}))))
	for _, ct := range []encrypted{x, y, mac} {
		st.wraps(p, ct.ct)
	}
	left, right := s.Left(x.ct), s.Right(y.ct)
	c := st.known(st.real.Mul(left, right), mulVec(s.Field, x.slots, y.slots))
	bare := st.exact.Mul(left, right)
	st.note("tensor", p, norm(st.k.phaseError(bare, c.coeffs)))
	st.note("ks.relin", p, norm(st.difference(c.ct, bare)))
	st.note("product", p, norm(st.errorOf(c)))
	st.wraps(p, c.ct)

	alpha := s.Left(mac.ct)
	st.last("mac.a", p, alpha, mac, x)
	st.last("mac.a", p, alpha, mac, y)
	st.switched(p, st.last("mac.c", p, alpha, mac, c))
}

// steps measures operations on inputs whose errors are at their bounds.
func (st *study) steps() {
	s := st.s
	zero := st.synthetic("zero", nil)
	other := st.synthetic("other", nil)
	left, right := s.Left(zero.ct), s.Right(other.ct)
	st.note("rounding", honest, norm(st.errorOf(encrypted{st.exact.Mul(left, right), zero.coeffs, zero.slots})))

	// Every value of the product's error is P·(wrap_x·v_y + wrap_y·v_x); all of them are at their
	// maximum.
	fresh := st.bound("fresh")
	for i, wrap := range []embedding{st.wraps(honest, other.ct), st.wraps(honest, zero.ct)} {
		st.addError([]encrypted{zero, other}[i].ct, inPhase(fresh, wrap))
	}
	left, right = s.Left(zero.ct), s.Right(other.ct)
	c, bare := st.real.Mul(left, right), st.exact.Mul(left, right)
	st.note("tensor", step, norm(st.k.phaseError(bare, zero.coeffs)))
	st.note("product", step, norm(st.k.phaseError(c, zero.coeffs)))

	// At the last level errors cannot be in phase with the other factor, because honest parties
	// make its c1 uniform after witnesses are fixed; alpha·a is the exception.
	mac := st.synthetic("alpha", st.randomPhases("alpha", st.bound("alpha")))
	st.lastStep(mac)
	wrap := st.wraps(honest, mac.ct)
	for j := range wrap {
		wrap[j] *= st.p[j]
	}
	st.last("mac.a", step, s.Left(mac.ct), mac, st.synthetic("factor", inPhase(fresh, wrap)))
}

// matrices measures MatMul with the inner dimension of the instance. Either all ciphertexts are the
// same, or all differ.
func (st *study) matrices(p pattern) {
	s, d := st.s, st.inst.Use.Dim
	var x, y []encrypted
	for i := range d {
		if p == aligned && i > 0 {
			x, y = append(x, x[0]), append(y, x[0])
			continue
		}
		x = append(x, st.encrypt(st.witness(p, st.inst.Proof, uint64(100+i))))
		if p != aligned {
			y = append(y, st.encrypt(st.witness(p, st.inst.Proof, uint64(10000+i))))
		} else {
			y = append(y, x[0])
		}
	}
	grid := func(v []encrypted) gbfv.Grid {
		g := gbfv.Grid{Rows: 1, Cols: 1, Dim: d}
		for _, e := range v {
			g.C = append(g.C, e.ct)
		}
		return g
	}
	out, err := st.real.MatMul(context.Background(), grid(x), grid(y), 2)
	if err != nil {
		st.t.Fatal(err)
	}
	bare, err := st.exact.MatMul(context.Background(), grid(x), grid(y), 2)
	if err != nil {
		st.t.Fatal(err)
	}
	mac := st.encrypt(st.witness(p, st.inst.MACKey, 2))
	alpha := s.Left(mac.ct)
	for _, i := range slices.Compact([]int{0, 1 % d, d / 2, d - 1}) {
		c := st.known(out.C[i], st.entry(x, y, i))
		st.note("tensor", p, norm(st.k.phaseError(bare.C[i], c.coeffs)))
		st.note("ks.matmul", p, norm(st.difference(c.ct, bare.C[i])))
		st.note("product", p, norm(st.errorOf(c)))
		st.switched(p, st.last("mac.c", p, alpha, mac, c))
	}
	st.lastStep(st.synthetic("alpha", st.randomPhases("alpha", st.bound("alpha"))))
}

// sacrificed measures the additional products of the sacrifice of matrix products: one product of
// two proved ciphertexts, and that product times alpha. It compares them with the bounds of the
// products of matrices, which cover them.
func (st *study) sacrificed(p pattern) {
	f, g := st.encrypt(st.witness(p, st.inst.Proof, 20)), st.encrypt(st.witness(p, st.inst.Proof, 21))
	if p == aligned {
		g = f
	}
	mac := st.encrypt(st.witness(p, st.inst.MACKey, 2))
	h := st.known(st.real.Mul(st.s.Left(f.ct), st.s.Right(g.ct)), mulVec(st.s.Field, f.slots, g.slots))
	st.note("sacrifice.h", p, norm(st.errorOf(h)))
	st.switched(p, st.last("sacrifice.mac", p, st.s.Left(mac.ct), mac, h))
}

// lastStep measures alpha·c and the switch when the errors of alpha and c are at their bounds.
func (st *study) lastStep(mac encrypted) {
	product := st.synthetic("product", st.randomPhases("product", st.bound("product")))
	st.switched(step, st.last("mac.c", step, st.s.Left(mac.ct), mac, product))
}

// entry returns output i of a product: the sum over k of x_k and rotation i of y_{i-k}.
func (st *study) entry(x, y []encrypted, i int) field.Vec {
	f, d, slots := st.s.Field, len(x), st.s.Slots()
	sum, rotated := f.NewVec(slots), f.NewVec(slots)
	for k := range d {
		from := y[(i-k+d)%d].slots
		for j := range slots {
			copy(rotated.At(j), from.At((j+i*(slots/d))%slots))
		}
		f.MulVec(rotated, rotated, x[k].slots)
		f.AddVec(sum, sum, rotated)
	}
	return sum
}

// inPhase returns the error of size bound in every embedding for which the values of v·error are
// real and positive.
func inPhase(bound float64, v embedding) embedding {
	out := make(embedding, len(v))
	for j, x := range v {
		out[j] = complex(bound, 0)
		if r := cmplx.Abs(x); r > 0 {
			out[j] *= cmplx.Conj(x) / complex(r, 0)
		}
	}
	return out
}

// randomPhases returns an error of size bound in every embedding, with random phases.
func (st *study) randomPhases(label string, bound float64) embedding {
	return randomPhases(st.s.N(), bound, st.source.Stream("phases "+label))
}

// A subject is one instance that is studied.
type subject struct {
	set, field   string
	parties, dim int  // of matrix blocks; 1 for scalars
	proved       bool // keys at the bounds of their proofs
}

func (c subject) String() string {
	s := fmt.Sprintf("%s/%s/n=%d/d=%d", c.set, c.field, c.parties, c.dim)
	if c.proved {
		s += "/proved"
	}
	return s
}

// run studies a subject.
func (c subject) run(t testing.TB) *study {
	t.Helper()
	s := newScheme(t, c.set, c.field)
	set, patterns := s.Set, []pattern{honest, signs, aligned}
	if c.proved {
		set, patterns = set.Proved(), patterns[1:]
	}
	inst, err := params.Resolve(set, c.field, params.Use{Parties: c.parties, Dim: c.dim})
	if err != nil {
		t.Fatal(err)
	}
	st := newStudy(t, s, inst, max(2, c.dim))
	if c.dim > 1 {
		for _, p := range patterns {
			if c.dim <= 16 || p == aligned { // avoids hundreds of ciphertexts
				st.matrices(p)
			}
			st.sacrificed(p)
		}
		return st
	}
	st.keys()
	st.rotation()
	for _, p := range patterns {
		st.chain(p)
	}
	st.steps()
	return st
}
