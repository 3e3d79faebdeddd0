// Package gbfvtest creates generalized BFV keys in one process, for tests only: the caller holds
// every party's secret. Real keys come from distributed key generation.
package gbfvtest

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Key is a joint key whose secret is the sum of the parties' shares.
type Key struct {
	Shares []ring.NTT
	Secret ring.NTT // the sum of Shares
	Public *gbfv.PublicKey
	Eval   gbfv.Keys

	scheme *gbfv.Scheme
	source *sample.Source
	error  Errors
}

// Errors returns the error of one sample of a key. The label is that of the sample's key: Relin,
// "public" or "rotation". For a joint key it can also be a round of the relinearisation key.
type Errors func(label string, index ...uint64) ring.NTT

// Relin is the label of the errors of a relinearisation key that WithErrors makes.
const Relin = "relin"

// New returns the joint key of n parties with rotation keys for dimension dim (1 for none),
// generated as each party would: errors and secrets are sums of n samples of the set's
// distributions. The seed has at least 32 bytes.
func New(s *gbfv.Scheme, n, dim int, seed []byte) *Key {
	k := &Key{scheme: s, source: sample.NewSource(seed), Secret: s.Q.NewNTT()}
	k.error = k.sum
	for party := range n {
		share := k.small("secret", s.Set.Secret, s.Set.SecretWidth, uint64(party))
		k.Shares = append(k.Shares, share)
		s.Q.AddNTT(k.Secret, k.Secret, share)
	}
	k.complete(dim, k.relinKey())
	return k
}

// WithErrors returns the key of a given secret whose samples have the given errors. It has no
// shares. The seed, of at least 32 bytes, serves Encrypt and Random.
func WithErrors(s *gbfv.Scheme, secret ring.NTT, errors Errors, dim int, seed []byte) *Key {
	k := &Key{scheme: s, source: sample.NewSource(seed), Secret: secret, error: errors}
	square := s.Q.NewNTT()
	s.Q.MulNTT(square, k.Secret, k.Secret)
	k.complete(dim, k.switchKey(square, Relin, 0))
	return k
}

// complete computes the public key and the table of evaluation keys.
func (k *Key) complete(dim int, relin *gbfv.SwitchKey) {
	s := k.scheme
	zero := s.Q.NewNTT()
	pk := k.switchKey(zero, "public", 0)
	k.Public = &gbfv.PublicKey{P0: pk.K0[0], P1: pk.K1[0]}

	table := &gbfv.KeyTable{
		N: s.N(), RelinKey: relin, K0: map[int][]ring.NTT{},
		Uniform: func(g int) []ring.NTT { return k.uniform("rotation", uint64(g)) },
	}
	for i := 1; i < dim; i++ {
		g := gbfv.Galois(s.N(), i, dim)
		rotated := s.Q.NewNTT()
		s.Q.AutomorphismNTT(rotated, k.Secret, g)
		table.K0[g] = k.switchKey(rotated, "rotation", uint64(g)).K0
	}
	k.Eval = table
}

// small samples a polynomial from a distribution.
func (k *Key) small(label string, dist params.Dist, width float64, index ...uint64) ring.NTT {
	s := k.scheme
	v := make([]int64, s.N())
	stream := k.source.Stream(label, index...)
	if dist == params.Ternary {
		sample.Ternary(v, stream)
	} else {
		gaussian(width).Sample(v, stream)
	}
	return k.lift(v)
}

func (k *Key) lift(v []int64) ring.NTT {
	s := k.scheme
	ip, p, out := intpoly.New(s.N(), 1), s.Q.NewPoly(), s.Q.NewNTT()
	intpoly.FromInt64(ip, v)
	s.Q.FromInt(p, ip)
	s.Q.Forward(out, p)
	return out
}

func gaussian(width float64) *sample.Gaussian {
	g, err := sample.NewGaussian(width)
	if err != nil {
		panic(err)
	}
	return g
}

// uniform expands the halves K1 of one switching key.
func (k *Key) uniform(label string, index uint64) []ring.NTT {
	s := k.scheme
	all := make([]ring.NTT, s.GadgetDigits())
	for j := range all {
		all[j] = s.Q.NewNTT()
		sample.Expand(all[j].C, s.Q.Primes(), []byte("gbfvtest uniform halves, 32 byte"), label, index, uint64(j))
	}
	return all
}

// switchKey returns a switching key from target to the secret.
func (k *Key) switchKey(target ring.NTT, label string, index uint64) *gbfv.SwitchKey {
	s := k.scheme
	key := &gbfv.SwitchKey{K1: k.uniform(label, index)}
	for j, a := range key.K1 {
		k0, t := k.error(label, index, uint64(j)), s.Q.NewNTT()
		s.Q.MulNTT(t, a, k.Secret)
		s.Q.SubNTT(k0, k0, t)
		s.AddGadget(k0, target, j)
		key.K0 = append(key.K0, k0)
	}
	return key
}

// sum returns the sum of one error per party.
func (k *Key) sum(label string, index ...uint64) ring.NTT {
	e := k.scheme.Q.NewNTT()
	for party := range k.Shares {
		own := append(append([]uint64(nil), index...), uint64(party))
		k.scheme.Q.AddNTT(e, e, k.small("error "+label, params.Gaussian, k.scheme.Set.ErrorWidth, own...))
	}
	return e
}

// relinKey computes the relinearisation key in the two rounds of key generation: H0 = -u·a + s·g +
// e0 and H1 = s·a + e1, then K0 = s·H0 + (u-s)·H1 + e2 and K1 = H1. Its error s·e0 + u·e1 + e2 is
// much larger than that of one party's key.
func (k *Key) relinKey() *gbfv.SwitchKey {
	s := k.scheme
	u := s.Q.NewNTT()
	for party := range k.Shares {
		s.Q.AddNTT(u, u, k.small("relin secret", s.Set.Secret, s.Set.SecretWidth, uint64(party)))
	}
	d := s.Q.NewNTT()
	s.Q.SubNTT(d, u, k.Secret)
	key := &gbfv.SwitchKey{}
	for j, a := range k.uniform("relin", 0) {
		h0, h1, t := k.error("relin h0", uint64(j)), k.error("relin h1", uint64(j)), s.Q.NewNTT()
		s.Q.MulNTT(t, u, a)
		s.Q.SubNTT(h0, h0, t)
		s.AddGadget(h0, k.Secret, j)
		s.Q.MulAddNTT(h1, k.Secret, a)
		k0 := k.error("relin second", uint64(j))
		s.Q.MulAddNTT(k0, k.Secret, h0)
		s.Q.MulAddNTT(k0, d, h1)
		key.K0, key.K1 = append(key.K0, k0), append(key.K1, h1)
	}
	return key
}

// Encrypt encrypts slots honestly under the joint key; index separates ciphertexts.
func (k *Key) Encrypt(slots field.Vec, index uint64) *gbfv.Ciphertext {
	s := k.scheme
	coeffs := s.Field.NewVec(s.Slots())
	s.Pack.Pack(coeffs, slots)
	mu := intpoly.New(s.N(), s.Pack.DigitWords())
	s.Pack.Digits(mu, coeffs)
	var r [3]intpoly.Poly
	v := make([]int64, s.N())
	for i := range r {
		r[i] = intpoly.New(s.N(), 1)
		gaussian(s.Set.ErrorWidth).Sample(v, k.source.Stream("encryption", index, uint64(i)))
		intpoly.FromInt64(r[i], v)
	}
	ct := s.NewCiphertext()
	s.EncryptWith(ct, k.Public, mu, r)
	return ct
}

// Decrypt returns the slots of a ciphertext on basis Q.
func (k *Key) Decrypt(ct *gbfv.Ciphertext) field.Vec {
	slots := k.scheme.Field.NewVec(k.scheme.Slots())
	k.scheme.Decrypt(slots, ct, k.Secret)
	return slots
}

// Random returns uniform slots; index separates vectors.
func (k *Key) Random(index uint64) field.Vec {
	v := k.scheme.Field.NewVec(k.scheme.Slots())
	if err := k.scheme.Field.Random(v, k.source.Stream("slots", index)); err != nil {
		panic(err)
	}
	return v
}
