package lwe_test

import (
	"math/big"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// secretKey is the pair of secrets: the coefficients of z, in {-1, 0, 1}, and the bits of s, both
// as residues, with z in evaluation form too.
type secretKey struct {
	Scheme    *lwe.Scheme
	Z, S, NTT []uint64
}

// drawSecret draws a secret. Test keys come from one secret that is held in one place; production
// keys come from a distributed protocol, and nobody has their secret.
func drawSecret(s *lwe.Scheme, source *sample.Source) *secretKey {
	k := &secretKey{s, make([]uint64, s.N()), make([]uint64, s.Dim), make([]uint64, s.N())}
	z := make([]int64, s.N())
	lwe.Differences(z, source.Stream("z"))
	s.FromSigned(k.Z, z)
	s.Forward(k.NTT, k.Z)
	sample.Uniform(k.S, 2, source.Stream("s"))
	return k
}

// Keys makes public keys whose errors have the variances of the noise model n.
func (k *secretKey) Keys(n lwe.Noise, source *sample.Source) *lwe.Keys {
	s, mod := k.Scheme, k.Scheme.Modulus()
	var seed [lwe.SeedSize]byte
	source.Stream("seed").Read(seed[:])
	keys := s.NewKeys(seed)
	ring, switches := newErrors(n.Ring), newErrors(n.Switch)

	s.UniformPublic(keys.Public, &keys.Seed)
	mod.MulVec(keys.Public, keys.Public, k.NTT)
	noise := make([]uint64, s.N())
	k.errors(noise, ring, source.Stream("public"))
	s.Forward(noise, noise)
	mod.AddVec(keys.Public, keys.Public, noise)

	parallel.For(2, s.Dim, func(i int) { k.rotation(keys, i, ring, source) })
	parallel.For(2, s.N(), func(i int) { k.switching(keys, i, switches, source) })
	return keys
}

// rotation makes the rows of coordinate i.
func (k *secretKey) rotation(keys *lwe.Keys, i int, errors *lwe.Errors, source *sample.Source) {
	s, mod, n := k.Scheme, k.Scheme.Modulus(), k.Scheme.N()
	uniform, message := make([]uint64, s.RotationRows()*n), make([]uint64, n)
	s.UniformRotation(uniform, &keys.Seed, i)
	digits := s.Set.Rotation.Digits
	for r := range s.RotationRows() {
		row := keys.RotationRow(i, r)
		k.errors(row, errors, source.Stream("rotation", uint64(i), uint64(r)))
		s.Forward(row, row)
		mod.MulAddVec(row, uniform[r*n:(r+1)*n], k.NTT)
		g := mod.Mul(k.S[i], s.Set.Rotation.Factor(s.Q, r%digits))
		if r < digits {
			mod.ScaleVec(message, k.NTT, mod.Neg(g))
		} else {
			for j := range message { // a constant has the same value everywhere
				message[j] = g
			}
		}
		mod.AddVec(row, row, message)
	}
}

// switching makes the samples of z_i.
func (k *secretKey) switching(keys *lwe.Keys, i int, errors *lwe.Errors, source *sample.Source) {
	s, mod := k.Scheme, k.Scheme.Modulus()
	digits := s.Switch.Digits
	uniform := make([]uint64, digits*s.Dim)
	s.UniformSwitch(uniform, &keys.Seed, i)
	b := keys.Switch[i*digits : (i+1)*digits]
	k.errors(b, errors, source.Stream("switch", uint64(i)))
	for j := range b {
		b[j] = mod.Add(b[j], s.Dot(uniform[j*s.Dim:(j+1)*s.Dim], k.S))
		b[j] = mod.Add(b[j], mod.Mul(k.Z[i], s.Switch.Factor(s.Q, j)))
	}
}

func newErrors(variance float64) *lwe.Errors {
	e, err := lwe.NewErrors(variance)
	if err != nil {
		panic(err)
	}
	return e
}

func (k *secretKey) errors(dst []uint64, e *lwe.Errors, stream *sample.Stream) {
	v := make([]int64, len(dst))
	e.Sample(v, stream)
	k.Scheme.FromSigned(dst, v)
}

// Phase is B - <A, z>.
func (k *secretKey) Phase(c *lwe.LWE) uint64 {
	mod := k.Scheme.Modulus()
	return mod.Sub(c.B, k.Scheme.Dot(c.A, k.Z))
}

// RingPhase is B - A z.
func (k *secretKey) RingPhase(c *lwe.Ring) []uint64 {
	s, mod := k.Scheme, k.Scheme.Modulus()
	p := make([]uint64, s.N())
	s.Forward(p, c.A)
	mod.MulVec(p, p, k.NTT)
	s.Inverse(p, p)
	mod.SubVec(p, c.B, p)
	return p
}

// Decrypt is the message of c.
func (k *secretKey) Decrypt(c *lwe.LWE, e lwe.Encoding) uint64 { return k.Scheme.Decode(k.Phase(c), e) }

// Encrypt encrypts a message under the secret itself, with the errors of the set.
func (k *secretKey) Encrypt(m uint64, e lwe.Encoding, source *sample.Source) (*lwe.LWE, error) {
	s, mod := k.Scheme, k.Scheme.Modulus()
	phase, err := s.Encode(m, e)
	if err != nil {
		return nil, err
	}
	c := s.NewLWE()
	sample.Uniform(c.A, s.Q, source.Stream("a"))
	b := []uint64{0}
	k.errors(b, newErrors(s.Variance), source.Stream("e"))
	c.B = mod.Add(mod.Add(b[0], phase), s.Dot(c.A, k.Z))
	return c, nil
}

// centred is x mod Q in (-Q/2, Q/2).
func centred(x, q uint64) int64 {
	if x > q/2 {
		return int64(x) - int64(q)
	}
	return int64(x)
}

// Error is the noise of c, whose message is m.
func (k *secretKey) Error(c *lwe.LWE, m uint64, e lwe.Encoding) int64 {
	phase, err := k.Scheme.Encode(m, e)
	if err != nil {
		panic(err)
	}
	mod := k.Scheme.Modulus()
	return centred(mod.Sub(k.Phase(c), phase), k.Scheme.Q)
}

// meanSquare is the mean of the squares of v.
func meanSquare(v []int64) float64 {
	sum := new(big.Int)
	for _, x := range v {
		y := big.NewInt(x)
		sum.Add(sum, y.Mul(y, y))
	}
	f, _ := new(big.Float).SetInt(sum).Float64()
	return f / float64(max(len(v), 1))
}
