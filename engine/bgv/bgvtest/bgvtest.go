// Package bgvtest provides users that encrypt and evaluate with Lattigo, and operations with secret
// keys, for tests of threshold keys and decryption.
package bgvtest

import (
	"math/big"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	lattigo "github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/lodge-mpc/lodge/engine/bgv"
)

// User encrypts and evaluates under public keys.
type User struct {
	*bgv.Scheme
	encryptor *rlwe.Encryptor
	keys      *rlwe.MemEvaluationKeySet
}

// NewUser returns a user of these keys.
func NewUser(s *bgv.Scheme, k *bgv.Keys) *User {
	public, keys := s.KeysToLattigo(k)
	return &User{s, rlwe.NewEncryptor(s.Lattigo, public), keys}
}

// Values returns values for all slots, which depend on offset.
func (u *User) Values(offset uint64) []uint64 {
	v := make([]uint64, u.Lattigo.MaxSlots())
	for i := range v {
		v[i] = (uint64(i)*uint64(i)*77777 + offset) % u.T
	}
	return v
}

// Encrypt encrypts values in slots.
func (u *User) Encrypt(t testing.TB, values []uint64) *rlwe.Ciphertext {
	t.Helper()
	pt := lattigo.NewPlaintext(u.Lattigo, u.MaxLevel())
	if err := lattigo.NewEncoder(u.Lattigo).Encode(values, pt); err != nil {
		t.Fatal(err)
	}
	ct, err := u.encryptor.EncryptNew(pt)
	if err != nil {
		t.Fatal(err)
	}
	return ct
}

// Evaluated is a ciphertext and the values in its slots.
type Evaluated struct {
	Name   string
	Cipher *bgv.Ciphertext
	Slots  []uint64
}

// Evaluate returns fresh ciphertexts, their products, and the products rotated by three columns, in
// both modes.
func (u *User) Evaluate(t testing.TB) (list []Evaluated) {
	t.Helper()
	a, b := u.Values(3), u.Values(u.T-5)
	half := len(a) / 2
	product, turned := make([]uint64, len(a)), make([]uint64, len(a))
	for i := range a {
		product[i] = a[i] * b[i] % u.T
	}
	for i := range half {
		turned[i], turned[half+i] = product[(i+3)%half], product[half+(i+3)%half]
	}
	for mode, invariant := range map[string]bool{"BGV": false, "BFV": true} {
		eval := lattigo.NewEvaluator(u.Lattigo, u.keys, invariant)
		add := func(name string, ct *rlwe.Ciphertext, slots []uint64) {
			c, err := u.FromLattigo(ct)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, Evaluated{mode + " " + name, c, slots})
		}
		fresh := u.Encrypt(t, a)
		ct, err := eval.MulRelinNew(fresh, u.Encrypt(t, b))
		if err != nil {
			t.Fatal(err)
		}
		if err := eval.Rescale(ct, ct); err != nil {
			t.Fatal(err)
		}
		rotated, err := eval.RotateColumnsNew(ct, 3)
		if err != nil {
			t.Fatal(err)
		}
		add("fresh", fresh, a)
		add("product", ct, product)
		add("rotation", rotated, turned)
	}
	return list
}

// Phase returns c_0 + c_1 s, centred, for the coefficients of s.
func Phase(s *bgv.Scheme, c *bgv.Ciphertext, secret []*big.Int) []*big.Int {
	basis := s.Level(c.Level)
	key, c1, sum := basis.NewPoly(), basis.NewNTT(), basis.NewPoly()
	basis.FromBig(key, secret)
	k := basis.NewNTT()
	basis.Forward(k, key)
	basis.Forward(c1, c.C1)
	basis.MulNTT(c1, c1, k)
	basis.Inverse(sum, c1)
	basis.Add(sum, sum, c.C0)
	return basis.ToBig(sum)
}
