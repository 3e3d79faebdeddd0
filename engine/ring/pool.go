package ring

import "sync"

// Polynomials are large, and a batch needs tens of gigabytes of them one after another: what is made anew each time is
// cleared by the machine each time, which took a third of a batch's time. So storage that is no longer needed goes back
// with Free, and all that makes a polynomial uses it again. It is kept until Trim.

// shape is the size of a polynomial.
type shape struct{ n, limbs int }

// free is what has been given back, by shape.
var free struct {
	sync.Mutex
	tables map[shape][][][]uint64
}

// take returns a table that was given back, with any content, or nil.
func take(s shape) [][]uint64 {
	free.Lock()
	defer free.Unlock()
	list := free.tables[s]
	if len(list) == 0 {
		return nil
	}
	last := len(list) - 1
	c := list[last]
	list[last] = nil
	free.tables[s] = list[:last]
	return c
}

// Trim leaves all storage that was given back to the garbage collector, and returns how many bytes that is. It is for
// times when nothing is computed.
func Trim() (bytes int64) {
	free.Lock()
	defer free.Unlock()
	for s, list := range free.tables {
		bytes += int64(len(list)) * int64(s.n) * int64(s.limbs) * 8
	}
	free.tables = nil
	return bytes
}

// table makes the limbs of a polynomial, side by side in one allocation. This allocation stands behind the last limb,
// where a view of some of the limbs does not have it.
func table(s shape) [][]uint64 {
	all := make([]uint64, s.n*s.limbs)
	c := make([][]uint64, s.limbs+1)
	for i := range s.limbs {
		c[i] = all[i*s.n : (i+1)*s.n : (i+1)*s.n]
	}
	c[s.limbs] = all
	return c[:s.limbs]
}

// borrow returns a table with any content.
func borrow(n, limbs int) [][]uint64 {
	s := shape{n, limbs}
	if c := take(s); c != nil {
		return c
	}
	return table(s)
}

// zero returns a table of zeros.
func (b *Basis) zero() [][]uint64 {
	s := shape{b.n, len(b.limbs)}
	c := take(s)
	if c == nil {
		return table(s)
	}
	zeroTable(c)
	return c
}

// BorrowWords returns n·limbs words that may be anything, and a Poly of them, to give them back; limbs may be more than
// any basis has.
func BorrowWords(n, limbs int) ([]uint64, Poly) {
	c := borrow(n, limbs)
	return c[:limbs+1][limbs], Poly{c}
}

// NewPoly returns the zero polynomial.
func (b *Basis) NewPoly() Poly { return Poly{b.zero()} }

// NewNTT returns the zero polynomial in evaluation form.
func (b *Basis) NewNTT() NTT { return NTT{b.zero()} }

// Borrow returns a polynomial whose coefficients may be anything, to be written before it is read.
func (b *Basis) Borrow() Poly { return Poly{borrow(b.n, len(b.limbs))} }

// BorrowNTT returns a polynomial in evaluation form whose values may be anything, to be written before it is read.
func (b *Basis) BorrowNTT() NTT { return NTT{borrow(b.n, len(b.limbs))} }

// Free gives the storage of p back for other polynomials. Neither p nor what shares its storage is used after that, and
// secrets are zeroed before. It panics unless p is whole, as one that this package made.
func (p Poly) Free() {
	if len(p.C) == 0 {
		return
	}
	s := shape{len(p.C[0]), len(p.C)}
	if cap(p.C) != s.limbs+1 {
		panic("ring: giving back a part of a polynomial")
	}
	if all := p.C[:s.limbs+1][s.limbs]; len(all) != s.n*s.limbs || &all[0] != &p.C[0][0] {
		panic("ring: giving back a part of a polynomial")
	}
	free.Lock()
	defer free.Unlock()
	if free.tables == nil {
		free.tables = map[shape][][][]uint64{}
	}
	free.tables[s] = append(free.tables[s], p.C)
}

// Free gives the storage of p back, as that of a Poly.
func (p NTT) Free() { Poly(p).Free() }
