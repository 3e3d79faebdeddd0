package ring

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func fill(p Poly, v uint64) {
	for _, c := range p.C {
		for k := range c {
			c[k] = v
		}
	}
}

// What is given back comes again, once, in polynomials of any number of limbs, and as zero where that is promised.
func TestStorageIsUsedAgain(t *testing.T) {
	three, two := mustBasis(t, 4, primesOf(4, 30, 3)...), mustBasis(t, 4, primesOf(4, 30, 2)...)
	Trim()
	p := three.NewPoly()
	fill(p, 7)
	owned := map[*uint64]bool{}
	for _, c := range p.C {
		owned[&c[0]] = true
	}
	p.Free()
	q, r := two.NewNTT(), three.Borrow()
	reused := 0
	for _, c := range slices.Concat(q.C, r.C) {
		if owned[&c[0]] {
			reused++
			owned[&c[0]] = false // once
		}
	}
	if reused != 3 {
		t.Errorf("%d of 3 limbs were used again", reused)
	}
	for i, c := range q.C {
		if len(c) != 16 || slices.ContainsFunc(c, func(x uint64) bool { return x != 0 }) {
			t.Errorf("limb %d of a new polynomial is not 16 zeros", i)
		}
	}
	q.Free()
	r.Free()
	for _, c := range []struct{ n, same, other int64 }{{16, 5 * 16 * 8, 0}, {32, 0, 5 * 16 * 8}} {
		if same, other := Kept(int(c.n)); same != c.same || other != c.other {
			t.Errorf("for degree %d, %d bytes are kept, and %d of others", c.n, same, other)
		}
	}
	if n := Trim(); n != 5*16*8 {
		t.Errorf("%d bytes were kept, want %d", n, 5*16*8)
	}
	if same, other := Kept(16); same != 0 || other != 0 || Trim() != 0 {
		t.Error("kept after Trim")
	}
}

// A part of a polynomial is refused, and what was given back: two owners of the same words would follow. Who uses it
// after that panics, through any copy.
func TestFreeRefusesParts(t *testing.T) {
	b := mustBasis(t, 4, primesOf(4, 30, 3)...)
	p, gone := b.NewPoly(), b.NewPoly()
	copied := gone
	gone.Free()
	panics := func(name string, f func()) {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("was taken")
				}
			}()
			f()
		})
	}
	for name, part := range map[string]Poly{
		"prefix": {C: p.C[:2]}, "suffix": {C: p.C[1:]}, "last": {C: p.C[2:]}, "first": {C: p.C[:1]}, "bounded": {C: p.C[:2:2]}, "copy": {C: slices.Clone(p.C)}, "empty slot": {C: make([][]uint64, 3, 4)},
		"given back": gone, "copy of one given back": copied,
	} {
		panics(name, part.Free)
	}
	panics("use after", func() { b.Add(p, copied, p) })
	Poly{}.Free()
	p.Clone().Free()
	p.Free()
	c := b.NewPoly().Clone()
	c.Free()
}

// Many goroutines never get the same words.
func TestStorageHasOneOwner(t *testing.T) {
	b := mustBasis(t, 4, primesOf(4, 30, 3)...)
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			for i := range uint64(500) {
				p := b.Borrow()
				fill(p, g<<32|i)
				for _, c := range p.C {
					if slices.ContainsFunc(c, func(x uint64) bool { return x != g<<32|i }) {
						t.Error("another wrote here")
						return
					}
				}
				p.Free()
			}
		})
	}
	wg.Wait()
}

// Of many that give the same polynomial back at once, one does, and its limbs are there once.
func TestFreeAtOnce(t *testing.T) {
	b := mustBasis(t, 4, primesOf(4, 30, 3)...)
	for range 200 {
		Trim()
		p := b.NewPoly()
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				defer func() {
					if recover() != nil {
						refused.Add(1)
					}
				}()
				p.Free()
			})
		}
		wg.Wait()
		if n := refused.Load(); n != 7 {
			t.Fatalf("%d of 8 were refused, want 7", n)
		}
		if n := Trim(); n != 3*16*8 {
			t.Fatalf("%d bytes were kept, want %d", n, 3*16*8)
		}
	}
}
