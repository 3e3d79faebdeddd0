package gbfv

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// PublicKey is (P0, P1) = (-a·s + e, a) in evaluation form on basis Q.
type PublicKey struct{ P0, P1 ring.NTT }

// MessageWords is the number of words of a coefficient of a random plaintext or a PoPK response: digits of
// b times Gaussians below 2^24, with a sign.
func (s *Scheme) MessageWords() int { return (s.Spec.B.BitLen() + 26 + 63) / 64 }

// EncryptWith sets dst = r0·pk + (Delta·mu + r1, r2) mod q. It is linear over R in (mu, r), with exactly
// Delta·mu and no rounding, as the proof of plaintext knowledge needs. mu may have any width; coefficients of r
// are of one word, below 2^31 in magnitude. Both are secret.
func (s *Scheme) EncryptWith(dst *Ciphertext, pk *PublicKey, mu intpoly.Poly, r [3]intpoly.Poly) {
	for _, v := range []intpoly.Poly{mu, r[0], r[1], r[2]} {
		if v.N() != s.N() {
			panic(fmt.Sprintf("gbfv: polynomial of %d coefficients in a ring of degree %d", v.N(), s.N()))
		}
	}
	p, e0, m, acc := s.Q.Borrow(), s.Q.BorrowNTT(), s.Q.BorrowNTT(), s.Q.BorrowNTT()
	defer func() {
		p.Zero()
		p.Free()
		for _, x := range []ring.NTT{e0, m, acc} {
			x.Zero()
			x.Free()
		}
	}()
	s.Q.FromSmall(p, r[0])
	s.Q.Forward(e0, p)
	s.Q.FromInt(p, mu)
	s.Q.Forward(m, p)

	s.Q.MulNTT(acc, e0, pk.P0)
	s.Q.MulAddNTT(acc, m, s.delta)
	s.Q.Inverse(dst.C0, acc)
	s.Q.FromSmall(p, r[1])
	s.Q.Add(dst.C0, dst.C0, p)

	s.Q.MulNTT(acc, e0, pk.P1)
	s.Q.Inverse(dst.C1, acc)
	s.Q.FromSmall(p, r[2])
	s.Q.Add(dst.C1, dst.C1, p)
}
