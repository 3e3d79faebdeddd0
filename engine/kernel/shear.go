package kernel

import (
	"fmt"
	"slices"
)

// Shear turns each column of a d x d matrix by its own number of rows. The rows may be anywhere, as parts of longer ones.
// Its time depends on the shifts alone, which are public.
type Shear struct {
	shift []int
	turns []turn // of 8 columns each, if vectors can take them
}

// turn is what vectors need for 8 columns whose shifts are first + (d/8) t: bit b of t for column i is bit 8b+i of bits.
type turn struct{ first, bits uint64 }

// NewShear prepares shifts in [0, d), one per column, for d a power of two.
func NewShear(shift []int) (*Shear, error) {
	d := len(shift)
	if d == 0 || d&(d-1) != 0 || slices.Min(shift) < 0 || slices.Max(shift) >= d {
		return nil, fmt.Errorf("kernel: no shear of %d columns with these shifts", d)
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

// Down moves the word in row k of column p to row k + shift(p) mod d: row k is src[k][from:from+d], or dst[k][to:to+d].
// The matrices have no word in common.
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

// parts visits every row k in parts of 8 columns from p. The rows of 8 visits, d/8 apart, have the same 8 counterparts
// if the shifts are such as vectors can take, so that all stay in cache.
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
		panic(fmt.Sprintf("kernel: %d rows in a shear of %d", len(rows), d))
	}
	for _, r := range rows {
		_ = r[at : at+d : len(r)]
	}
}
