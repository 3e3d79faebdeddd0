package multikey

import (
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// cheap names the set for tests that work with any set.
const cheap = InsecurePrefix + "M8-32"

// subject is a scheme with parties and their keys, and an evaluator with all of these keys.
type subject struct {
	*Scheme
	source  *sample.Source
	e       *Evaluator
	secrets []*Secret
	keys    []*Keys
}

func schemeOf(t testing.TB, name string) *Scheme {
	t.Helper()
	set, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(set, StandardSeed())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var subjects struct {
	sync.Mutex
	have map[string]*subject
}

// newSubject returns a subject with at least the given number of parties. Tests share it.
func newSubject(t testing.TB, name string, parties int) *subject {
	t.Helper()
	subjects.Lock()
	defer subjects.Unlock()
	s := subjects.have[name]
	if s == nil {
		s = &subject{Scheme: schemeOf(t, name), source: sample.NewSource(make([]byte, 32)).Sub(name)}
		s.e = NewEvaluator(s.Scheme)
		if subjects.have == nil {
			subjects.have = map[string]*subject{}
		}
		subjects.have[name] = s
	}
	for i := len(s.secrets); i < parties; i++ {
		secret, keys := s.Generate(uint32(i), s.source.Sub("party", uint64(i)), 2)
		id, err := s.e.Add(keys, 2)
		if err != nil || id != secret.ID() {
			t.Fatalf("party %d: %v", i, err)
		}
		if !s.Insecure || s.LogN > 8 {
			keys = nil // the keys are large and no longer needed
		}
		s.secrets, s.keys = append(s.secrets, secret), append(s.keys, keys)
	}
	return s
}

// encrypt returns a bit under a party's key, with randomness from the named stream.
func (s *subject) encrypt(party int, bit bool, name ...uint64) *Ciphertext {
	return s.secrets[party].Encrypt([]bool{bit}, s.source.Sub("encrypt", append(name, uint64(party))...)).Ciphertext(0)
}

// of returns an encryption under several parties' keys: a sum of their bits whose phases are 0
// except the first one's.
func (s *subject) of(t testing.TB, bit bool, parties []int, name ...uint64) *Ciphertext {
	t.Helper()
	c := s.encrypt(parties[0], bit, name...)
	for i, p := range parties[1:] {
		zero := s.encrypt(p, true, append(name, uint64(i))...)
		zero.B -= eighth
		c = s.add(c, zero)
	}
	if err := s.Check(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// add returns the sum of two ciphertexts.
func (s *subject) add(a, b *Ciphertext) *Ciphertext {
	c := s.combine(Or, a, b)
	c.B -= eighth
	return c
}

// decrypt returns the bit of c and the error of its phase, as a fraction of the torus.
func (s *subject) decrypt(t testing.TB, c *Ciphertext) (bool, float64) {
	t.Helper()
	bit, err := Decrypt(c, s.secrets...)
	if err != nil {
		t.Fatal(err)
	}
	phase := c.B
	for _, k := range s.secrets {
		share, err := k.Phase(c)
		if err != nil {
			t.Fatal(err)
		}
		phase += share
	}
	if bit {
		phase -= eighth
	} else {
		phase += eighth
	}
	return bit, float64(int32(phase)) / (1 << lweBits)
}
