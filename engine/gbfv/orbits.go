package gbfv

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// orbits lays out the matrices of matMul. The d slots of an orbit are side by side, in some order: multiplying
// an exponent e by g^j, g = 1 mod 2N/d, changes the upper log d of its log 2N bits alone, which are the lower ones of
// the number of its slot. So the words of an orbit are a row of d words in each polynomial, and putting them in their
// places in a matrix turns the columns of what these rows form: the column at place p, slot s_j, by j.
//
// The matrices have slots in the order of their places. A is held transposed, and so is the product.
type orbits struct {
	d   int
	all []orbit
	// Where rows 0 to d-1 begin: in the tile, of what A and B are made from; in a matrix.
	leftRows, rightRows, rows []int
}

type orbit struct {
	base  int           // the first slot
	shear *kernel.Shear // by j at the place of s_j
	rows  []int         // of the transposed product for s_0, s_1, ...
}

func newOrbits(s *Scheme, d int) *orbits {
	o := &orbits{d: d}
	for k := range d {
		o.leftRows = append(o.leftRows, k*s.N())
		o.rightRows = append(o.rightRows, (d-k)%d*s.N())
		o.rows = append(o.rows, k*d)
	}
	slots := ring.NewOrbits(s.Q, Galois(s.N(), 1, d), d)
	for i := range slots.Count() {
		at := orbit{base: slots.Index(i, 0) &^ (d - 1)}
		shift := make([]int, d)
		for j := range d {
			p := slots.Index(i, j) - at.base
			if p < 0 || p >= d {
				panic(fmt.Sprintf("gbfv: slots of an orbit of %d are not side by side", d))
			}
			shift[p] = j
			at.rows = append(at.rows, p*d)
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
	*orbits
	a, b, c []uint64
}

func (o *orbits) newFactors() *factors {
	size := o.d * o.d
	return &factors{o, make([]uint64, size), make([]uint64, size), make([]uint64, size)}
}

// gather fills in the factors from the slots of an orbit, given the tile from its first slot on.
func (f *factors) gather(o *orbit, a, b []uint64) {
	o.shear.Down(f.a, f.rows, a, f.leftRows)
	o.shear.Down(f.b, f.rows, b, f.rightRows)
}

// multiply computes B^T·A^T.
func (f *factors) multiply(m *kernel.Modulus) {
	kernel.MatMulTransposed(f.c, f.b, f.a, f.d, f.d, f.d, m.Q)
}

// scatter puts the product in the slots of an orbit, in the place of what A was made from, given from its first slot on.
func (f *factors) scatter(o *orbit, to []uint64) {
	o.shear.Up(to, f.leftRows, f.c, o.rows)
}
