package lwe_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// subject is a set with keys and an evaluator.
type subject struct {
	*lwe.Scheme
	secret *secretKey
	keys   *lwe.Keys
	noise  lwe.Noise
	e      *lwe.Evaluator
	source *sample.Source
}

// The keys of tests are those of three parties, one of which may be corrupted.
func newSubject(t testing.TB, name string) *subject {
	t.Helper()
	set, err := lwe.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := lwe.New(set)
	if err != nil {
		t.Fatal(err)
	}
	source := sample.NewSource([]byte("the source of the tests of lwe, " + name))
	secret, noise := drawSecret(s, source.Sub("secret")), set.NoiseOf(3, 1)
	keys := secret.Keys(noise, source.Sub("keys"))
	e, err := lwe.NewEvaluator(s, keys, 2)
	if err != nil {
		t.Fatal(err)
	}
	return &subject{s, secret, keys, noise, e, source}
}

// encrypt encrypts under the secret.
func (s *subject) encrypt(t testing.TB, m uint64, e lwe.Encoding, index ...uint64) *lwe.LWE {
	t.Helper()
	c, err := s.secret.Encrypt(m, e, s.source.Sub("encrypt", append(index, m, uint64(e))...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every gate under every input, for fresh inputs and for the results of gates.
func TestGatesOnEverySet(t *testing.T) {
	everySet(t, func(t *testing.T, s *subject) {
		fresh, again := [2]*lwe.LWE{}, [2]*lwe.LWE{}
		for x := range uint64(2) {
			fresh[x] = s.encrypt(t, x, lwe.Boolean)
			again[x] = s.NewLWE()
			if err := s.e.Gate(again[x], lwe.And, fresh[x], fresh[x]); err != nil {
				t.Fatal(err)
			}
		}
		out := s.NewLWE()
		for _, inputs := range [][2]*lwe.LWE{fresh, again} {
			for g, want := range truth {
				for x := range 2 {
					for y := range 2 {
						if err := s.e.Gate(out, g, inputs[x], inputs[y]); err != nil {
							t.Fatal(err)
						}
						s.wantBit(t, out, want[2*x+y], "%v(%d, %d)", g, x, y)
					}
				}
			}
			for x := range 2 {
				s.Not(out, inputs[x])
				s.wantBit(t, out, uint64(1-x), "NOT(%d)", x)
				for y := range 2 {
					for z := range 2 {
						if err := s.e.Mux(out, inputs[x], inputs[y], inputs[z]); err != nil {
							t.Fatal(err)
						}
						s.wantBit(t, out, uint64([2]int{z, y}[x]), "MUX(%d, %d, %d)", x, y, z)
					}
				}
			}
		}
	})
}

// truth has the values of gates at 00, 01, 10 and 11.
var truth = map[lwe.Gate][4]uint64{
	lwe.And: {0, 0, 0, 1}, lwe.Nand: {1, 1, 1, 0}, lwe.Or: {0, 1, 1, 1}, lwe.Nor: {1, 0, 0, 0},
	lwe.Xor: {0, 1, 1, 0}, lwe.Xnor: {1, 0, 0, 1},
}

// wantBit holds a ciphertext against a bit, and its error against ten deviations of two bootstraps.
func (s *subject) wantBit(t *testing.T, c *lwe.LWE, want uint64, format string, args ...any) {
	t.Helper()
	s.want(t, c, want, lwe.Boolean, format, args...)
}

func (s *subject) want(t *testing.T, c *lwe.LWE, want uint64, e lwe.Encoding, format string, args ...any) {
	t.Helper()
	if got := s.secret.Decrypt(c, e); got != want {
		t.Errorf("%s: %s is %d, want %d", s.Name, fmt.Sprintf(format, args...), got, want)
	}
	limit := 10 * math.Sqrt(2*s.noise.Bootstrapped())
	if err := s.secret.Error(c, want, e); math.Abs(float64(err)) > limit {
		t.Errorf("%s: %s has an error of %d, over %g", s.Name, fmt.Sprintf(format, args...), err, limit)
	}
}
