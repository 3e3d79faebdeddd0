package linear

import (
	"bytes"
	"fmt"
	"math/big"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Answer is sent to the owner of the key. For a ciphertext modulo q_0, it holds c_1 and the
// coefficients of c_0 that the plan reads.
type Answer struct {
	key [32]byte
	c0  []uint64 // at the targets of the plan, in order
	c1  ring.Poly
}

// finish overwrites a ciphertext so that it reveals only its rounded phase to the owner of the key.
// It adds a fresh encryption of 0, doubles both where inputs are proved, adds a flood uniform in
// [-bound, bound] to every coefficient, and mask, N coefficients modulo T, to the message; then it
// switches to q_0. The source must be used for this ciphertext only.
func (p *PublicKey) finish(b, a ring.NTT, mask []uint64, bound *big.Int, source *sample.Source) (c0, c1 ring.Poly) {
	s := p.scheme
	c0, c1 = p.addZero(b, a, source)
	if s.HasProof() { // the bound of a proof is for the doubled ciphertext
		s.basis.Double(c0, c0)
		//lodge:check linear/proof-double the noise of an answer is not the one that was proved to
		//  be short
		s.basis.Double(c1, c1)
	}

	stream := source.Stream("linear answer flood")
	defer stream.Wipe()
	w := bound.BitLen()/64 + 1
	flood, add := intpoly.Poly{W: w, C: take[uint64](&words, w*s.N())}, s.basis.Borrow()
	sample.Flood(flood, bound, stream)
	//lodge:check linear/flood [swap=s.basis.FromInt(add, flood)=>add.Zero()] the noise of an answer
	//  reveals the matrix
	s.basis.FromInt(add, flood)
	giveBack(&words, flood.C)
	s.basis.Add(c0, c0, add)
	//lodge:check linear/mask [swap=s.message(add, mask)=>add.Zero()] unused coefficients of an
	//  answer reveal the matrix
	s.message(add, mask)
	s.basis.Add(c0, c0, add)
	wipe(add)
	return s.reduced(c0), s.reduced(c1)
}

// mask draws a uniform polynomial modulo T. The caller must return it to words.
func (s *Scheme) mask(source *sample.Source) []uint64 {
	stream := source.Stream("linear answer mask")
	defer stream.Wipe()
	m := take[uint64](&words, s.N())
	//lodge:check linear/mask-uniform [swap=s.T=>s.T / 2] unused coefficients of an answer are
	//  masked with half of the range
	sample.Uniform(m, s.T, stream)
	return m
}

// addZero adds a fresh encryption of 0 to a ciphertext, and returns the halves in coefficient form,
// in place. It adds no error to c_0, because the flood is still to be added there.
func (p *PublicKey) addZero(b, a ring.NTT, source *sample.Source) (c0, c1 ring.Poly) {
	s := p.scheme
	u := s.basis.BorrowNTT()
	//lodge:check linear/zero-secret the zero encryption in an answer has no secret, and the
	//  quotient reveals the matrix
	s.ternary(u, source.Stream("linear answer secret"))
	s.basis.MulAddNTT(b, p.b[0], u)
	//lodge:check linear/zero an answer is a multiple of the input, and the quotient reveals the
	//  matrix
	s.basis.MulAddNTT(a, p.a[0], u)
	wipe(ring.Poly(u))
	c0, c1 = ring.Poly(b), ring.Poly(a)
	s.basis.Inverse(c0, b)
	s.basis.Inverse(c1, a)
	s.addErrors(c1, source.Stream("linear answer error"))
	return c0, c1
}

// reduced returns x q_0/Q, rounded, and wipes x.
func (s *Scheme) reduced(x ring.Poly) ring.Poly {
	to := s.first.Borrow()
	s.divide.DivRound(to, ring.Poly{C: x.C[:1]}, ring.Poly{C: x.C[1:]})
	wipe(x)
	return to
}

// answer keeps only the target coefficients of c_0.
func (p *PublicKey) answer(c0, c1 ring.Poly, targets []int) *Answer {
	a := &Answer{key: p.digest, c0: make([]uint64, len(targets)), c1: c1}
	for i, at := range targets {
		a.c0[i] = c0.C[0][at]
	}
	wipe(c0)
	return a
}

// checkNumber returns an error unless g is the number of an answer.
func checkNumber(g, answers int) error {
	//lodge:check linear/answer-number [drop=g >= answers] an answer outside the plan is accepted
	if g < 0 || g >= answers {
		return fmt.Errorf("%w: there is no answer %d among %d answers", ErrShape, g, answers)
	}
	return nil
}

// check returns an error unless the key is of the plan's set.
func (k *SecretKey) check(s *Scheme) error {
	//lodge:check linear/key-set a key of another parameter set is accepted
	if k.scheme.hash != s.hash {
		return fmt.Errorf("%w: the key is of set %s, but the plan is for set %s", ErrForeign, k.scheme.Name, s.Name)
	}
	return nil
}

// openAnswer returns the messages at the targets of encoded answer g. The error wraps [ErrShape],
// [ErrForeign] or [ErrAnswer].
func (k *SecretKey) openAnswer(s *Scheme, g, answers int, encoded []byte, targets []int) ([]uint64, error) {
	if err := checkNumber(g, answers); err != nil {
		return nil, err
	}
	if err := k.check(s); err != nil {
		return nil, err
	}
	a, err := k.decodeAnswer(encoded, len(targets))
	if err != nil {
		return nil, err
	}
	full := k.secretPart(a.c1)
	a.c1.Free()
	phase := make([]uint64, len(targets))
	for i, at := range targets {
		phase[i] = (full.C[0][at] + a.c0[i]) % s.Q[0]
	}
	wipe(full)
	return s.decode(phase), nil
}

// secretPart returns c_1 s modulo q_0.
func (k *SecretKey) secretPart(c1 ring.Poly) ring.Poly {
	s, p := k.scheme, k.scheme.first.Borrow()
	s.first.Forward(ring.NTT(p), c1)
	s.first.MulNTT(ring.NTT(p), ring.NTT(p), ring.NTT{C: k.s.Open().C[:1]})
	s.first.Inverse(p, ring.NTT(p))
	return p
}

// answerSize returns the size in bytes of an encoded answer.
func (s *Scheme) answerSize(targets int) int {
	return 32 + codec.PolySize(targets, s.Q[:1]) + codec.PolySize(s.N(), s.Q[:1])
}

// encodeAnswer returns the digest of the key, c_0 and c_1. It consumes the answer.
func (s *Scheme) encodeAnswer(a *Answer) []byte {
	b := append(make([]byte, 0, s.answerSize(len(a.c0))), a.key[:]...)
	b = codec.AppendPoly(b, [][]uint64{a.c0}, s.Q[:1])
	b = codec.AppendPoly(b, a.c1.C, s.Q[:1])
	a.c1.Free()
	return b
}

// decodeAnswer returns the inverse of encodeAnswer. The error wraps [ErrAnswer], or [ErrForeign].
func (k *SecretKey) decodeAnswer(b []byte, targets int) (*Answer, error) {
	s := k.scheme
	switch {
	//lodge:check linear/answer-length [swap=len(b) != s.answerSize(targets)=>len(b) < 32] an answer
	//  is decoded without a limit on its size
	case len(b) != s.answerSize(targets):
		return nil, fmt.Errorf("%w: it has %d bytes, want %d", ErrAnswer, len(b), s.answerSize(targets))
	//lodge:check linear/answer-key an answer under another key is accepted
	case !bytes.Equal(b[:32], k.digest[:]):
		return nil, fmt.Errorf("%w: the answer is under another key", ErrForeign)
	}
	a := &Answer{key: k.digest, c0: make([]uint64, targets), c1: s.first.Borrow()}
	at := 32 + codec.PolySize(targets, s.Q[:1])
	//lodge:check linear/answer-residues the first half of an answer has several encodings
	if err := codec.DecodePoly([][]uint64{a.c0}, s.Q[:1], b[32:at]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	//lodge:check linear/answer-uniform the second half of an answer has several encodings
	if err := codec.DecodePoly(a.c1.C, s.Q[:1], b[at:]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return a, nil
}
