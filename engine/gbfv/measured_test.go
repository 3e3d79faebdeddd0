package gbfv_test

import (
	"math"
	"math/big"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// measured is a key whose secret and errors are measured.
type measured struct {
	*gbfvtest.Key
	scheme *gbfv.Scheme
}

// bounds are the canonical norms of a key's secret and errors.
type bounds struct{ secret, error, relinError float64 }

// atBounds returns a key whose secret and errors have values of one size, with random phases: the
// worst key that proofs of its shares accept.
func atBounds(s *gbfv.Scheme, b bounds, dim int, seed []byte) *gbfvtest.Key {
	source := sample.NewSource(seed)
	// ofNorm subtracts the amount that rounding to integers may add.
	ofNorm := func(label string, size float64, index ...uint64) ring.NTT {
		phases := source.Stream("phases "+label, index...)
		size -= 3 * math.Sqrt(float64(s.N()))
		v, p, out := intpoly.New(s.N(), 1), s.Q.NewPoly(), s.Q.NewNTT()
		setFloats(v, randomPhases(s.N(), size, phases).coefficients())
		s.Q.FromInt(p, v)
		s.Q.Forward(out, p)
		return out
	}
	errors := func(label string, index ...uint64) ring.NTT {
		size := b.error
		if label == gbfvtest.Relin {
			size = b.relinError
		}
		return ofNorm("error "+label, size, index...)
	}
	return gbfvtest.WithErrors(s, ofNorm("secret", b.secret), errors, dim, seed)
}

// noise returns the largest coefficient of the phase error of ct as an encryption of slots: of c0 +
// c1·s - (q/P)·mu, centred, to within 1. It also accepts ciphertexts after SwitchModulus.
func (k measured) noise(ct *gbfv.Ciphertext, slots field.Vec) *big.Int {
	coeffs := k.scheme.Field.NewVec(k.scheme.Slots())
	k.scheme.Pack.Pack(coeffs, slots)
	top := new(big.Int)
	for _, c := range k.phaseError(ct, coeffs) {
		if c.CmpAbs(top) > 0 {
			top.Abs(c)
		}
	}
	return top
}

// phaseError returns the error whose largest coefficient noise returns, for a message given as
// coefficients c_j in Z_p.
func (k measured) phaseError(ct *gbfv.Ciphertext, coeffs field.Vec) []*big.Int {
	s := k.scheme
	primes := len(ct.C0.C)
	b := s.Prefix(primes)
	x, ideal := b.NewPoly(), b.NewPoly()
	s.Phase(x, ct, k.Secret, primes)
	s.ScalePlain(ideal, coeffs, primes)
	b.Sub(x, x, ideal)
	return b.ToBig(x)
}

// secretPoly returns the joint secret.
func (k measured) secretPoly() []*big.Int { return k.coefficients(k.Secret) }

// publicError returns the error of the public key, P0 + P1·s.
func (k measured) publicError() []*big.Int {
	q := k.scheme.Q
	t := q.NewNTT()
	q.MulNTT(t, k.Public.P1, k.Secret)
	q.AddNTT(t, t, k.Public.P0)
	return k.coefficients(t)
}

func (k measured) coefficients(v ring.NTT) []*big.Int {
	q := k.scheme.Q
	p := q.NewPoly()
	q.Inverse(p, v)
	return q.ToBig(p)
}

// exact returns the keys of Eval without their errors: the same uniform halves, and K0_j = s'·g_j -
// K1_j·s. The phase of a result under Eval minus that under exact is the error of key switching.
func (k measured) exact() gbfv.Keys {
	q := k.scheme.Q
	square := q.NewNTT()
	q.MulNTT(square, k.Secret, k.Secret)
	return &exactKeys{k, k.without(k.Eval.Relin(), square)}
}

type exactKeys struct {
	measured
	relin *gbfv.SwitchKey
}

// without removes the errors from a switching key from target.
func (k measured) without(key *gbfv.SwitchKey, target ring.NTT) *gbfv.SwitchKey {
	s := k.scheme
	out := &gbfv.SwitchKey{K1: key.K1}
	for j, a := range key.K1 {
		k0, t := s.Q.NewNTT(), s.Q.NewNTT()
		s.Q.MulNTT(t, a, k.Secret)
		s.Q.SubNTT(k0, k0, t)
		s.AddGadget(k0, target, j)
		out.K0 = append(out.K0, k0)
	}
	return out
}

func (e *exactKeys) Relin() *gbfv.SwitchKey { return e.relin }

func (e *exactKeys) Rotation(i, d int) (*gbfv.SwitchKey, error) {
	key, err := e.Eval.Rotation(i, d)
	if err != nil {
		return nil, err
	}
	rotated := e.scheme.Q.NewNTT()
	e.scheme.Q.AutomorphismNTT(rotated, e.Secret, gbfv.Galois(e.scheme.N(), i, d))
	return e.without(key, rotated), nil
}
