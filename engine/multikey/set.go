package multikey

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Default is the name of the set used when the configuration does not choose one.
const Default = "M11-4"

// InsecurePrefix starts the name of every set below the security target: the paper's sets, and one
// for tests.
const InsecurePrefix = "insecure-"

// A Set is one choice of dimensions, distributions and gadgets. Sets are data and must not be modified.
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
	Drop     int     // low bits of words modulo 2^64 that published keys omit: they are far below the errors
	Insecure bool    // must agree with the name
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

// shipped returns a set of 128-bit security whose ring errors have deviation 2^-50. Deviations are
// literals because they are part of the set's hash, and computed powers may differ in the last bits
// between processors.
func shipped(parties, dim int, deviation float64, rotation, lev, switches Gadget) *Set {
	return &Set{
		Name: fmt.Sprintf("M11-%d", parties), Parties: parties, LogN: 11, Dim: dim, Block: 2,
		LWE: deviation, Ring: 0x1p-50, Rotation: rotation, Lev: lev, Uni: Gadget{12, 2}, Switch: switches, Drop: 8,
	}
}

func registry() []*Set {
	return []*Set{
		shipped(2, 684, 0x1.6a09e667f3bccp-16, Gadget{8, 5}, Gadget{11, 1}, Gadget{3, 5}),
		shipped(4, 724, 0x1.6a09e667f3bccp-17, Gadget{11, 3}, Gadget{6, 2}, Gadget{3, 5}),
		shipped(8, 684, 0x1.6a09e667f3bccp-16, Gadget{9, 4}, Gadget{7, 2}, Gadget{2, 7}),
		shipped(16, 736, 0x1.306fe0a31b715p-17, Gadget{8, 5}, Gadget{8, 2}, Gadget{2, 7}),
		shipped(32, 744, 0x1p-17, Gadget{6, 7}, Gadget{8, 2}, Gadget{2, 7}),
		paper("I", 2, Gadget{12, 3}, Gadget{6, 2}, Gadget{10, 3}),
		paper("II", 4, Gadget{8, 5}, Gadget{8, 2}, Gadget{6, 7}),
		paper("III", 8, Gadget{9, 4}, Gadget{6, 3}, Gadget{4, 8}),
		paper("IV", 16, Gadget{8, 5}, Gadget{6, 3}, Gadget{4, 9}),
		paper("V", 32, Gadget{7, 6}, Gadget{7, 3}, Gadget{2, 16}),
		{
			Name: InsecurePrefix + "M8-32", Parties: 32, LogN: 8, Dim: 32, Block: 2, LWE: 0x1p-20, Ring: 0x1p-50,
			Rotation: Gadget{12, 3}, Lev: Gadget{8, 2}, Uni: Gadget{12, 2}, Switch: Gadget{2, 8}, Drop: 8, Insecure: true,
		},
	}
}

// Security holds a rough estimate of log2 of the cost of the primal attack on s from ring samples,
// and on z from LWE samples. The tests implement the model.
type Security struct{ Ring, LWE float64 }

// Minimal estimates for sets that are not insecure. The model is about five bits above the lattice
// estimator for binary secrets of a few hundred coordinates; the second limit leaves a margin for
// that.
const (
	leastRing = 130
	leastLWE  = 133
)

// securities holds the estimates by name, cut to a tenth of a bit.
var securities = map[string]Security{
	"M11-2":            {Ring: 134.1, LWE: 133.6},
	"M11-4":            {Ring: 134.1, LWE: 133.7},
	"M11-8":            {Ring: 134.1, LWE: 133.6},
	"M11-16":           {Ring: 134.1, LWE: 134.2},
	"M11-32":           {Ring: 134.1, LWE: 133.7},
	"insecure-M11-I":   {Ring: 115.6, LWE: 112.6},
	"insecure-M11-II":  {Ring: 115.6, LWE: 112.6},
	"insecure-M11-III": {Ring: 115.6, LWE: 112.6},
	"insecure-M11-IV":  {Ring: 115.6, LWE: 112.6},
	"insecure-M11-V":   {Ring: 115.6, LWE: 112.6},
}

// Security returns the estimate for a set, or 0 if there is none.
func (s *Set) Security() Security { return securities[s.Name] }

// N returns the ring degree.
func (s *Set) N() int { return 1 << s.LogN }

// MaxParties is the maximal number of parties in a ciphertext of any set.
const MaxParties = 32

// Sets lists every set, shipped ones first. The caller owns the result.
func Sets() []*Set { return registry() }

// Names lists the sets that are not insecure.
func Names() (names []string) {
	for _, s := range registry() {
		if !s.Insecure {
			names = append(names, s.Name)
		}
	}
	return names
}

// Lookup finds a set by name. The error is an *UnknownError.
func Lookup(name string) (*Set, error) {
	for _, s := range registry() {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, &UnknownError{Name: name, Known: Names()}
}

// For returns the smallest set that is not insecure and allows the given number of parties in one
// ciphertext. The error wraps ErrParties.
func For(parties int) (*Set, error) {
	for _, s := range registry() {
		if parties >= 1 && parties <= s.Parties && !s.Insecure {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: no set supports %d parties", ErrParties, parties)
}

// UnknownError reports an unknown set and lists the known ones.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("multikey: unknown set %q (known: %s)", e.Name, strings.Join(e.Known, ", "))
}

// Words of keys, and of LWE ciphertexts, are taken modulo two to these powers.
const (
	ringBits = 64
	lweBits  = 32
)

// leastError is the smallest standard deviation of errors as integers; lwe.NewErrors accepts none
// below it.
const leastError = 2.1

// Validate checks the requirements of correctness and security on a set.
func (s *Set) Validate() error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("multikey: set %s: %s", s.Name, fmt.Sprintf(format, a...))
	}
	switch {
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
	if f := s.Security(); !s.Insecure && (f.Ring < leastRing || f.LWE < leastLWE) {
		return fail("its security has no estimate, or one below %d and %d bits", leastRing, leastLWE)
	}
	return nil
}

// Hash returns the identity of everything in the set on which keys and ciphertexts depend,
// including its name: SHA-256 of the fields, each preceded by its length in eight bytes, big
// endian, as engine/params hashes its sets.
func (s *Set) Hash() [32]byte {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	field([]byte("lodge multikey set 1"))
	field([]byte(s.Name))
	insecure := uint64(0)
	if s.Insecure {
		insecure = 1
	}
	for _, v := range []uint64{
		uint64(s.Parties), uint64(s.LogN), uint64(s.Dim), uint64(s.Block), math.Float64bits(s.LWE), math.Float64bits(s.Ring),
		uint64(s.Rotation.LogBase), uint64(s.Rotation.Digits), uint64(s.Lev.LogBase), uint64(s.Lev.Digits),
		uint64(s.Uni.LogBase), uint64(s.Uni.Digits), uint64(s.Switch.LogBase), uint64(s.Switch.Digits),
		uint64(s.Drop), insecure,
	} {
		field(binary.BigEndian.AppendUint64(nil, v))
	}
	return [32]byte(h.Sum(nil))
}
