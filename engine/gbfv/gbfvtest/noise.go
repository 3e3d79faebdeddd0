package gbfvtest

import (
	"math/big"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// Noise returns the largest coefficient of the phase error of ct as an encryption of slots: of c0 +
// c1·s - (q/P)·mu, centred, to within 1. It also accepts ciphertexts after SwitchModulus.
func (k *Key) Noise(ct *gbfv.Ciphertext, slots field.Vec) *big.Int {
	coeffs := k.scheme.Field.NewVec(k.scheme.Slots())
	k.scheme.Pack.Pack(coeffs, slots)
	top := new(big.Int)
	for _, c := range k.PhaseError(ct, coeffs) {
		if c.CmpAbs(top) > 0 {
			top.Abs(c)
		}
	}
	return top
}

// PhaseError returns the error whose largest coefficient Noise returns, for a message given as
// coefficients c_j in Z_p.
func (k *Key) PhaseError(ct *gbfv.Ciphertext, coeffs field.Vec) []*big.Int {
	s := k.scheme
	primes := len(ct.C0.C)
	b := s.Prefix(primes)
	x, ideal := b.NewPoly(), b.NewPoly()
	s.Phase(x, ct, k.Secret, primes)
	s.ScalePlain(ideal, coeffs, primes)
	b.Sub(x, x, ideal)
	return b.ToBig(x)
}

// SecretPoly returns the joint secret.
func (k *Key) SecretPoly() []*big.Int { return k.coefficients(k.Secret) }

// PublicError returns the error of the public key, P0 + P1·s.
func (k *Key) PublicError() []*big.Int {
	q := k.scheme.Q
	t := q.NewNTT()
	q.MulNTT(t, k.Public.P1, k.Secret)
	q.AddNTT(t, t, k.Public.P0)
	return k.coefficients(t)
}

func (k *Key) coefficients(v ring.NTT) []*big.Int {
	q := k.scheme.Q
	p := q.NewPoly()
	q.Inverse(p, v)
	return q.ToBig(p)
}

// Exact returns the keys of Eval without their errors: the same uniform halves, and K0_j = s'·g_j -
// K1_j·s. The phase of a result under Eval minus that under Exact is the error of key switching.
func (k *Key) Exact() gbfv.Keys {
	q := k.scheme.Q
	square := q.NewNTT()
	q.MulNTT(square, k.Secret, k.Secret)
	return &exact{k, k.without(k.Eval.Relin(), square)}
}

type exact struct {
	*Key
	relin *gbfv.SwitchKey
}

// without removes the errors from a switching key from target.
func (k *Key) without(key *gbfv.SwitchKey, target ring.NTT) *gbfv.SwitchKey {
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

func (e *exact) Relin() *gbfv.SwitchKey { return e.relin }

func (e *exact) Rotation(i, d int) (*gbfv.SwitchKey, error) {
	key, err := e.Eval.Rotation(i, d)
	if err != nil {
		return nil, err
	}
	rotated := e.scheme.Q.NewNTT()
	e.scheme.Q.AutomorphismNTT(rotated, e.Secret, gbfv.Galois(e.scheme.N(), i, d))
	return e.without(key, rotated), nil
}
