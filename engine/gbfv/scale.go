package gbfv

import (
	"math/big"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// scaler encodes plaintexts modulo q'. For mu in Z[X] and the digits r of -q'·mu modulo P, (q'·mu +
// r)/P has integer coefficients, which modulo q' equal those of r/P. They differ from q'/P·mu by
// r/P.
type scaler struct {
	factor  field.Element // -q'
	divisor *ring.Binomial
}

func newScaler(s *Scheme, basis *ring.Basis) *scaler {
	z := &scaler{factor: s.Field.NewElement(), divisor: ring.NewBinomial(basis, s.Slots(), s.Spec.B)}
	s.Field.SetBig(z.factor, new(big.Int).Neg(basis.Modulus()))
	return z
}

// ScalePlain sets dst to an integer close to q'/P·mu in every coefficient, modulo q', for the
// plaintext mu with the coefficients c_j in Z_p. q' is the product of the first k primes of Q and
// dst is on Prefix(k). The error is at most (b/2+1)/(b-1), slightly more than half, as digits are
// at most b/2+1. The operations do not depend on the coefficients.
func (s *Scheme) ScalePlain(dst ring.Poly, coeffs field.Vec, k int) {
	p := s.prefix(k)
	scaled, digits, r := s.Field.NewVec(s.Slots()), intpoly.New(s.N(), s.Pack.DigitWords()), p.basis.Borrow()
	s.Field.ScaleVec(scaled, coeffs, p.scale.factor)
	s.Pack.Digits(digits, scaled)
	p.basis.FromInt(r, digits)
	p.scale.divisor.Divide(dst, r)
	scaled.Wipe()
	digits.Wipe()
	r.Zero()
	r.Free()
}
