package params

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

//lodge:tests set TestValidateRefuses|TestSecurityTable|TestSetsAreValid

// Default names the set that commands use when none is asked for.
const Default = "S14-32"

// InsecurePrefix starts the name of every set that is too small to be secure. Such sets exist for
// tests.
const InsecurePrefix = keyset.InsecurePrefix

// KeysUnproved and KeysProved are the values of Set.Keys.
const (
	KeysUnproved = "unproved" // the modulus has no room for proofs of the key shares
	KeysProved   = "proved"   // key shares can be proved: Gaussian secrets and a modulus that holds the extracted bounds
)

// Passive and Proved are the levels of security of key generation. Under Passive, a party that
// deviates can make malformed shares of a key. Under Proved, every party has verified proofs that
// all shares are well formed and that their secrets and errors are short.
const (
	Passive = "passive"
	Proved  = "proved"
)

// KeygenSecurity is the security of key generation under the set: Proved if it has room for proofs
// of keys.
func (s *Set) KeygenSecurity() string {
	if s.Keys == KeysProved {
		return Proved
	}
	return Passive
}

// MinStatSecurity is the overall statistical security in bits under which a service refuses to
// work.
const MinStatSecurity = 40

// Dist is the distribution of each party's share of the secret key (and of the ephemeral secret u
// of the relinearisation key).
type Dist uint8

// Distributions of secrets.
const (
	Ternary  Dist = iota + 1 // uniform in {-1, 0, 1}
	Gaussian                 // discrete Gaussian of width Set.SecretWidth
)

// String names the distribution.
func (d Dist) String() string {
	switch d {
	case Ternary:
		return "ternary"
	case Gaussian:
		return "gaussian"
	}
	return fmt.Sprintf("Dist(%d)", uint8(d))
}

// A Set is one choice of ring, moduli and key distributions. It fixes the keys: one key set serves
// every field of its set. Sets are data and must not be modified.
//
// A width w belongs to the density exp(-pi x^2/w^2); the standard deviation is w/sqrt(2 pi).
type Set struct {
	Name        string
	LogN        int      // ring Z[X]/(X^N+1), N = 2^LogN
	LogB        int      // fields have b just under 2^LogB
	Q           []uint64 // primes of the ciphertext modulus q, each 1 mod 2N
	Aux         []uint64 // primes of the auxiliary modulus of products, distinct from Q, with product at least q
	DigitPrimes int      // primes of Q per key-switching digit; the last digit may have fewer
	Secret      Dist     // each party's secret share s and ephemeral u
	SecretWidth float64  // width when Secret is Gaussian, otherwise 0
	ErrorWidth  float64  // width of every error in keys
	Keys        string   // KeysUnproved or KeysProved: whether key shares can be proved
	LambdaDDec  int      // flooding of distributed decryption, bits
	LambdaSnd   int      // soundness of proofs, bits
	LambdaSim   int      // simulation: quality of the discrete Gaussians, bits
	Insecure    bool     // for tests only; the name says so too
	Fields      []FieldSpec

	proved bool // see Proved
}

// A FieldSpec is a plaintext field Z_p with p = B^M+1 prime; a ciphertext has N/M slots.
type FieldSpec struct {
	Name string   // "p64" to "p4096", for log2 p
	B    *big.Int // even, just under 2^LogB
	M    int      // power of two, at least 2
}

// N is the ring degree.
func (s *Set) N() int { return 1 << s.LogN }

// Digits is the number of key-switching digits.
func (s *Set) Digits() int { return (len(s.Q) + s.DigitPrimes - 1) / s.DigitPrimes }

// Modulus is q, the product of Q.
func (s *Set) Modulus() *big.Int { return product(s.Q) }

// LogQ is log2 q, for people.
func (s *Set) LogQ() float64 { return log2Int(s.Modulus()) }

// MaxDecryptions is the largest number of ciphertexts that a key decrypts.
const (
	logDecryptions = 20
	MaxDecryptions = 1 << logDecryptions
)

// StatSecurityBits is the overall statistical security of distributed decryption after
// [MaxDecryptions] ciphertexts: each reveals at most N*2^-(LambdaDDec+1). Services refuse less than
// [MinStatSecurity].
func (s *Set) StatSecurityBits() int { return s.LambdaDDec + 1 - s.LogN - logDecryptions }

// CheckStatSecurity refuses a set that leaves less than [MinStatSecurity] bits; those for tests
// may.
func (s *Set) CheckStatSecurity() error {
	//lodge:check params/statistical-security [swap=MinStatSecurity=>0]
	//  [run=TestTooLittle|TestStatistical] decryptions leave too little statistical security
	if bits := s.StatSecurityBits(); bits < MinStatSecurity && !s.Insecure {
		return fmt.Errorf("params: %s leaves %d bits of statistical security, fewer than %d", s.Name, bits, MinStatSecurity)
	}
	return nil
}

// Slots is D = N/M, the number of field elements in a ciphertext of field f.
func (s *Set) Slots(f FieldSpec) int { return s.N() / f.M }

// P is the field's modulus b^M+1.
func (f FieldSpec) P() *big.Int {
	p := new(big.Int).Exp(f.B, big.NewInt(int64(f.M)), nil)
	return p.Add(p, big.NewInt(1))
}

var sets = keyset.Registry[Set]{
	Scheme: "params", Sets: registry, Label: func(s *Set) (string, bool) { return s.Name, !s.Insecure },
}

// Sets lists every set, shipped ones first, in the order of the registry's table. The caller owns
// the result.
func Sets() []*Set { return registry() }

// Lookup finds a set by name. The error is a [*keyset.UnknownError].
func Lookup(name string) (*Set, error) { return sets.Lookup(name) }

// Field finds a field of the set by name. The error is a [*keyset.UnknownError].
func (s *Set) Field(name string) (FieldSpec, error) {
	var names []string
	for _, f := range s.Fields {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return FieldSpec{}, &keyset.UnknownError{Scheme: "params", What: "field of " + s.Name, Name: name, Known: names}
}

// minErrorWidth is the narrowest error of keys, standard deviation 3.19.
const minErrorWidth = 7.99

// Security is the estimate of package [hardness] for the samples that one party's keys publish
// modulo q: there is no special modulus. Proofs of keys tell hints about secrets and errors, with
// which they are as hard as half as wide ones.
func (s *Set) Security() hardness.Bits {
	deviation := func(width float64) float64 {
		if s.Keys == KeysProved {
			width /= 2
		}
		return width / math.Sqrt(2*math.Pi)
	}
	secret := hardness.Ternary
	if s.Secret == Gaussian {
		secret = hardness.Gaussian(deviation(s.SecretWidth))
	}
	return hardness.Samples{Dim: s.N(), LogQ: s.LogQ(), Deviation: deviation(s.ErrorWidth), Secret: secret}.Estimate()
}

// Validate checks the requirements of correctness and of package [hardness] on a set, except field
// primality, which [field.New] checks. ring.NewBasis and this package's tests check the primality
// of the moduli.
func (s *Set) Validate() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("params: set %s: %s", s.Name, fmt.Sprintf(format, a...))
	}
	//lodge:check params/insecure-by-name [swap=strings.HasPrefix(s.Name, InsecurePrefix) !=
	//  s.Insecure=>strings.HasPrefix(s.Name, InsecurePrefix) && !s.Insecure] [run=@set] an insecure
	//  set does not say so in its name
	if strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure {
		return fail("name and Insecure disagree")
	}
	//lodge:check params/ring-degree [run=@set] a ring has a degree that the code does not support
	if s.LogN < 2 || s.LogN > 16 {
		return fail("log2 N = %d is out of range", s.LogN)
	}
	//lodge:check params/auxiliary-primes [run=@set] primes are missing, or have no auxiliary primes
	if len(s.Q) == 0 || len(s.Q) != len(s.Aux) || s.DigitPrimes < 1 || s.DigitPrimes > len(s.Q) {
		return fail("needs as many auxiliary primes as primes and at least one prime per digit")
	}
	//lodge:check params/auxiliary-modulus [run=@set] products overflow the auxiliary modulus
	if product(s.Aux).Cmp(s.Modulus()) < 0 {
		return fail("auxiliary modulus is smaller than q")
	}
	seen := map[uint64]bool{}
	for _, q := range slices.Concat(s.Q, s.Aux) {
		//lodge:check params/primes [run=@set] primes repeat, or have no roots of unity
		if q%(2*uint64(s.N())) != 1 || q>>61 != 0 || seen[q] {
			return fail("prime %d is repeated, too large, or not 1 mod 2N", q)
		}
		seen[q] = true
	}
	if err := s.validateKeys(); err != nil {
		return fail("%v", err)
	}
	for _, f := range s.Fields {
		if err := s.validateField(f); err != nil {
			return fail("%v", err)
		}
	}
	if s.Insecure {
		return nil
	}
	//lodge:check params/error-width [run=@set] errors have a deviation below 3.19
	if s.ErrorWidth < minErrorWidth {
		return fail("errors are narrower than a standard deviation of 3.19")
	}
	//lodge:check params/security run=TestSecurityTableRefuses a set below 128 bits makes keys
	if err := (hardness.Standing{Set: s.Name, Exact: true, Bits: s.Security()}).Check(); err != nil {
		return fail("%v", err)
	}
	return nil
}

func (s *Set) validateKeys() error {
	switch {
	//lodge:check params/soundness [run=@set] proofs have less than 128 bits of soundness or
	//  simulation
	case s.LambdaSim != 128 || s.LambdaSnd != 128:
		return fmt.Errorf("simulation and soundness are fixed at 128 bits")
	//lodge:check params/secret-width [run=@set] Gaussian secrets are narrower than the security
	//  table demands
	case s.Secret == Ternary && s.SecretWidth != 0, s.Secret == Gaussian && s.SecretWidth < minErrorWidth:
		return fmt.Errorf("secret width %v does not suit %v secrets", s.SecretWidth, s.Secret)
	//lodge:check params/secret-distribution [run=@set] secrets have an unknown distribution
	case s.Secret != Ternary && s.Secret != Gaussian:
		return fmt.Errorf("unknown secret distribution")
	//lodge:check params/keys-known [run=@set] the set has an unknown mode of key proofs
	case s.Keys != KeysUnproved && s.Keys != KeysProved:
		return fmt.Errorf("keys are neither proved nor unproved")
	//lodge:check params/keys-gaussian [run=@set] proofs of keys are used with secrets that they do
	//  not hide
	case s.Keys == KeysProved && s.Secret != Gaussian:
		return fmt.Errorf("proofs of keys need Gaussian secrets")
	}
	return nil
}

func (s *Set) validateField(f FieldSpec) error {
	n := s.N()
	switch {
	//lodge:check params/field-extension [run=@set] a field does not fit the ring
	case f.M < 2 || bits.OnesCount(uint(f.M)) != 1 || f.M > n/2:
		return fmt.Errorf("field %s: M = %d is not a power of two from 2 to N/2", f.Name, f.M)
	//lodge:check params/field-base [run=@set] a field has a base too small for digits
	case f.B.Cmp(big.NewInt(4)) < 0:
		return fmt.Errorf("field %s: b is below 4", f.Name)
	//lodge:check params/field-bits [run=@set] the noise bounds are computed for another base
	case f.B.BitLen() != s.LogB:
		return fmt.Errorf("field %s: b has %d bits, not %d", f.Name, f.B.BitLen(), s.LogB)
	//lodge:check params/field-roots [run=@set] a field has no roots of unity
	case uint(f.M)*f.B.TrailingZeroBits() < uint(s.LogN)+1:
		return fmt.Errorf("field %s: 2N does not divide p-1", f.Name)
	}
	return nil
}

func product(primes []uint64) *big.Int {
	p := big.NewInt(1)
	for _, q := range primes {
		p.Mul(p, new(big.Int).SetUint64(q))
	}
	return p
}
