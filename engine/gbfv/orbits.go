package gbfv

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// orbits lays out the matrices of matMul. The d slots of an orbit are adjacent, in some order:
// multiplying an exponent e by g^j, g = 1 mod 2N/d, changes only the upper log d of its log 2N
// bits, which are the lower bits of the slot number. So the words of an orbit form a row of d words
// in each polynomial. Moving the words to their places in a matrix means turning the columns of
// these rows: the column at place p, slot s_j, by j.
//
// The matrices have slots in the order of their places. A is stored transposed, and so is the
// product.
type orbits struct {
	d   int
	all []orbit
}

type orbit struct {
	base   int           // the first slot
	shear  *kernel.Shear // by j at the place of s_j
	places []int         // of s_0, s_1, ...
}

func newOrbits(s *Scheme, d int) *orbits {
	o := &orbits{d: d}
	slots := ring.NewOrbits(s.Q, Galois(s.N(), 1, d), d)
	for i := range slots.Count() {
		at := orbit{base: slots.Index(i, 0) &^ (d - 1)}
		shift := make([]int, d)
		for j := range d {
			p := slots.Index(i, j) - at.base
			if p < 0 || p >= d {
				panic(fmt.Sprintf("gbfv: the slots of an orbit of %d are not adjacent", d))
			}
			shift[p] = j
			at.places = append(at.places, p)
		}
		var err error
		if at.shear, err = kernel.NewShear(shift); err != nil {
			panic(err)
		}
		o.all = append(o.all, at)
	}
	return o
}

// factors holds the matrices of one orbit: A^T, B, and the transposed product.
type factors struct {
	a, b, c matrix
	sorted  [][]uint64 // the rows of c in the order of slots
}

// matrix consists of d rows of d words, stored consecutively.
type matrix struct {
	words []uint64
	rows  [][]uint64
}

func newMatrix(d int) matrix {
	m := matrix{words: make([]uint64, d*d)}
	for k := range d {
		m.rows = append(m.rows, m.words[k*d:(k+1)*d])
	}
	return m
}

func (o *orbits) newFactors() *factors {
	return &factors{newMatrix(o.d), newMatrix(o.d), newMatrix(o.d), make([][]uint64, o.d)}
}

// gather reads the factors from the slots of an orbit: A^T from the limbs of a_0, a_1, ..., B from
// those of b_0, b_-1, ...
func (f *factors) gather(o *orbit, a, b [][]uint64) {
	o.shear.Down(f.a.rows, 0, a, o.base)
	o.shear.Down(f.b.rows, 0, b, o.base)
}

// multiply computes B^T·A^T.
func (f *factors) multiply(m *kernel.Modulus) {
	d := len(f.sorted)
	kernel.MatMulTransposed(f.c.words, f.b.words, f.a.words, d, d, d, m.Q)
}

// scatter writes the product to the slots of an orbit.
func (f *factors) scatter(o *orbit, to [][]uint64) {
	for k, p := range o.places {
		f.sorted[k] = f.c.rows[p]
	}
	o.shear.Up(to, o.base, f.sorted, 0)
}
