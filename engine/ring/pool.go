package ring

import "sync"

// Polynomials are large, and a batch needs tens of gigabytes of them one after another. New memory
// must be cleared each time, which used to take a third of a batch's time. So Free keeps the limbs
// of a polynomial that is no longer needed, and new polynomials reuse them. Limbs are kept until
// Trim.

// limbs holds the freed limbs by length.
var limbs struct {
	sync.Mutex
	free map[int][][]uint64
}

// borrow returns a polynomial with arbitrary content, of limbs of n words.
func borrow(n, count int) [][]uint64 {
	c := make([][]uint64, count, count+1)
	limbs.Lock()
	list := limbs.free[n]
	reused := min(count, len(list))
	copy(c, list[len(list)-reused:])
	clear(list[len(list)-reused:])
	if reused > 0 {
		limbs.free[n] = list[:len(list)-reused]
	}
	limbs.Unlock()
	for i := reused; i < count; i++ {
		c[i] = make([]uint64, n)
	}
	_ = append(c, c[0]) // the last limb is followed by the first; a view of some of the limbs is not
	return c
}

// zero returns a table of zeros.
func (b *Basis) zero() [][]uint64 {
	c := borrow(b.n, len(b.limbs))
	zeroTable(c)
	return c
}

// NewPoly returns the zero polynomial.
func (b *Basis) NewPoly() Poly { return Poly{b.zero()} }

// NewNTT returns the zero polynomial in evaluation form.
func (b *Basis) NewNTT() NTT { return NTT{b.zero()} }

// Borrow returns a polynomial with arbitrary coefficients. The caller must write it before reading
// it.
func (b *Basis) Borrow() Poly { return Poly{borrow(b.n, len(b.limbs))} }

// BorrowNTT returns a polynomial in evaluation form with arbitrary values. The caller must write it
// before reading it.
func (b *Basis) BorrowNTT() NTT { return NTT{borrow(b.n, len(b.limbs))} }

// Free makes the limbs of p available to other polynomials and removes them from p and its copies,
// so that any later use panics. The caller must zero secrets first. Free panics unless p is a whole
// polynomial made by this package and was not freed before.
func (p Poly) Free() {
	if len(p.C) == 0 {
		return
	}
	limbs.Lock() // if two goroutines free the same polynomial concurrently, the second one detects it
	defer limbs.Unlock()
	if cap(p.C) != len(p.C)+1 || len(p.C[0]) == 0 || len(p.C[:cap(p.C)][len(p.C)]) == 0 || &p.C[:cap(p.C)][len(p.C)][0] != &p.C[0][0] {
		panic("ring: Free of a part of a polynomial, or of a freed one")
	}
	if limbs.free == nil {
		limbs.free = map[int][][]uint64{}
	}
	n := len(p.C[0])
	limbs.free[n] = append(limbs.free[n], p.C...)
	clear(p.C)
}

// Free frees the limbs of p, like Poly.Free.
func (p NTT) Free() { Poly(p).Free() }

// Kept returns the number of freed bytes kept for reuse, in limbs of degree n and in others.
func Kept(n int) (same, other int64) {
	limbs.Lock()
	defer limbs.Unlock()
	return kept(n)
}

// kept is Kept for a caller that holds the lock.
func kept(n int) (same, other int64) {
	for length, list := range limbs.free {
		if bytes := int64(len(list)) * int64(length) * 8; length == n {
			same += bytes
		} else {
			other += bytes
		}
	}
	return same, other
}

// Trim leaves all freed limbs to the garbage collector, and returns their size in bytes. Concurrent
// computations merely find fewer limbs to reuse.
func Trim() (bytes int64) {
	limbs.Lock()
	defer limbs.Unlock()
	_, bytes = kept(0)
	limbs.free = nil
	return bytes
}
