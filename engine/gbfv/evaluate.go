package gbfv

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// A product treats its two operands differently (MatriGear, section 3.2, computed in RNS): the left
// one is scaled to round(Q'/q·ct) and extended to qQ', the right one is only extended. A prepared
// operand can be used in any number of products.

// Left is the left operand of products, in evaluation form on basis Full.
type Left struct{ c [2]ring.NTT }

// Right is the right operand of products, in evaluation form on basis Full.
type Right struct{ c [2]ring.NTT }

// Free frees the operand's storage for reuse. The operand must not be used afterwards.
func (l *Left) Free() { freeAll(l.c[:]) }

// Free frees the operand's storage for reuse. The operand must not be used afterwards.
func (r *Right) Free() { freeAll(r.c[:]) }

func freeAll(list []ring.NTT) {
	for _, p := range list {
		p.Free()
	}
}

// Left prepares ct as a left operand.
func (s *Scheme) Left(ct *Ciphertext) *Left {
	var out Left
	p, t := s.Full.Borrow(), s.Q.Borrow()
	defer p.Free()
	defer t.Free()
	low, high := s.split(p)
	for i, c := range []ring.Poly{ct.C0, ct.C1} {
		s.scaleToAux(high, c, t)
		s.auxToQ.Extend(low, high)
		out.c[i] = s.Full.BorrowNTT()
		s.Full.Forward(out.c[i], p)
	}
	return &out
}

// Right prepares ct as a right operand.
func (s *Scheme) Right(ct *Ciphertext) *Right {
	var out Right
	p := s.Full.Borrow()
	defer p.Free()
	low, high := s.split(p)
	for i, c := range []ring.Poly{ct.C0, ct.C1} {
		for l := range low.C {
			copy(low.C[l], c.C[l])
		}
		s.qToAux.Extend(high, c)
		out.c[i] = s.Full.BorrowNTT()
		s.Full.Forward(out.c[i], p)
	}
	return &out
}

// split returns the parts on Q and Aux of a polynomial on Full, without copying.
func (s *Scheme) split(p ring.Poly) (low, high ring.Poly) {
	l := s.Q.Len()
	return ring.Poly{C: p.C[:l]}, ring.Poly{C: p.C[l:]}
}

// scaleToAux sets dst, on Aux, to round(Q'/q·c). With t = Q'·c mod q, centred, Q'·c = t + q·w
// defines w; dividing the number that is 0 mod Q' and t mod q by q yields w mod Q'. t is scratch on
// Q.
func (s *Scheme) scaleToAux(dst, c, t ring.Poly) {
	s.Q.MulScalar(t, c, s.auxModQ)
	dst.Zero()
	s.toAux.DivRound(dst, dst, t)
}

// Evaluator multiplies ([Evaluator.Mul], [Evaluator.MatMul]) and rotates ([Evaluator.Rotate]) with
// a set of evaluation [Keys]. It is safe for concurrent use if its keys are.
type Evaluator struct {
	*Scheme
	Keys Keys
	// Ended, unless nil, is called after each piece of a longer evaluation, by several goroutines
	// concurrently.
	Ended func()
}

// Tick calls Ended, unless it is nil.
func (e *Evaluator) Tick() {
	if e.Ended != nil {
		e.Ended()
	}
}

// NewEvaluator returns an evaluator of s.
func NewEvaluator(s *Scheme, keys Keys) *Evaluator { return &Evaluator{Scheme: s, Keys: keys} }

// Mul returns the relinearised product.
func (e *Evaluator) Mul(a *Left, b *Right) *Ciphertext {
	s := e.Scheme
	t, p := s.Full.BorrowNTT(), s.Full.Borrow()
	defer t.Free()
	defer p.Free()
	low, _ := s.split(p)
	out := s.Borrow()

	s.Full.MulNTT(t, a.c[0], b.c[0])
	s.divideTensor(out.C0, t, p)
	s.Full.MulNTT(t, a.c[0], b.c[1])
	s.Full.MulAddNTT(t, a.c[1], b.c[0])
	s.divideTensor(out.C1, t, p)
	s.Full.MulNTT(t, a.c[1], b.c[1])
	s.divideTensor(low, t, p)

	acc := s.accumulator()
	defer acc.done()
	acc.add(low, e.Keys.Relin())
	acc.addTo(out)
	return out
}

// divideTensor sets dst, on Q, to P·round(t/Q'). p is scratch on Full; dst may be its part on Q.
func (s *Scheme) divideTensor(dst ring.Poly, t ring.NTT, p ring.Poly) {
	s.Full.Inverse(p, t)
	low, high := s.split(p)
	quotient := s.Q.Borrow()
	defer quotient.Free()
	s.fromAux.DivRound(quotient, low, high)
	s.mulP(dst, quotient)
}

// addTo adds the collected sums to ct.
func (a *accumulator) addTo(ct *Ciphertext) {
	a.s.Q.Inverse(a.digit, a.c0)
	a.s.Q.Add(ct.C0, ct.C0, a.digit)
	a.s.Q.Inverse(a.digit, a.c1)
	a.s.Q.Add(ct.C1, ct.C1, a.digit)
}

// Rotate returns ct with rotation i of dimension d applied: in every d x d matrix layout, slots
// move i·D/d places to the left. With d = Slots these are i places. d is a power of two up to
// Slots.
//
// The gadget's wide digits cost noise that only evaluated ciphertexts can spare: the shipped sets
// do not support rotating a fresh ciphertext and then multiplying it twice.
func (e *Evaluator) Rotate(ct *Ciphertext, i, d int) (*Ciphertext, error) {
	s := e.Scheme
	if !s.validDim(d) {
		return nil, fmt.Errorf("gbfv: rotation dimension %d is not a power of two up to %d slots", d, s.Slots())
	}
	if i = (i%d + d) % d; i == 0 {
		return ct.Clone(), nil
	}
	key, err := e.Keys.Rotation(i, d)
	if err != nil {
		return nil, err
	}
	defer key.freeUniform()
	g := Galois(s.N(), i, d)
	out, rotated := s.NewCiphertext(), s.Q.Borrow()
	defer rotated.Free()
	s.Q.Automorphism(out.C0, ct.C0, g)
	s.Q.Automorphism(rotated, ct.C1, g)
	acc := s.accumulator()
	defer acc.done()
	acc.add(rotated, key)
	acc.addTo(out)
	return out, nil
}
