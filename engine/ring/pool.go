package ring

import "sync"

// Polynomials are large, and a batch needs tens of gigabytes of them one after another: what is made anew each time is
// cleared by the machine each time, which took a third of a batch's time. So the limbs of a polynomial that is no longer
// needed go back with Free, and whatever makes a polynomial uses them again. They are kept until Trim.

// limbs holds what has been given back, by length.
var limbs struct {
	sync.Mutex
	free map[int][][]uint64
}

// borrow returns a polynomial with any content, of limbs of n words.
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
	_ = append(c, c[0]) // behind the last limb is the first, where a view of some of the limbs does not have it
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

// Borrow returns a polynomial whose coefficients may be anything, to be written before it is read.
func (b *Basis) Borrow() Poly { return Poly{borrow(b.n, len(b.limbs))} }

// BorrowNTT returns a polynomial in evaluation form whose values may be anything, to be written before it is read.
func (b *Basis) BorrowNTT() NTT { return NTT{borrow(b.n, len(b.limbs))} }

// Free gives the limbs of p back for other polynomials, and takes them out of p and its copies, so that who uses it again
// panics. Secrets are zeroed before. It panics unless p is whole, as one that this package made, and was not given back
// before.
func (p Poly) Free() {
	if len(p.C) == 0 {
		return
	}
	limbs.Lock() // of two that give the same back at once, one finds it given back
	defer limbs.Unlock()
	if cap(p.C) != len(p.C)+1 || len(p.C[0]) == 0 || len(p.C[:cap(p.C)][len(p.C)]) == 0 || &p.C[:cap(p.C)][len(p.C)][0] != &p.C[0][0] {
		panic("ring: giving back a part of a polynomial, or one that was given back")
	}
	if limbs.free == nil {
		limbs.free = map[int][][]uint64{}
	}
	n := len(p.C[0])
	limbs.free[n] = append(limbs.free[n], p.C...)
	clear(p.C)
}

// Free gives the limbs of p back, as those of a Poly.
func (p NTT) Free() { Poly(p).Free() }

// Kept is how many bytes have been given back and wait to be used again, by polynomials of degree n and by others.
func Kept(n int) (same, other int64) {
	limbs.Lock()
	defer limbs.Unlock()
	return kept(n)
}

// kept is Kept for who holds the lock.
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

// Trim leaves all limbs that were given back to the garbage collector, and returns how many bytes that is. What is computed
// meanwhile only finds fewer limbs to use again.
func Trim() (bytes int64) {
	limbs.Lock()
	defer limbs.Unlock()
	_, bytes = kept(0)
	limbs.free = nil
	return bytes
}
