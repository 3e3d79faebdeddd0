package kernel

import (
	"fmt"
	"slices"
)

// Shear turns each column of a d x d matrix by its own number of rows. The rows may be stored
// anywhere, as parts of longer ones. The running time depends only on the shifts, which are public.
type Shear struct {
	shift []int
	turns []turn // for 8 columns each, if the vector code supports the shifts
}

// turn describes 8 columns whose shifts are first + (d/8) t, for the vector code: bit b of t for
// column i is bit 8b+i of bits.
type turn struct{ first, bits uint64 }

// NewShear prepares shifts in [0, d), one per column, for d a power of two.
func NewShear(shift []int) (*Shear, error) {
	d := len(shift)
	if d == 0 || d&(d-1) != 0 || slices.Min(shift) < 0 || slices.Max(shift) >= d {
		return nil, fmt.Errorf("kernel: invalid shear of %d columns: a shear needs a power of two of columns, and one shift in [0, %[1]d) for each", d)
	}
	s := &Shear{shift: slices.Clone(shift)}
	step := d / 8
	for p := 0; p+8 <= d; p += 8 {
		t := turn{first: uint64(shift[p] % step)}
		for i, x := range shift[p : p+8] {
			if x%step != int(t.first) {
				s.turns = nil
				return s, nil
			}
			for b := range 3 {
				t.bits |= uint64(x/step>>b&1) << (8*b + i)
			}
		}
		s.turns = append(s.turns, t)
	}
	return s, nil
}

// Down moves the word in row k of column p to row k + shift(p) mod d: row k is src[k][from:from+d],
// or dst[k][to:to+d]. The matrices must not overlap.
func (s *Shear) Down(dst [][]uint64, to int, src [][]uint64, from int) {
	s.check(dst, to)
	s.check(src, from)
	if s.vectorDown(dst, to, src, from) {
		return
	}
	d := len(s.shift)
	s.parts(func(k, p int) {
		shift := s.shift[p:min(p+8, d)]
		for i, x := range src[k][from+p:][:len(shift)] {
			dst[(k+shift[i])&(d-1)][to+p+i] = x
		}
	})
}

// Up undoes Down: it moves the word in row k + shift(p) mod d of column p to row k.
func (s *Shear) Up(dst [][]uint64, to int, src [][]uint64, from int) {
	s.check(dst, to)
	s.check(src, from)
	if s.vectorUp(dst, to, src, from) {
		return
	}
	d := len(s.shift)
	s.parts(func(k, p int) {
		shift := s.shift[p:min(p+8, d)]
		row := dst[k][to+p:][:len(shift)]
		for i := range row {
			row[i] = src[(k+shift[i])&(d-1)][from+p+i]
		}
	})
}

// parts visits every row k in parts of 8 columns from p. If the shifts have the form that vectors
// support, the rows of 8 visits, d/8 apart, have the same 8 counterparts, so all of them stay in
// cache.
func (s *Shear) parts(visit func(k, p int)) {
	d := len(s.shift)
	step := max(1, d/8)
	for first := range step {
		for p := 0; p < d; p += 8 {
			for k := first; k < d; k += step {
				visit(k, p)
			}
		}
	}
}

// check panics unless there are d rows of d words.
func (s *Shear) check(rows [][]uint64, at int) {
	d := len(s.shift)
	if len(rows) != d {
		panic(fmt.Sprintf("kernel: %d rows in a shear of %d rows", len(rows), d))
	}
	for _, r := range rows {
		_ = r[at : at+d : len(r)]
	}
}
