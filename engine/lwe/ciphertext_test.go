package lwe_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func newScheme(t testing.TB, name string) *lwe.Scheme {
	t.Helper()
	set, err := lwe.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := lwe.New(set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func eachScheme(t *testing.T, f func(t *testing.T, s *lwe.Scheme)) {
	for _, set := range lwe.Sets() {
		t.Run(set.Name, func(t *testing.T) { f(t, newScheme(t, set.Name)) })
	}
}

func eachTiny(t *testing.T, f func(t *testing.T, s *lwe.Scheme)) {
	for _, name := range tiny {
		t.Run(name, func(t *testing.T) { f(t, newScheme(t, name)) })
	}
}

var tiny = []string{"insecure-L8-50", "insecure-L8-53", "insecure-T8-50"}

var source = sample.NewSource([]byte("the source of tests of ciphertexts"))

// messages is how many messages an encoding has, and parts how many it cuts the circle into.
func messages(s *lwe.Scheme, e lwe.Encoding) (count, parts uint64) {
	switch e {
	case lwe.Plain:
		return s.P, s.P
	case lwe.Padded:
		return s.P, 2 * s.P
	}
	return 2, 2
}

// Every message decodes to itself with any error up to almost half of the distance to the next.
func TestEncodings(t *testing.T) {
	eachScheme(t, func(t *testing.T, s *lwe.Scheme) {
		for _, e := range []lwe.Encoding{lwe.Plain, lwe.Padded, lwe.Boolean} {
			count, parts := messages(s, e)
			room := s.Q/(2*parts) - 2
			for m := range count {
				phase, err := s.Encode(m, e)
				if err != nil {
					t.Fatal(err)
				}
				if e == lwe.Boolean {
					room = s.Q/8 - 2
				} else if d := int64(phase*parts - m*s.Q); 2*d > int64(parts) || -2*d > int64(parts) {
					t.Errorf("%v %d is at %d, not the nearest to %d/%d of the circle", e, m, phase, m, parts)
				}
				for _, err := range []uint64{0, 1, s.Q - 1, room, s.Q - room, room / 2} {
					if got := s.Decode((phase+err)%s.Q, e); got != m {
						t.Errorf("%v %d with error %d is decoded to %d", e, m, err, got)
					}
				}
			}
			if _, err := s.Encode(count, e); !errors.Is(err, lwe.ErrMessage) {
				t.Errorf("%v %d: %v", e, count, err)
			}
		}
		if _, err := s.Encode(0, 0); !errors.Is(err, lwe.ErrMessage) {
			t.Errorf("no encoding: %v", err)
		}
		// What decryption opens of the others.
		mod := s.Modulus()
		for m := range s.P {
			padded, _ := s.Encode(m, lwe.Padded)
			if got := s.Decode(mod.Add(padded, padded), lwe.Plain); got != m {
				t.Errorf("twice the padded %d opens as %d", m, got)
			}
		}
		for bit, want := range []uint64{s.P - s.P/8, s.P / 8} {
			phase, _ := s.Encode(uint64(bit), lwe.Boolean)
			if got := s.Decode(phase, lwe.Plain); got != want {
				t.Errorf("the bit %d opens as %d, want %d", bit, got, want)
			}
		}
	})
}

func newSecret(s *lwe.Scheme) *secretKey { return drawSecret(s, source.Sub("secret")) }

// Messages in every coefficient decrypt correctly, and extracting a coefficient into a separate
// ciphertext keeps its phase.
func TestEncryptAndExtract(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *lwe.Scheme) {
		secret := newSecret(s)
		key, err := s.PublicKey(secret.Keys(s.NoiseOf(3, 1), source.Sub("keys")))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []lwe.Encoding{lwe.Plain, lwe.Padded, lwe.Boolean} {
			count, _ := messages(s, e)
			m := make([]uint64, s.N())
			for k := range m {
				m[k] = uint64(k*k+k/3) % count
			}
			c, err := key.Encrypt(m, e, source.Sub("encrypt", uint64(e)))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.CheckRing(c); err != nil {
				t.Fatal(err)
			}
			one, all := s.NewLWE(), make([]uint64, 2*s.N())
			s.Unroll(all, c)
			for k, phase := range secret.RingPhase(c) {
				s.Extract(one, c, k)
				if !slices.Equal(all[s.N()-1-k:2*s.N()-1-k], one.A) {
					t.Fatalf("coefficient %d is another one when all are extracted", k)
				}
				if got := secret.Phase(one); got != phase {
					t.Fatalf("coefficient %d: extracted phase %d, want %d", k, got, phase)
				}
				if got := secret.Decrypt(one, e); got != m[k] {
					t.Fatalf("coefficient %d: %d, want %d", k, got, m[k])
				}
				if err := s.Check(one); err != nil {
					t.Fatal(err)
				}
			}
		}
		// The same source gives the same ciphertext, another gives another; coefficients beyond the
		// messages are 0.
		a, _ := key.Encrypt([]uint64{3}, lwe.Plain, source.Sub("a"))
		same, _ := key.Encrypt([]uint64{3}, lwe.Plain, source.Sub("a"))
		other, _ := key.Encrypt([]uint64{3}, lwe.Plain, source.Sub("b"))
		if !a.Equal(same) || a.Equal(other) {
			t.Error("ciphertexts are not those of their sources")
		}
		for k, phase := range secret.RingPhase(a) {
			if got := s.Decode(phase, lwe.Plain); got != 0 && k > 0 || got != 3 && k == 0 {
				t.Errorf("coefficient %d is %d", k, got)
			}
		}
		if _, err := key.Encrypt(make([]uint64, s.N()+1), lwe.Plain, source.Sub("a")); !errors.Is(err, lwe.ErrMessage) {
			t.Errorf("too many messages: %v", err)
		}
		if c, err := key.Encrypt([]uint64{1, s.P}, lwe.Plain, source.Sub("a")); !errors.Is(err, lwe.ErrMessage) || c != nil {
			t.Errorf("a message of p: %v", err)
		}
	})
}

// Operations are linear in the phase, exactly.
func TestLinear(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *lwe.Scheme) {
		secret, mod := newSecret(s), s.Modulus()
		r := rand.New(rand.NewPCG(1, 1))
		random := func() *lwe.LWE {
			c := s.NewLWE()
			for i := range c.A {
				c.A[i] = r.Uint64N(s.Q)
			}
			c.B = r.Uint64N(s.Q)
			return c
		}
		for range 20 {
			a, b, dst := random(), random(), s.NewLWE()
			x, y := secret.Phase(a), secret.Phase(b)
			check := func(name string, want uint64) {
				t.Helper()
				if got := secret.Phase(dst); got != want {
					t.Errorf("%s has the phase %d, want %d", name, got, want)
				}
				if err := s.Check(dst); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			s.Add(dst, a, b)
			check("a sum", mod.Add(x, y))
			s.Sub(dst, a, b)
			check("a difference", mod.Sub(x, y))
			s.Neg(dst, a)
			check("a negation", mod.Neg(x))
			for _, c := range []int64{0, 1, -1, 2, -7, 1000} {
				s.Scale(dst, a, c)
				want := mod.Mul(x, uint64((c+int64(s.Q))%int64(s.Q)))
				check("a multiple", want)
			}
			s.Trivial(dst, y)
			check("a trivial ciphertext", y)
			dst.Copy(a)
			s.AddPhase(dst, y)
			check("a moved ciphertext", mod.Add(x, y))
			s.Digit(dst, a)
			eighth, _ := s.Encode(1, lwe.Boolean)
			check("a digit", mod.Add(x, eighth))

			u, v := &lwe.Ring{A: a.A, B: b.A}, &lwe.Ring{A: b.A, B: random().A}
			sum, difference := s.NewRing(), s.NewRing()
			s.AddRing(sum, u, v)
			s.SubRing(difference, u, v)
			p, q := secret.RingPhase(u), secret.RingPhase(v)
			sums, differences := secret.RingPhase(sum), secret.RingPhase(difference)
			for k := range p {
				if sums[k] != mod.Add(p[k], q[k]) || differences[k] != mod.Sub(p[k], q[k]) {
					t.Fatal("ring ciphertexts are not linear")
				}
			}
			if !u.Clone().Equal(u) || u.Equal(v) || !a.Clone().Equal(a) || a.Equal(b) {
				t.Error("copies are not equal, or others are")
			}
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	s := newScheme(t, tiny[0])
	for name, change := range map[string]func(c *lwe.LWE, r *lwe.Ring){
		"short":     func(c *lwe.LWE, r *lwe.Ring) { c.A, r.B = c.A[1:], r.B[1:] },
		"long":      func(c *lwe.LWE, r *lwe.Ring) { c.A, r.A = append(c.A, 0), append(r.A, 0) },
		"empty":     func(c *lwe.LWE, r *lwe.Ring) { *c, *r = lwe.LWE{}, lwe.Ring{} },
		"residue b": func(c *lwe.LWE, r *lwe.Ring) { c.B, r.B[5] = s.Q, s.Q },
		"residue a": func(c *lwe.LWE, r *lwe.Ring) { c.A[7], r.A[9] = s.Q, ^uint64(0) },
	} {
		c, r := s.NewLWE(), s.NewRing()
		if s.Check(c) != nil || s.CheckRing(r) != nil {
			t.Fatal("zero is refused")
		}
		change(c, r)
		if err := s.Check(c); !errors.Is(err, lwe.ErrCiphertext) {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.CheckRing(r); !errors.Is(err, lwe.ErrCiphertext) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !errors.Is(s.Check(nil), lwe.ErrCiphertext) || !errors.Is(s.CheckRing(nil), lwe.ErrCiphertext) {
		t.Error("nothing is a ciphertext")
	}
}
