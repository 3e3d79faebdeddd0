package bgv

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

// Default is the name of the default set.
const Default = "B13-17"

// InsecurePrefix starts the name of every set that is too small to be secure. Such sets are only
// for tests.
const InsecurePrefix = keyset.InsecurePrefix

// A Set fixes the rings, moduli and limits. Sets must not be modified.
type Set struct {
	Name     string
	LogN     int
	Q        []uint64 // q_0, q_1, ...
	P        []uint64 // special primes; P is their product
	T        uint64   // plaintext modulus, a prime that is 1 mod 2N
	Variance float64  // of the errors of keys
	LogNoise int      // the noise at decryption is below 2^LogNoise
	// FloodLevel is the level at which whole ciphertexts are decrypted with flooding; -1 if Q is
	// too small for flooding.
	FloodLevel int
	// LogDecryptions is log2 of the number of ciphertexts that may be decrypted with flooding under
	// one key. All of them together have the statistical distance of package bgvdecrypt.
	LogDecryptions int
	Insecure       bool // for tests only; the name must say so too
}

// MaxParties is the maximum number of parties of a key, for every set.
const MaxParties = 16

// The largest primes of their size that are 1 mod 2^15.
const (
	q55a, q55b, q55c       = 36028797017456641, 36028797016178689, 36028797014704129
	q53a, q53b, q53c, q53d = 9007199253921793, 9007199252840449, 9007199252807681, 9007199252545537
	q53e, q53f             = 9007199252119553, 9007199251660801
	q49                    = 562949952798721
	q36                    = 68718428161
	q35a, q35b             = 34359410689, 34359214081
)

func registry() []*Set {
	return []*Set{
		{
			Name: "B12-17", LogN: 12, Q: []uint64{q36, q35a}, P: []uint64{q35b}, T: 65537, Variance: 10.24,
			LogNoise: 17, FloodLevel: -1,
		},
		{
			Name: "B13-17", LogN: 13, Q: []uint64{q55a, q55b, q49}, P: []uint64{q55c}, T: 65537, Variance: 10.24,
			LogNoise: 17, FloodLevel: 1, LogDecryptions: 20,
		},
		{
			Name: "B14-31", LogN: 14, Q: []uint64{q53a, q53b, q53c, q53d, q53e, q53f}, P: []uint64{q55a, q55b},
			T: 2130706433, Variance: 10.24, LogNoise: 20, FloodLevel: 2, LogDecryptions: 20,
		},
		{
			Name: "insecure-B5-8", LogN: 5, Q: []uint64{q36, q35a}, P: []uint64{q35b}, T: 257, Variance: 10.24,
			LogNoise: 12, FloodLevel: -1, Insecure: true,
		},
		{
			Name: "insecure-B5-17", LogN: 5, Q: []uint64{q55a, q55b, q49}, P: []uint64{q55c}, T: 65537, Variance: 10.24,
			LogNoise: 12, FloodLevel: 1, LogDecryptions: 20, Insecure: true,
		},
		{
			Name: "insecure-B6-31", LogN: 6, Q: []uint64{q53a, q53b, q53c, q53d, q53e}, P: []uint64{q55a, q55b},
			T: 2130706433, Variance: 10.24, LogNoise: 14, FloodLevel: 2, LogDecryptions: 20, Insecure: true,
		},
	}
}

// Security returns the estimate of package [hardness] for one honest party's samples of keys modulo
// Q P, with a ternary secret. For threshold keys, the errors of the honest parties together have at
// least the variance of the set.
func (s *Set) Security() hardness.Bits {
	return hardness.Samples{
		Dim: s.N(), LogQ: s.LogQP(), Deviation: math.Sqrt(s.Variance), Secret: hardness.Ternary,
	}.Estimate()
}

// N returns the ring degree.
func (s *Set) N() int { return 1 << s.LogN }

// QP returns all primes, the special ones last.
func (s *Set) QP() []uint64 { return slices.Concat(s.Q, s.P) }

// LogQP returns log2 of Q P.
func (s *Set) LogQP() (sum float64) {
	for _, q := range s.QP() {
		sum += math.Log2(float64(q))
	}
	return sum
}

// Digits returns the number of digits of the gadget of evaluation keys. Digit i of a ciphertext is
// its value modulo the primes q_k with k/len(P) = i.
func (s *Set) Digits() int { return (len(s.Q) + len(s.P) - 1) / len(s.P) }

// Digit returns the digit that contains prime k of Q.
func (s *Set) Digit(k int) int { return k / len(s.P) }

var sets = keyset.Registry[Set]{
	Scheme: "bgv", Sets: registry, Label: func(s *Set) (string, bool) { return s.Name, !s.Insecure },
}

// Sets lists every set: those for new keys, those for tests. The caller owns the result.
func Sets() []*Set { return registry() }

// Names lists the sets for new keys, without those for tests.
func Names() []string { return sets.Names() }

// Lookup finds a set by name. The error is a [*keyset.UnknownError].
func Lookup(name string) (*Set, error) { return sets.Lookup(name) }

// Validate checks the mathematical requirements of a set, and its security with package hardness.
func (s *Set) Validate() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("bgv: set %s: %s", s.Name, fmt.Sprintf(format, a...))
	}
	switch {
	//lodge:check bgv/name an insecure parameter set has the name of a secure one
	case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:
		return fail("name and Insecure disagree")
	case s.LogN < 4 || s.LogN > 14:
		return fail("log2 N = %d is out of range", s.LogN)
	case len(s.Q) < 1 || len(s.P) < 1 || len(s.Q)+len(s.P) > 16:
		return fail("%d primes and %d special primes", len(s.Q), len(s.P))
	case !isPrime(s.T, s.LogN) || s.T >= 1<<32:
		return fail("T = %d is not a prime of at most 32 bits that is 1 mod 2N", s.T)
	case s.FloodLevel < -1 || s.FloodLevel >= len(s.Q):
		return fail("flood level %d is out of range", s.FloodLevel)
	case s.LogDecryptions < 0 || s.LogDecryptions > 40:
		return fail("2^%d decryptions are out of range", s.LogDecryptions)
	case !(s.Variance >= 10.17) || s.Variance > 100:
		return fail("errors of variance %v are out of range", s.Variance)
	//lodge:check bgv/rounding [drop=math.Exp2(float64(s.LogNoise)) < 1.5*s.Rounding(MaxParties)] a
	//  modulus switch adds more noise than decryption tolerates
	case s.LogNoise > 30 || math.Exp2(float64(s.LogNoise)) < 1.5*s.Rounding(MaxParties):
		return fail("a noise bound of 2^%d is out of range or too small for a switch, which adds up to %v", s.LogNoise, s.Rounding(MaxParties))
	}
	seen := map[uint64]bool{s.T: true}
	for _, q := range s.QP() {
		if !isPrime(q, s.LogN) || q < 1<<33 || q >= 1<<61 || seen[q] {
			return fail("%d is not a prime of 34 to 61 bits that is 1 mod 2N, or is used twice", q)
		}
		seen[q] = true
	}
	//lodge:check bgv/security run=TestValidateRefuses|TestSetsAreValid a set below 128 bits makes keys
	if err := (hardness.Standing{Set: s.Name, Exact: true, Insecure: s.Insecure, Bits: s.Security()}).Check(); err != nil {
		return fail("%v", err)
	}
	return nil
}

// isPrime reports whether q is a prime that is 1 mod 2N.
func isPrime(q uint64, logN int) bool {
	return q%(2<<logN) == 1 && new(big.Int).SetUint64(q).ProbablyPrime(0) // exact below 2^64
}

// Rounding returns R, the maximum noise that a modulus switch adds, for keys of the given number of
// parties.
func (s *Set) Rounding(parties int) float64 { return float64(1+parties*s.N())/2 + 1 }

// Hash identifies everything in the set that affects keys and ciphertexts, including its name.
func (s *Set) Hash() [32]byte {
	list := []uint64{
		uint64(s.LogN), uint64(len(s.Q)), uint64(len(s.P)), s.T, math.Float64bits(s.Variance), uint64(s.LogNoise),
		uint64(s.FloodLevel), uint64(s.LogDecryptions), keyset.Flag(s.Insecure),
	}
	return keyset.Hash("lodge bgv set 1", s.Name, append(list, s.QP()...))
}
