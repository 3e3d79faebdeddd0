package masks

import (
	"errors"
	"fmt"
	"math/bits"
)

// Form says how a decryption takes the noise off.
type Form uint8

// The forms of a mask.
const (
	// Paper is the form of Ajax: two messages, and a failure with the probability |e|/Phi.
	Paper Form = 1
	// Exact compares the mask with the masked noise, and never fails.
	Exact Form = 2
)

func (f Form) String() string {
	switch f {
	case Paper:
		return "paper"
	case Exact:
		return "exact"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// Kind is what records must have in common to be spent together.
type Kind struct {
	Form   Form
	LogEta int    // eta = 2^LogEta; with an odd p, residues modulo eta have so many bits
	LogPhi int    // Phi = 2^LogPhi, eta/p
	Odd    uint64 // p, if it is odd: eta = Phi p then. Only the exact form has such
}

// OddKind is the kind of the exact form for an odd p.
func OddKind(p uint64, logPhi int) Kind {
	return Kind{Form: Exact, LogEta: logPhi + bits.Len64(p), LogPhi: logPhi, Odd: p}
}

// ErrKind says that a kind is none that this package makes.
var ErrKind = errors.New("masks: no such kind")

// Limits of kinds.
const (
	MaxLogEta = 61
	maxExact  = 16 // bits of rho
)

// LogP is the size of a plaintext in bits.
func (k Kind) LogP() int { return k.LogEta - k.LogPhi }

// P is the plaintext modulus.
func (k Kind) P() uint64 {
	if k.Odd != 0 {
		return k.Odd
	}
	return 1 << k.LogP()
}

// Eta is what shares are modulo.
func (k Kind) Eta() uint64 { return k.P() << k.LogPhi }

// Check refuses what is no kind: the form is one of the two, 4 <= p <= 2^16 for powers of two, 3 <= p for odd p, and 2
// <= Phi.
func (k Kind) Check() error {
	if k.Odd != 0 {
		return k.checkOdd()
	}
	if k.Form != Paper && k.Form != Exact || k.LogEta > MaxLogEta || k.LogPhi < 1 || k.LogP() < 2 || k.LogP() > 16 {
		return fmt.Errorf("%w: %s with eta = 2^%d, Phi = 2^%d", ErrKind, k.Form, k.LogEta, k.LogPhi)
	}
	if k.Form == Exact && k.LogPhi > maxExact {
		return fmt.Errorf("%w: comparison of %d bits", ErrKind, k.LogPhi)
	}
	return nil
}

func (k Kind) checkOdd() error {
	if k.Odd < 3 || k.Odd%2 == 0 || k.LogPhi < 1 || k.LogPhi > maxExact || k.LogEta > MaxLogEta ||
		k != OddKind(k.Odd, k.LogPhi) {
		return fmt.Errorf("%w: %s with %d bits of eta, Phi = 2^%d, p = %d", ErrKind, k.Form, k.LogEta, k.LogPhi, k.Odd)
	}
	return nil
}

// And is one product of a comparison, of shared bits: groups of bits of rho are joined by pairs of neighbours, and
// High and Low are the groups' numbers in their level, the lowest bits first. With g = [v < rho] and e = [v = rho] on
// a group, the pair has g_High + e_High g_Low and e_High e_Low; Equal says that it is the second product, which the
// lowest group does without.
type And struct {
	High, Low int
	Equal     bool
}

// Groups is into how many groups the bits of rho go before the first level: pairs, and one alone if k is odd.
func (k Kind) Groups() int { return (k.LogPhi + 1) / 2 }

// Levels are the products of a comparison, level by level; those of a level are independent. Where the number of
// groups is odd, the highest goes to the next level as it is.
func (k Kind) Levels() [][]And {
	if k.Form != Exact {
		return nil
	}
	var levels [][]And
	for groups := k.Groups(); groups > 1; groups = (groups + 1) / 2 {
		var level []And
		for low := 0; low+1 < groups; low += 2 {
			level = append(level, And{low + 1, low, false})
			if low > 0 {
				level = append(level, And{low + 1, low, true})
			}
		}
		levels = append(levels, level)
	}
	return levels
}

// Triples is the number of triples of a record: one for each product of Levels.
func (k Kind) Triples() int {
	n := 0
	for _, l := range k.Levels() {
		n += len(l)
	}
	return n
}

// Products is the number of products of neighbouring bits of rho in a record.
func (k Kind) Products() int {
	if k.Form != Exact {
		return 0
	}
	return k.LogPhi / 2
}

// widths are the sizes of shares of bits, which are modulo eta/2^i for the bits of r or rho, and modulo p for d. For
// powers of two that is Z_2^w.
func (k Kind) widths() []int {
	var w []int
	for i := range k.LogPhi {
		w = append(w, k.LogEta-i)
	}
	if k.Form == Exact {
		w = append(w, k.LogP())
	}
	return w
}

// factors are the planes of bits whose products a record has: products of bits of rho, then triples. The planes of
// triples follow those of widths.
func (k Kind) factors() [][2]int {
	var f [][2]int
	for g := range k.Products() {
		f = append(f, [2]int{2*g + 1, 2 * g})
	}
	first := len(k.widths())
	for t := range k.Triples() {
		f = append(f, [2]int{first + 2*t, first + 2*t + 1})
	}
	return f
}

// planes is the number of bits that a record is made of.
func (k Kind) planes() int { return len(k.widths()) + 2*k.Triples() }

// transfers is the number of oblivious transfers of a pair of parties for one record.
func (k Kind) transfers() int { return len(k.widths()) + 2*len(k.factors()) }

// bitPlanes is the number of shares over GF(2) in a record of the exact form: of the bits of rho, of their products, of
// triples (x, y, xy) and, where the lowest bit of a share modulo p is none, of d.
func (k Kind) bitPlanes() int {
	n := k.LogPhi + k.Products() + 3*k.Triples()
	if k.Odd != 0 {
		n++
	}
	return n
}

// recordBits is the size of a record: the share of r or rho and, in the exact form, shares of bits, and the share of d.
func (k Kind) recordBits() int {
	if k.Form == Paper {
		return k.LogEta
	}
	return k.LogEta + k.bitPlanes() + k.LogP()
}

// RecordSize is the size of a record in bytes.
func (k Kind) RecordSize() int { return (k.recordBits() + 7) / 8 }
