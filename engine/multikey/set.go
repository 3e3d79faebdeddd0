package multikey

import (
	"fmt"
	"math"
	"strings"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

// Default names the set used when the configuration does not choose one.
const Default = "M11-4-128"

// InsecurePrefix starts the name of every set below the security target: the paper's sets, and one
// for tests.
const InsecurePrefix = keyset.InsecurePrefix

// A Set is one choice of dimensions, distributions and gadgets. Sets are data and must not be
// modified.
type Set struct {
	Name     string
	Parties  int     // maximal number of parties in one ciphertext
	LogN     int     // ring Z[X]/(X^N+1), N = 2^LogN
	Dim      int     // n, the dimension of LWE ciphertexts for each party
	Block    int     // in each block of this many coordinates of z, at most one is 1
	LWE      float64 // standard deviation of errors of encryptions and the switching key, as a fraction of the torus
	Ring     float64 // the same for errors of the other keys
	Rotation Gadget  // of the rotation key
	Lev      Gadget  // of accumulators
	Uni      Gadget  // of the public part and the relinearisation key
	Switch   Gadget  // of the switching key
	Drop     int     // low bits of words modulo 2^64 that published keys do not have: they are far below the errors
	Centred  bool    // rounding to multiples of 1/2N subtracts the mean of its errors
	Insecure bool    // also marked in the name

	// Successor names the set for new keys that replaces this one, if this one is legacy. It is not
	// part of the hash.
	Successor string
}

// A Gadget decomposes the torus into Digits digits of base B = 2^LogBase from the top: digit j has
// weight B^-(j+1), and the rest is rounded off. Digits are in [-B/2, B/2).
type Gadget struct{ LogBase, Digits int }

// paper returns a set of Table 1 of the paper.
func paper(name string, parties int, rotation, lev, uni Gadget) *Set {
	return &Set{
		Name: InsecurePrefix + "M11-" + name, Parties: parties, LogN: 11, Dim: 560, Block: 2, LWE: 3.05e-5, Ring: 4.63e-18,
		Rotation: rotation, Lev: lev, Uni: uni, Switch: Gadget{2, 8}, Insecure: true,
	}
}

// shipped returns a set whose ring errors have the deviation 2^-50. Deviations are written as
// constants because they are part of the set's hash: computed powers differ in their last bits
// between processors.
func shipped(name string, parties, dim int, deviation float64, rotation, lev, switches Gadget) *Set {
	return &Set{
		Name: name, Parties: parties, LogN: 11, Dim: dim, Block: 2,
		LWE: deviation, Ring: 0x1p-50, Rotation: rotation, Lev: lev, Uni: Gadget{12, 2}, Switch: switches, Drop: 8,
	}
}

// current returns a set for new keys.
func current(parties, dim int, deviation float64, rotation, lev, switches Gadget) *Set {
	s := shipped(fmt.Sprintf("M11-%d-128", parties), parties, dim, deviation, rotation, lev, switches)
	s.Centred = true
	return s
}

// legacy returns a set that shipped with fewer than 128 bits of security.
func legacy(parties, dim int, deviation float64, rotation, lev, switches Gadget) *Set {
	s := shipped(fmt.Sprintf("M11-%d", parties), parties, dim, deviation, rotation, lev, switches)
	s.Successor = s.Name + "-128"
	return s
}

func registry() []*Set {
	return []*Set{
		current(2, 716, 0x1.6a09e667f3bccp-16, Gadget{7, 6}, Gadget{12, 1}, Gadget{2, 7}),
		current(4, 716, 0x1.6a09e667f3bccp-16, Gadget{9, 4}, Gadget{7, 2}, Gadget{2, 7}),
		current(8, 776, 0x1p-17, Gadget{9, 4}, Gadget{7, 2}, Gadget{2, 8}),
		current(16, 776, 0x1p-17, Gadget{7, 6}, Gadget{8, 2}, Gadget{2, 8}),
		current(32, 820, 0x1.bdb8cdadbe124p-19, Gadget{8, 5}, Gadget{6, 3}, Gadget{2, 8}),
		legacy(2, 684, 0x1.6a09e667f3bccp-16, Gadget{8, 5}, Gadget{11, 1}, Gadget{3, 5}),
		legacy(4, 724, 0x1.6a09e667f3bccp-17, Gadget{11, 3}, Gadget{6, 2}, Gadget{3, 5}),
		legacy(8, 684, 0x1.6a09e667f3bccp-16, Gadget{9, 4}, Gadget{7, 2}, Gadget{2, 7}),
		legacy(16, 736, 0x1.306fe0a31b715p-17, Gadget{8, 5}, Gadget{8, 2}, Gadget{2, 7}),
		legacy(32, 744, 0x1p-17, Gadget{6, 7}, Gadget{8, 2}, Gadget{2, 7}),
		paper("I", 2, Gadget{12, 3}, Gadget{6, 2}, Gadget{10, 3}),
		paper("II", 4, Gadget{8, 5}, Gadget{8, 2}, Gadget{6, 7}),
		paper("III", 8, Gadget{9, 4}, Gadget{6, 3}, Gadget{4, 8}),
		paper("IV", 16, Gadget{8, 5}, Gadget{6, 3}, Gadget{4, 9}),
		paper("V", 32, Gadget{7, 6}, Gadget{7, 3}, Gadget{2, 16}),
		{
			Name: InsecurePrefix + "M8-32", Parties: 32, LogN: 8, Dim: 32, Block: 2, LWE: 0x1p-20, Ring: 0x1p-50,
			Rotation: Gadget{12, 3}, Lev: Gadget{8, 2}, Uni: Gadget{12, 2}, Switch: Gadget{2, 8}, Drop: 8, Insecure: true,
		},
		{ // For tests of what legacy sets may do.
			Name: InsecurePrefix + "M8-legacy", Parties: 32, LogN: 8, Dim: 32, Block: 2, LWE: 0x1p-20, Ring: 0x1p-50,
			Rotation: Gadget{12, 3}, Lev: Gadget{8, 2}, Uni: Gadget{12, 2}, Switch: Gadget{2, 8}, Drop: 8, Insecure: true,
			Successor: InsecurePrefix + "M8-32-128",
		},
		{
			Name: InsecurePrefix + "M8-32-128", Parties: 32, LogN: 8, Dim: 32, Block: 2, LWE: 0x1p-20, Ring: 0x1p-50,
			Rotation: Gadget{12, 3}, Lev: Gadget{8, 2}, Uni: Gadget{12, 2}, Switch: Gadget{2, 8}, Drop: 8, Centred: true, Insecure: true,
		},
	}
}

// Security holds the estimates of package [hardness] for ring samples, whose secret is s, and for
// LWE samples, whose secret is z.
type Security struct{ Ring, LWE hardness.Bits }

// Least returns the smaller of both: breaking either kind of sample is enough.
func (s Security) Least() hardness.Bits { return s.Ring.Min(s.LWE) }

// Security estimates the hardness of a set's samples. Attackers guess whole blocks of z. In s they
// guess these coordinates first, because each contributes less than a bit; the others are uniform
// bits. The secrets t and r are ternary, with more variance and more candidates than s.
func (s *Set) Security() Security {
	block := hardness.Blocks(s.Block)
	z := float64(s.Dim) / float64(s.N())
	all := hardness.Secret{Variance: z*block.Variance + (1-z)*hardness.Binary.Variance, LogSupport: block.LogSupport}
	return Security{
		Ring: hardness.Samples{Dim: s.N(), LogQ: ringBits, Deviation: math.Ldexp(s.Ring, ringBits), Secret: all}.Estimate(),
		LWE:  hardness.Samples{Dim: s.Dim, LogQ: lweBits, Deviation: math.Ldexp(s.LWE, lweBits), Secret: block}.Estimate(),
	}
}

// LogFailure returns log2 of the probability that the worst gate of any circuit, with the maximal
// number of parties, yields a wrong bit, or that a result of a multiplexer decrypts to a wrong bit.
func (s *Set) LogFailure() float64 {
	n := s.Noise(s.Parties)
	return max(n.WorstFailure(), n.DecryptionFailure(n.Mux()))
}

// standing returns the properties that decide whether a set may be used.
func (s *Set) standing() hardness.Standing {
	return hardness.Standing{
		Set: s.Name, Successor: s.Successor, Insecure: s.Insecure, Bits: s.Security().Least(), LogFailure: s.LogFailure(),
	}
}

// Legacy reports whether the set only serves existing keys and new keys are refused.
func (s *Set) Legacy() bool { return s.Successor != "" }

// CheckNewKeys returns an error for a legacy set. The error is a [*hardness.LegacyError], which
// names the successor.
func (s *Set) CheckNewKeys() error { return s.standing().CheckNewKeys() }

// N returns the ring degree.
func (s *Set) N() int { return 1 << s.LogN }

// MaxParties is the maximal number of parties in a ciphertext of any set.
const MaxParties = 32

var sets = keyset.Registry[Set]{
	Scheme: "multikey", Sets: registry, Label: func(s *Set) (string, bool) { return s.Name, !s.Insecure && !s.Legacy() },
}

// Sets lists every set: those for new keys, legacy ones, insecure ones. The caller owns the result.
func Sets() []*Set { return registry() }

// Names lists the sets for new keys, without those for tests.
func Names() []string { return sets.Names() }

// Lookup finds a set by name. The error is a [*keyset.UnknownError].
func Lookup(name string) (*Set, error) { return sets.Lookup(name) }

// For returns the smallest set for new keys with this many parties in one ciphertext. The error
// wraps [ErrParties].
func For(parties int) (*Set, error) {
	for _, s := range registry() {
		//lodge:check multikey/most-parties [drop=parties >= 1] [run=Sets] a set is chosen for no
		//  parties at all
		//lodge:check multikey/shipped [drop=!s.Insecure] [swap=!s.Legacy()=>s.Insecure] [run=Sets]
		//  an insecure set is chosen by default
		if parties >= 1 && parties <= s.Parties && !s.Insecure && !s.Legacy() {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: no set supports %d parties", ErrParties, parties)
}

// Words of keys, and of LWE ciphertexts, are taken modulo two to these powers.
const (
	ringBits = 64
	lweBits  = 32
)

// leastError is the smallest standard deviation of errors as integers; [lwe.NewErrors] accepts none
// below it.
const leastError = 2.1

// Validate checks the requirements of correctness and security on a set.
func (s *Set) Validate() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("multikey: set %s: %s", s.Name, fmt.Sprintf(format, a...))
	}
	switch {
	//lodge:check multikey/name [run=Validate] an insecure parameter set has the name of a secure
	//  one
	case strings.HasPrefix(s.Name, InsecurePrefix) != s.Insecure:
		return fail("name and Insecure disagree")
	case s.Parties < 1 || s.Parties > MaxParties:
		return fail("%d parties are not in [1, %d]", s.Parties, MaxParties)
	case s.LogN < 4 || s.LogN > 12:
		return fail("log2 N = %d is out of range", s.LogN)
	case s.Block < 1 || s.Block > 8:
		return fail("blocks of %d are not supported", s.Block)
	case s.Dim < s.Block || s.Dim >= s.N() || s.Dim%s.Block != 0 || s.Dim%2 != 0:
		return fail("dimension %d is odd, not in [1, N), or not of blocks of %d", s.Dim, s.Block)
	case !(s.LWE*(1<<lweBits) >= leastError && s.LWE < 0x1p-8) || !(s.Ring*(1<<ringBits) >= leastError && s.Ring < 0x1p-20):
		return fail("errors of deviations %g and %g are out of range", s.LWE, s.Ring)
	//lodge:check multikey/dropped [drop=math.Exp2(float64(s.Drop)) > s.Ring*(1<<ringBits)/4 &&
	//  s.Drop > 0] [run=Validate] keys drop bits that are not small next to their errors
	case s.Drop < 0 || math.Exp2(float64(s.Drop)) > s.Ring*(1<<ringBits)/4 && s.Drop > 0:
		return fail("dropping %d bits of keys is not negligible next to their errors", s.Drop)
	}
	for _, g := range []Gadget{s.Rotation, s.Lev, s.Uni, s.Switch} {
		// 2 N B is the largest exponent difference that transforms must represent in addition to a
		// word's 53 bits.
		if g.LogBase < 1 || g.LogBase > 20 || g.Digits < 1 || g.LogBase*g.Digits > 48 {
			return fail("a gadget of %d digits of %d bits is out of range", g.Digits, g.LogBase)
		}
	}
	if g := s.Switch; g.LogBase*g.Digits > lweBits {
		return fail("a switching gadget of %d digits of %d bits is out of range", g.Digits, g.LogBase)
	}
	//lodge:check multikey/security run=TestValidateRefuses a set below 128 bits, or that fails with more than 2^-128, makes keys
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
	return keyset.Hash("lodge multikey set 1", s.Name, []uint64{
		uint64(s.Parties), uint64(s.LogN), uint64(s.Dim), uint64(s.Block), math.Float64bits(s.LWE), math.Float64bits(s.Ring),
		uint64(s.Rotation.LogBase), uint64(s.Rotation.Digits), uint64(s.Lev.LogBase), uint64(s.Lev.Digits),
		uint64(s.Uni.LogBase), uint64(s.Uni.Digits), uint64(s.Switch.LogBase), uint64(s.Switch.Digits),
		uint64(s.Drop), keyset.Flag(s.Insecure),
	}, extensions...)
}
