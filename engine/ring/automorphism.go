package ring

import (
	"fmt"

	lattigo "github.com/tuneinsight/lattigo/v6/ring"
)

// Automorphism sets dst = x(X^g) for odd g. dst must not be x.
func (b *Basis) Automorphism(dst, x Poly, g int) {
	mask := 2*b.n - 1
	for i, l := range b.limbs {
		d, s := dst.C[i], x.C[i]
		for k, at := 0, 0; k < b.n; k, at = k+1, (at+g)&mask {
			if at < b.n {
				d[at] = s[k]
			} else {
				d[at-b.n] = l.Neg(s[k])
			}
		}
	}
}

// AutomorphismNTT sets dst = x(X^g) for odd g. dst must not be x.
func (b *Basis) AutomorphismNTT(dst, x NTT, g int) {
	index := b.slots(g)
	for i := range b.limbs {
		d, s := dst.C[i], x.C[i]
		for k, from := range index {
			d[k] = s[from]
		}
	}
}

// slots returns the permutation of slots for g: slot k of x(X^g) holds the value of x in slot
// slots(g)[k]. A slot with exponent e maps to the slot with exponent g e.
func (b *Basis) slots(g int) []uint64 {
	index, err := lattigo.AutomorphismNTTIndex(b.n, uint64(2*b.n), uint64(g&(2*b.n-1)))
	if err != nil {
		panic(err) // the degree is a power of two
	}
	return index
}

// Orbits is the partition of the N slots of the evaluation form into N/d orbits of length d under X
// -> X^g.
type Orbits struct {
	d    int
	slot []int32
}

// NewOrbits prepares the orbits of g, whose order modulo 2N is d.
func NewOrbits(b *Basis, g, d int) *Orbits {
	index := b.slots(g)
	o := &Orbits{d: d, slot: make([]int32, 0, b.n)}
	seen := make([]bool, b.n)
	for start := range b.n {
		if seen[start] {
			continue
		}
		at := start
		for range d {
			if seen[at] {
				panic(fmt.Sprintf("ring: the order of %d is not %d", g, d))
			}
			seen[at] = true
			o.slot = append(o.slot, int32(at))
			at = int(index[at])
		}
		if at != start {
			panic(fmt.Sprintf("ring: the order of %d is not %d", g, d))
		}
	}
	return o
}

// Count returns the number of orbits.
func (o *Orbits) Count() int { return len(o.slot) / o.d }

// Index returns slot s_j of an orbit s_0, ..., s_(d-1). Slot s_j of x(X^g) holds the value of x in
// s_(j+1), indices mod d.
func (o *Orbits) Index(orbit, j int) int { return int(o.slot[orbit*o.d+j]) }
