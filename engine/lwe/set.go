package lwe

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Default names the set that is used when none is asked for.
const Default = "L11-50"

// InsecurePrefix starts the name of every set that is too small to be secure. Such sets exist for tests.
const InsecurePrefix = "insecure-"

// A Set is one choice of rings, moduli, distributions and gadgets. Sets are data and must not be modified.
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
	Insecure       bool    // for tests only; the name says so too
}

// A Gadget cuts residues into digits of base B = 2^LogBase. Digit j counts g_j = 2^Drop B^j; what is below 2^Drop is
// rounded off.
type Gadget struct{ LogBase, Digits int }

// Moduli: the largest prime under 2^50 and the prime of the paper, both 1 mod 2^12.
const (
	q50 = 1<<50 - 16383
	q53 = 9007199254614017
)

func registry() []*Set {
	return []*Set{
		{
			Name: "L11-50", LogN: 11, Q: q50, P: 16, Dim: 1024, Variance: 12.96, SwitchVariance: 1 << 52,
			Rotation: Gadget{LogBase: 23, Digits: 1}, Switch: Gadget{LogBase: 6, Digits: 3},
		},
		{
			Name: "L11-53", LogN: 11, Q: q53, P: 16, Dim: 1024, Variance: 12.96, SwitchVariance: 11.56 * (1 << 52),
			Rotation: Gadget{LogBase: 6, Digits: 8}, Switch: Gadget{LogBase: 1, Digits: 52},
		},
		{
			Name: "insecure-L8-50", LogN: 8, Q: q50, P: 16, Dim: 16, Variance: 12.96, SwitchVariance: 1 << 52,
			Rotation: Gadget{LogBase: 23, Digits: 1}, Switch: Gadget{LogBase: 6, Digits: 3}, Insecure: true,
		},
		{
			Name: "insecure-L8-53", LogN: 8, Q: q53, P: 16, Dim: 16, Variance: 12.96, SwitchVariance: 11.56 * (1 << 52),
			Rotation: Gadget{LogBase: 6, Digits: 8}, Switch: Gadget{LogBase: 1, Digits: 52}, Insecure: true,
		},
	}
}

// Security is a rough estimate of log2 of the cost of the primal attack on the secret z by ring samples and on s by
// samples of the switching key. The tests have the model.
type Security struct{ Ring, Switch float64 }

// minSecurity is the least estimate of a set that is not for tests.
const minSecurity = 128

// securities are the estimates by name, cut to a tenth of a bit.
var securities = map[string]Security{
	"L11-50": {Ring: 141.1, Switch: 134.8},
	"L11-53": {Ring: 132.3, Switch: 128.3},
}

// Security is the estimate of a set, or 0 where there is none.
func (s *Set) Security() Security { return securities[s.Name] }

// N is the ring degree.
func (s *Set) N() int { return 1 << s.LogN }

// Drop is log2 of what digit 0 of the gadget counts modulo q: residues are rounded to multiples of 2^Drop.
func (g Gadget) Drop(q uint64) int { return bits.Len64(q) - g.LogBase*g.Digits }

// Factor is g_j, what digit j counts, j in [0, Digits).
func (g Gadget) Factor(q uint64, j int) uint64 { return 1 << (g.Drop(q) + j*g.LogBase) }

// Sets lists every set, shipped ones first. The caller owns the result.
func Sets() []*Set { return registry() }

// Lookup finds a set by name. The error is an *UnknownError.
func Lookup(name string) (*Set, error) {
	var names []string
	for _, s := range registry() {
		if s.Name == name {
			return s, nil
		}
		if !s.Insecure {
			names = append(names, s.Name)
		}
	}
	return nil, &UnknownError{Name: name, Known: names}
}

// UnknownError says that a set does not exist and which do.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("lwe: unknown set %q (known: %s)", e.Name, strings.Join(e.Known, ", "))
}

// maxBits bounds the modulus, so that 2^16 products of residues add up to two words; and maxSwitchBase the digits of
// key switching too, so that some residues times digits add up to one.
const (
	maxBits         = 54
	maxSwitchBase   = 8
	maxRotationBase = 30
)

// Validate checks what the mathematics and the security table require of a set. That Q is prime is checked by New.
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
	}
	for _, x := range []struct {
		g       Gadget
		longest int
	}{{s.Rotation, maxRotationBase}, {s.Switch, maxSwitchBase}} {
		if x.g.LogBase < 1 || x.g.LogBase > x.longest || x.g.Digits < 1 || x.g.Drop(s.Q) < 0 {
			return fail("a gadget of %d digits of %d bits", x.g.Digits, x.g.LogBase)
		}
	}
	if f := s.Security(); !s.Insecure && min(f.Ring, f.Switch) < minSecurity {
		return fail("no estimate of its security, or one below %d bits", minSecurity)
	}
	return nil
}

// Hash identifies everything in the set that keys and ciphertexts depend on, its name included: SHA-256 of the fields,
// each behind its length in eight bytes, big endian, as engine/params hashes its sets.
func (s *Set) Hash() [32]byte {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	field([]byte("lodge lwe set 1"))
	field([]byte(s.Name))
	insecure := uint64(0)
	if s.Insecure {
		insecure = 1
	}
	for _, v := range []uint64{
		uint64(s.LogN), s.Q, s.P, uint64(s.Dim), math.Float64bits(s.Variance), math.Float64bits(s.SwitchVariance),
		uint64(s.Rotation.LogBase), uint64(s.Rotation.Digits), uint64(s.Switch.LogBase), uint64(s.Switch.Digits), insecure,
	} {
		field(binary.BigEndian.AppendUint64(nil, v))
	}
	return [32]byte(h.Sum(nil))
}

// Names lists the sets that are not for tests.
func Names() []string {
	var names []string
	for _, s := range registry() {
		if !s.Insecure {
			names = append(names, s.Name)
		}
	}
	return slices.Clip(names)
}
