package maccheck

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/field"
)

// Triple has this party's shares of a check triple: of random a and b, of a b, and of the MAC of b.
// Each is one element.
type Triple struct{ A, B, C, MACB field.Vec }

// TripleOfSquares makes a check triple of two random values x and y, their squares and their MACs:
// a = x + y, b = x - y and a b = x^2 - y^2. For uniform x and y, a and b are uniform and
// independent, because p is odd.
func TripleOfSquares(f *field.Field, x, y Pair, squareX, squareY field.Vec) Triple {
	t := Triple{A: f.NewVec(1), B: f.NewVec(1), C: f.NewVec(1), MACB: f.NewVec(1)}
	f.AddVec(t.A, x.Value, y.Value)
	f.SubVec(t.B, x.Value, y.Value)
	f.SubVec(t.C, squareX, squareY)
	f.SubVec(t.MACB, x.MAC, y.MAC)
	return t
}

// hide sets m to mac - a.
func (t *Triple) hide(f *field.Field, m, mac field.Element) { f.Sub(m, mac, t.A.At(0)) }

// multiply sets z to c + m b - y gamma(b).
func (t *Triple) multiply(f *field.Field, z, y, m field.Element) {
	x := f.NewElement()
	f.Mul(z, m, t.B.At(0))
	f.Add(z, z, t.C.At(0))
	f.Mul(x, y, t.MACB.At(0))
	f.Sub(z, z, x)
	clear(x)
}

// Material has the shares that one check consumes. They must not be part of any other opening or
// release.
type Material struct {
	Mask    Pair                 // rho, one authenticated random value
	Triples [Combinations]Triple // one for each combination; empty if the combination is empty

	consumed bool
}

// Wipe erases the shares.
func (m *Material) Wipe() {
	for _, v := range m.vectors() {
		v.Wipe()
	}
}

// Format prints no share, whatever the verb.
func (m *Material) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[material of a MAC check]") }

func (m *Material) vectors() []field.Vec {
	list := []field.Vec{m.Mask.Value, m.Mask.MAC}
	for _, t := range m.Triples {
		list = append(list, t.A, t.B, t.C, t.MACB)
	}
	return list
}

// consume marks the material as consumed. It returns an error if the material is incomplete, was
// consumed before, or has two parts that share memory.
func (m *Material) consume(used func(combination int) bool) error {
	//lodge:check maccheck/consumed a check triple that serves two checks reveals the MAC key
	if m.consumed {
		return errors.New("maccheck: the check triples were consumed by another check")
	}
	m.consumed = true
	seen := map[*uint64]bool{}
	for k, v := range m.vectors() {
		if k >= 2 && !used((k-2)/4) {
			continue
		}
		if len(v.W) == 0 || v.Len() != 1 {
			return errors.New("maccheck: the mask or a check triple is missing")
		}
		//lodge:check maccheck/shared-triple a check triple that serves two combinations reveals the MAC key
		if seen[&v.W[0]] {
			return errors.New("maccheck: two check triples, or one and the mask, are the same")
		}
		seen[&v.W[0]] = true
	}
	return nil
}
