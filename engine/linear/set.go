package linear

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

// DefaultVector and DefaultProduct name the sets that are used when the caller names none: for
// products on shares, with inputs that the owner of the key proves, and for products of encrypted
// matrices.
const (
	DefaultVector  = "V13-32-proved"
	DefaultProduct = "P13-40"
)

// Unproved names the set for products on shares with unproved inputs. A client that sends malformed
// inputs under it learns the entries of the matrix over many products; parties refuse it by
// default.
const Unproved = "V13-32"

// InsecurePrefix starts the name of every set that is too small to be secure. Such sets exist for
// tests.
const InsecurePrefix = keyset.InsecurePrefix

// A Set is one choice of ring, moduli and errors. Sets are data and must not be modified.
type Set struct {
	Name       string
	LogN       int
	Q          []uint64    // q_0, to which answers are switched, and the others
	T          uint64      // plaintext modulus, a prime that is 1 mod 2N
	ErrorWidth float64     // width w of errors, of density exp(-pi x^2/w^2); secrets are ternary
	Proof      *ProofSizes // sizes of proofs of inputs, or nil; with proofs, secrets are Gaussian
	Insecure   bool        // for tests only; must agree with the name
}

// The largest primes of their size that are 1 mod 2^15.
const (
	q56              = 72057594037370881
	q50a, q50b       = 1125899904679937, 1125899903991809
	q48              = 281474976546817
	q44a, q44b, q44c = 17592183914497, 17592183390209, 17592183324673
	t40              = 1099510054913
	t32              = 1<<32 - 1<<20 + 1
	t17              = 1<<16 + 1
)

const width319 = 8.0 // of deviation 3.19

func registry() []*Set {
	shipped := []*Set{
		{Name: Unproved, LogN: 13, Q: []uint64{q48, q50a, q50b}, T: t32, ErrorWidth: width319},
		{
			Name: DefaultVector, LogN: 13, Q: []uint64{q48, q44a, q44b, q44c}, T: t32, ErrorWidth: width319,
			Proof: &ProofSizes{SecretWidth: 16, MaskWidth: 51, Bound: 19400},
		},
		{Name: "P13-17", LogN: 13, Q: []uint64{q44a, q50a, q50b}, T: t17, ErrorWidth: width319},
		{Name: "P13-40", LogN: 13, Q: []uint64{q56, q44a, q44b, q44c}, T: t40, ErrorWidth: width319},
	}
	all := shipped
	for _, s := range shipped { // the same for tests, in a ring that is too small
		small := *s
		small.Name, small.LogN, small.Insecure = InsecurePrefix+strings.Replace(s.Name, "13", "6", 1), 6, true
		if s.Proof != nil {
			small.Proof = &ProofSizes{SecretWidth: 16, MaskWidth: 68, Bound: 2220}
		}
		all = append(all, &small)
	}
	return all
}

var sets = keyset.Registry[Set]{
	Scheme: "linear", Sets: registry, Label: func(s *Set) (string, bool) { return s.Name, !s.Insecure },
}

// Sets lists every set: those for new keys, those for tests. The caller owns the result.
func Sets() []*Set { return registry() }

// Names lists the sets for new keys, without those for tests.
func Names() []string { return sets.Names() }

// Lookup finds a set by name. The error is a [*keyset.UnknownError].
func Lookup(name string) (*Set, error) { return sets.Lookup(name) }

// N returns the ring degree.
func (s *Set) N() int { return 1 << s.LogN }

// LogQ returns log2 of Q, the product of the primes.
func (s *Set) LogQ() (sum float64) {
	for _, q := range s.Q {
		sum += math.Log2(float64(q))
	}
	return sum
}

// minErrorWidth is the width for deviation 3.19.
const minErrorWidth = 7.99

// Validate checks the requirements of correctness and of package [hardness] on a set.
func (s *Set) Validate() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("linear: set %s: %s", s.Name, fmt.Sprintf(format, a...))
	}
	switch {
	//lodge:check linear/name an insecure parameter set has the name of a secure one
	case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:
		return fail("name and Insecure disagree")
	case s.LogN < 4 || s.LogN > 15:
		return fail("log2 N = %d is out of range", s.LogN)
	case len(s.Q) < 2 || len(s.Q) > 16:
		return fail("%d primes", len(s.Q))
	case !s.prime(s.T) || s.T >= 1<<48:
		return fail("T = %d is not a prime of at most 48 bits that is 1 mod 2N", s.T)
	//lodge:check linear/width [drop=!(s.ErrorWidth >= minErrorWidth)] errors are narrower than the
	//  security table demands
	case !(s.ErrorWidth >= minErrorWidth) || s.ErrorWidth > 64:
		return fail("errors of width %v are out of range", s.ErrorWidth)
	}
	if wrong := s.checkProof(); wrong != "" {
		return fail("%s", wrong)
	}
	seen := map[uint64]bool{s.T: true}
	for _, q := range s.Q {
		if !s.prime(q) || q < 1<<33 || q >= 1<<61 || seen[q] {
			return fail("%d is not a prime of 34 to 61 bits that is 1 mod 2N, or is used twice", q)
		}
		seen[q] = true
	}
	if s.Q[0]/(2*s.T) < uint64(4*s.rounding()) {
		return fail("a switch to q_0 = %d leaves too little space for its rounding", s.Q[0])
	}
	//lodge:check linear/security run=TestValidateRefuses|TestSetsAreValid a set below 128 bits makes keys
	if err := (hardness.Standing{Set: s.Name, Exact: true, Insecure: s.Insecure, Bits: s.Security()}).Check(); err != nil {
		return fail("%v", err)
	}
	return nil
}

// Security returns the estimate of package [hardness] for the samples modulo Q that the owner of a
// key publishes. Proofs of inputs reveal hints about secrets and errors; given these, they are as
// hard as secrets and errors of half the width.
func (s *Set) Security() hardness.Bits {
	samples := hardness.Samples{
		Dim: s.N(), LogQ: s.LogQ(), Deviation: s.ErrorWidth / math.Sqrt(2*math.Pi), Secret: hardness.Ternary,
	}
	if p := s.Proof; p != nil {
		half := p.SecretWidth / 2 / math.Sqrt(2*math.Pi)
		samples.Deviation, samples.Secret = min(samples.Deviation, half), hardness.Gaussian(half)
	}
	return samples.Estimate()
}

// prime reports whether q is a prime that is 1 mod 2N.
func (s *Set) prime(q uint64) bool {
	return q%(2<<s.LogN) == 1 && new(big.Int).SetUint64(q).ProbablyPrime(0) // exact under 2^64
}

// Hash identifies everything in the set that affects keys and ciphertexts, including its name.
func (s *Set) Hash() [32]byte {
	list := []uint64{uint64(s.LogN), uint64(len(s.Q)), s.T, math.Float64bits(s.ErrorWidth), keyset.Flag(s.Insecure)}
	list = append(list, s.Q...)
	if p := s.Proof; p != nil {
		list = append(list, math.Float64bits(p.SecretWidth), math.Float64bits(p.MaskWidth), uint64(p.Bound))
	}
	return keyset.Hash("lodge linear set 1", s.Name, list)
}
