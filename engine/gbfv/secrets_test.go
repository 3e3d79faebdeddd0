package gbfv_test

import (
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// New polynomials reuse freed limbs with their content, so limbs that held a secret must be zero.
func TestNothingSecretIsGivenBack(t *testing.T) {
	s := newScheme(t, "insecure-6", "p128")
	k := gbfvtest.New(s, 2, 1, seed)
	slots := k.Random(1)
	ct, out, count := k.Encrypt(slots, 1), s.NewCiphertext(), s.Q.Len()
	one := intpoly.New(s.N(), 1)
	sample.Flood(one, s.Spec.B, sample.NewSource(seed).Stream("randomness"))
	for name, use := range map[string]func(){
		"encryption":         func() { s.EncryptWith(out, k.Public, one, [3]intpoly.Poly{one, one, one}) },
		"a phase":            func() { s.Phase(out.C0, ct, k.Shares[0], count) },
		"a decryption":       func() { s.Decrypt(slots, ct, k.Secret) },
		"a decryption share": func() { s.DecryptionShare(out.C0, ct.C1, k.Shares[0], one, k.Random(2), count) },
	} {
		ring.Trim()
		use()
		if given := ring.Trim(); given == 0 {
			t.Errorf("%s frees no limbs", name)
		}
		use()
		for range 20 { // more polynomials than were freed
			p := s.Full.Borrow()
			if slices.ContainsFunc(p.C, func(c []uint64) bool { return slices.ContainsFunc(c, func(x uint64) bool { return x != 0 }) }) {
				t.Errorf("%s leaves nonzero words", name)
				break
			}
		}
	}
}
