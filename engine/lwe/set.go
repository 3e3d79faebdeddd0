package lwe

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

// Default names the default set.
const Default = "T11-4"

// InsecurePrefix starts the name of every set that is too small to be secure. Such sets exist for
// tests.
const InsecurePrefix = keyset.InsecurePrefix

// A Set is one choice of rings, moduli, distributions and gadgets, for a [Scheme]. Sets are data
// and must not be modified.
type Set struct {
	Name           string
	LogN           int     // ring Z[X]/(X^N+1), N = 2^LogN; LWE ciphertexts that users hold have dimension N
	Q              uint64  // modulus of everything, a prime that is 1 mod 2N
	P              uint64  // plaintext modulus, a power of two
	Dim            int     // n, the dimension of the binary secret s of key switching and blind rotation
	Variance       float64 // of errors of the public key, the rotation key and encryptions
	SwitchVariance float64 // of errors of the switching key
	Rotation       Gadget  // of the rotation key
	Switch         Gadget  // of the switching key
	Centred        bool    // modulus switching subtracts the mean of its rounding errors
	Insecure       bool    // for tests only; the name says so too

	// Successor names the set to make new keys with, if this one is legacy. It is not a part of the
	// hash.
	Successor string
}

// A Gadget decomposes residues into digits of base B = 2^LogBase. Digit j has weight g_j = 2^Drop
// B^j. Residues are rounded to multiples of 2^Drop.
type Gadget struct{ LogBase, Digits int }

// Moduli: the largest prime under 2^50 and the prime of the paper, both 1 mod 2^12.
const (
	q50 = 1<<50 - 16383
	q53 = 9007199254614017
)

// Standard deviations of the errors of switching keys: 2^28.5 modulo q50 and 2^31.5 modulo q53.
const (
	switch50 = 1 << 57
	switch53 = 1 << 63
)

func registry() []*Set {
	return []*Set{
		{
			Name: "T11-4", LogN: 11, Q: q50, P: 16, Dim: 928, Variance: 12.96, SwitchVariance: switch50,
			Rotation: Gadget{LogBase: 23, Digits: 1}, Switch: Gadget{LogBase: 4, Digits: 4}, Centred: true,
		},
		{
			Name: "T11-53", LogN: 11, Q: q53, P: 16, Dim: 928, Variance: 12.96, SwitchVariance: switch53,
			Rotation: Gadget{LogBase: 6, Digits: 8}, Switch: Gadget{LogBase: 4, Digits: 4}, Centred: true,
		},
		{
			Name: "L11-50", LogN: 11, Q: q50, P: 16, Dim: 1024, Variance: 12.96, SwitchVariance: 1 << 52,
			Rotation: Gadget{LogBase: 23, Digits: 1}, Switch: Gadget{LogBase: 6, Digits: 3}, Successor: "T11-4",
		},
		{
			Name: "L11-53", LogN: 11, Q: q53, P: 16, Dim: 1024, Variance: 12.96, SwitchVariance: 11.56 * (1 << 52),
			Rotation: Gadget{LogBase: 6, Digits: 8}, Switch: Gadget{LogBase: 1, Digits: 52}, Successor: "T11-53",
		},
		{
			Name: "insecure-L8-50", LogN: 8, Q: q50, P: 16, Dim: 16, Variance: 12.96, SwitchVariance: 1 << 52,
			Rotation: Gadget{LogBase: 23, Digits: 1}, Switch: Gadget{LogBase: 6, Digits: 3}, Insecure: true,
		},
		{
			Name: "insecure-L8-53", LogN: 8, Q: q53, P: 16, Dim: 16, Variance: 12.96, SwitchVariance: 11.56 * (1 << 52),
			Rotation: Gadget{LogBase: 6, Digits: 8}, Switch: Gadget{LogBase: 1, Digits: 52}, Insecure: true,
		},
		{ // For tests of what legacy sets may do.
			Name: "insecure-L8-legacy", LogN: 8, Q: q50, P: 16, Dim: 16, Variance: 12.96, SwitchVariance: 1 << 52,
			Rotation: Gadget{LogBase: 23, Digits: 1}, Switch: Gadget{LogBase: 6, Digits: 3}, Insecure: true, Successor: "insecure-T8-50",
		},
		{ // Wide errors would drown messages in so small a ring.
			Name: "insecure-T8-50", LogN: 8, Q: q50, P: 16, Dim: 16, Variance: 12.96, SwitchVariance: 1 << 52,
			Rotation: Gadget{LogBase: 23, Digits: 1}, Switch: Gadget{LogBase: 6, Digits: 3}, Centred: true, Insecure: true,
		},
	}
}

// Security is the estimate of package [hardness] for ring samples, whose secret is z (or the u of
// an encryption), and for samples of the switching key, whose secret is s.
type Security struct{ Ring, Switch hardness.Bits }

// Least is the smaller of both: breaking either kind of sample is enough.
func (s Security) Least() hardness.Bits { return s.Ring.Min(s.Switch) }

// Security estimates the hardness of the samples of a set. The errors of several parties are wider
// than those of the set. The part that an adversary does not know is at least as wide as the errors
// of the set ([PartyVariance]).
func (s *Set) Security() Security {
	q := math.Log2(float64(s.Q))
	estimate := func(dim int, variance float64, secret hardness.Secret) hardness.Bits {
		return hardness.Samples{Dim: dim, LogQ: q, Deviation: math.Sqrt(variance), Secret: secret}.Estimate()
	}
	return Security{
		Ring:   estimate(s.N(), s.Variance, hardness.Difference),
		Switch: estimate(s.Dim, s.SwitchVariance, hardness.Binary),
	}
}

// maxHolders is the largest number of holders of a key, that of package share.
const maxHolders = 64

// maxSum bounds the square of a sum of coefficients that a circuit gives to results before it looks
// them up.
const maxSum = 20

// LookupFailure returns log2 of the probability that a lookup takes the wrong entry, in the worst
// case of a circuit: keys of maxHolders holders, and an input that is a sum of results whose
// coefficients' squares add up to maxSum.
func (s *Set) LookupFailure() float64 {
	noise := s.NoiseOf(maxHolders, (maxHolders-1)/2)
	return noise.LookupFailure(maxSum * noise.Bootstrapped())
}

// standing returns the properties that decide whether a set may make keys.
func (s *Set) standing() hardness.Standing {
	return hardness.Standing{
		Set: s.Name, Successor: s.Successor, Insecure: s.Insecure, Bits: s.Security().Least(), LogFailure: s.LookupFailure(),
	}
}

// Legacy reports whether the set only serves existing keys.
func (s *Set) Legacy() bool { return s.Successor != "" }

// CheckNewKeys returns an error for a legacy set: a [*hardness.LegacyError], which names the
// successor.
func (s *Set) CheckNewKeys() error { return s.standing().CheckNewKeys() }

// N is the ring degree.
func (s *Set) N() int { return 1 << s.LogN }

// Drop is log2 of what digit 0 of the gadget counts modulo q: residues are rounded to multiples of
// 2^Drop.
func (g Gadget) Drop(q uint64) int { return bits.Len64(q) - g.LogBase*g.Digits }

// Factor is g_j, what digit j counts, j in [0, Digits).
func (g Gadget) Factor(q uint64, j int) uint64 { return 1 << (g.Drop(q) + j*g.LogBase) }

var sets = keyset.Registry[Set]{
	Scheme: "lwe", Sets: registry, Label: func(s *Set) (string, bool) { return s.Name, !s.Insecure && !s.Legacy() },
}

// Sets lists every set: those for new keys, legacy ones, those for tests. The caller owns the
// result.
func Sets() []*Set { return registry() }

// Names lists the sets for new keys, without those for tests.
func Names() []string { return sets.Names() }

// Lookup finds a set by name. The error is a [*keyset.UnknownError].
func Lookup(name string) (*Set, error) { return sets.Lookup(name) }

// maxBits bounds the modulus, so that 2^16 products of residues add up to two words; and
// maxSwitchBase the digits of key switching too, so that some residues times digits add up to one.
const (
	maxBits         = 54
	maxSwitchBase   = 8
	maxRotationBase = 30
)

// Validate checks the requirements of correctness and security on a set. New checks that Q is
// prime.
func (s *Set) Validate() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("lwe: set %s: %s", s.Name, fmt.Sprintf(format, a...))
	}
	switch {
	case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:
		return fail("name and Insecure disagree")
	case s.LogN < 4 || s.LogN > 13:
		return fail("log2 N = %d is out of range", s.LogN)
	case bits.Len64(s.Q) > maxBits || s.Q%(2*uint64(s.N())) != 1:
		return fail("%d is larger than %d bits or not 1 mod 2N", s.Q, maxBits)
	case s.P < 8 || bits.OnesCount64(s.P) != 1 || 4*s.P > uint64(s.N()):
		return fail("p = %d is not a power of two from 8 to N/4", s.P)
	case s.Dim < 1 || s.Dim > s.N():
		return fail("dimension %d is not in [1, N]", s.Dim)
	case !(s.Variance >= minVariance) || !(s.SwitchVariance >= minVariance):
		return fail("errors are narrower than a standard deviation of %v", minDeviation)
	case s.Centred && float64(s.Dim)*float64(s.Q) >= 1<<63:
		return fail("%d rounding errors modulo %d may overflow a word", s.Dim, s.Q)
	}
	for _, x := range []struct {
		g       Gadget
		longest int
	}{{s.Rotation, maxRotationBase}, {s.Switch, maxSwitchBase}} {
		if x.g.LogBase < 1 || x.g.LogBase > x.longest || x.g.Digits < 1 || x.g.Drop(s.Q) < 0 {
			return fail("a gadget of %d digits of %d bits", x.g.Digits, x.g.LogBase)
		}
	}
	//lodge:check lwe/security run=TestValidateRefuses a set below 128 bits, or that fails with more than 2^-128, makes keys
	if err := s.standing().Check(); err != nil {
		return fail("%v", err)
	}
	return nil
}

// Hash identifies everything in the set that affects keys and ciphertexts, including its name.
func (s *Set) Hash() [32]byte {
	var extensions []string
	if s.Centred {
		extensions = append(extensions, "centred rounding")
	}
	return keyset.Hash("lodge lwe set 1", s.Name, []uint64{
		uint64(s.LogN), s.Q, s.P, uint64(s.Dim), math.Float64bits(s.Variance), math.Float64bits(s.SwitchVariance),
		uint64(s.Rotation.LogBase), uint64(s.Rotation.Digits), uint64(s.Switch.LogBase), uint64(s.Switch.Digits), keyset.Flag(s.Insecure),
	}, extensions...)
}
