package gbfv

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// PublicKey is (P0, P1) = (-a·s + e, a) in evaluation form on basis Q.
type PublicKey struct{ P0, P1 ring.NTT }

// MessageWords returns the number of words of a coefficient of a random plaintext or a PoPK
// response: digits of b times Gaussians below 2^24, with a sign.
func (s *Scheme) MessageWords() int { return (s.Spec.B.BitLen() + 26 + 63) / 64 }

// EncryptWith sets dst = r0·pk + (Delta·mu + r1, r2) mod q. It is linear over R in (mu, r): it adds
// exactly Delta·mu without rounding, as the proof of plaintext knowledge requires. mu may have any
// width; coefficients of r have one word and are below 2^31 in magnitude. Both are secret.
func (s *Scheme) EncryptWith(dst *Ciphertext, pk *PublicKey, mu intpoly.Poly, r [3]intpoly.Poly) {
	if mu.N() != s.N() {
		panic(fmt.Sprintf("gbfv: a message of %d coefficients does not match ring degree %d", mu.N(), s.N()))
	}
	m, p := s.Q.BorrowNTT(), s.Q.Borrow()
	s.Q.FromInt(p, mu)
	s.Q.Forward(m, p)
	s.encrypt(dst, pk, r, func(acc ring.NTT) { s.Q.MulAddNTT(acc, m, s.delta) })
	p.Zero()
	p.Free()
	m.Zero()
	m.Free()
}

// EncryptDiagWith is EncryptWith for mu in Z[X^D]; it ignores other coefficients. Delta is in this
// ring too.
func (s *Scheme) EncryptDiagWith(dst *Ciphertext, pk *PublicKey, mu intpoly.Poly, r [3]intpoly.Poly) {
	s.encrypt(dst, pk, r, func(ring.NTT) {})
	n := s.Pack.M()
	short, residues := intpoly.New(n, mu.W), ring.Poly{}
	for i := range n {
		copy(short.Coeff(i), mu.Coeff(i*s.Slots()))
	}
	for range s.Q.Len() {
		residues.C = append(residues.C, make([]uint64, n))
	}
	s.Q.FromInt(residues, short)
	s.Q.MulAddSubring(dst.C0, s.shortDelta, residues, s.Slots())
	short.Wipe()
	residues.Zero()
}

// encrypt sets dst = (r0·pk + (r1, r2) mod q). The callback add adds the message to the first part
// in evaluation form.
func (s *Scheme) encrypt(dst *Ciphertext, pk *PublicKey, r [3]intpoly.Poly, add func(acc ring.NTT)) {
	for _, v := range r {
		if v.N() != s.N() {
			panic(fmt.Sprintf("gbfv: a polynomial of %d coefficients does not match ring degree %d", v.N(), s.N()))
		}
	}
	p, e0, acc := s.Q.Borrow(), s.Q.BorrowNTT(), s.Q.BorrowNTT()
	defer func() {
		p.Zero()
		p.Free()
		for _, x := range []ring.NTT{e0, acc} {
			x.Zero()
			x.Free()
		}
	}()
	s.Q.FromSmall(p, r[0])
	s.Q.Forward(e0, p)

	s.Q.MulNTT(acc, e0, pk.P0)
	add(acc)
	s.Q.Inverse(dst.C0, acc)
	s.Q.FromSmall(p, r[1])
	s.Q.Add(dst.C0, dst.C0, p)

	s.Q.MulNTT(acc, e0, pk.P1)
	s.Q.Inverse(dst.C1, acc)
	s.Q.FromSmall(p, r[2])
	s.Q.Add(dst.C1, dst.C1, p)
}
