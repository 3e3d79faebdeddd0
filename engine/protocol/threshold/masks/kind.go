package masks

import (
	"errors"
	"fmt"
	"math/bits"
)

// Form selects how a decryption removes the noise.
type Form uint8

// The forms of a mask.
const (
	// Paper is the form of Ajax: two messages, and failure with probability |e|/Phi.
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

// Kind describes records. Records that are spent together must have the same kind.
type Kind struct {
	Form   Form
	LogEta int    // eta = 2^LogEta; for an odd p, LogEta is the number of bits of eta
	LogPhi int    // Phi = 2^LogPhi, eta/p
	Odd    uint64 // p, if it is odd: then eta = Phi p. Only the exact form supports an odd p
}

// OddKind returns the kind of the exact form for an odd p.
func OddKind(p uint64, logPhi int) Kind {
	return Kind{Form: Exact, LogEta: logPhi + bits.Len64(p), LogPhi: logPhi, Odd: p}
}

// ErrKind is returned for a kind that this package does not support.
var ErrKind = errors.New("masks: kind is not supported")

// Limits of kinds.
const (
	MaxLogEta = 61
	maxExact  = 16 // bits of rho
)

// LogP returns the size of a plaintext in bits.
func (k Kind) LogP() int { return k.LogEta - k.LogPhi }

// P returns the plaintext modulus.
func (k Kind) P() uint64 {
	if k.Odd != 0 {
		return k.Odd
	}
	return 1 << k.LogP()
}

// Eta returns the modulus of the shares.
func (k Kind) Eta() uint64 { return k.P() << k.LogPhi }

// Check returns an error that wraps ErrKind unless the form is Paper or Exact, 4 <= p <= 2^16 for
// powers of two, 3 <= p for odd p, and 2 <= Phi. The exact form also limits Phi to 2^16.
func (k Kind) Check() error {
	if k.Odd != 0 {
		return k.checkOdd()
	}
	if k.Form != Paper && k.Form != Exact || k.LogEta > MaxLogEta || k.LogPhi < 1 || k.LogP() < 2 || k.LogP() > 16 {
		return fmt.Errorf("%w: %s with eta = 2^%d, Phi = 2^%d", ErrKind, k.Form, k.LogEta, k.LogPhi)
	}
	if k.Form == Exact && k.LogPhi > maxExact {
		return fmt.Errorf("%w: a comparison of %d bits is too long", ErrKind, k.LogPhi)
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

// And is one product of shared bits in a comparison. A level joins neighbouring groups of bits of
// rho in pairs. High and Low are the numbers of the groups in their level, lowest bits first. With
// g = [v < rho] and e = [v = rho] on a group, the pair has g_High + e_High g_Low and e_High e_Low.
// Equal marks the second product, which the lowest group does not need.
type And struct {
	High, Low int
	Equal     bool
}

// Groups returns the number of groups of bits of rho before the first level: pairs, and a single
// bit if log Phi is odd.
func (k Kind) Groups() int { return (k.LogPhi + 1) / 2 }

// Levels returns the products of a comparison, level by level; those of a level are independent. If
// the number of groups is odd, the highest passes unchanged to the next level.
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

// Triples returns the number of triples in a record: one for each product of Levels.
func (k Kind) Triples() int {
	n := 0
	for _, l := range k.Levels() {
		n += len(l)
	}
	return n
}

// Products returns the number of products of neighbouring bits of rho in a record.
func (k Kind) Products() int {
	if k.Form != Exact {
		return 0
	}
	return k.LogPhi / 2
}

// widths returns the sizes in bits of the shares of bits, which are modulo eta/2^i for the bits of
// r or rho, and modulo p for d. For powers of two this is Z_2^w.
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

// factors returns the pairs of planes of bits whose products a record contains: products of bits of
// rho, then triples. The planes of triples follow those of widths.
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

// planes returns the number of bits from which a record is made.
func (k Kind) planes() int { return len(k.widths()) + 2*k.Triples() }

// transfers returns the number of oblivious transfers between a pair of parties for one record.
func (k Kind) transfers() int { return len(k.widths()) + 2*len(k.factors()) }

// bitPlanes returns the number of shares over GF(2) in a record of the exact form: of the bits of
// rho, of their products, of triples (x, y, xy) and, for odd p, of d. For even p the share of d is
// the lowest bit of the share modulo p.
func (k Kind) bitPlanes() int {
	n := k.LogPhi + k.Products() + 3*k.Triples()
	if k.Odd != 0 {
		n++
	}
	return n
}

// recordBits returns the size of a record: the share of r or rho and, in the exact form, shares of
// bits, and the share of d.
func (k Kind) recordBits() int {
	if k.Form == Paper {
		return k.LogEta
	}
	return k.LogEta + k.bitPlanes() + k.LogP()
}

// RecordSize returns the size of a record in bytes.
func (k Kind) RecordSize() int { return (k.recordBits() + 7) / 8 }
