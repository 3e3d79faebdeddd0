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

// Freed limbs are reused once each, in polynomials of any number of limbs, and are zero where
// NewPoly promises it.
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
		t.Errorf("%d of 3 limbs were reused", reused)
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
			t.Errorf("for degree %d, %d bytes are kept, and %d for other degrees", c.n, same, other)
		}
	}
	if n := Trim(); n != 5*16*8 {
		t.Errorf("%d bytes were kept, want %d", n, 5*16*8)
	}
	if same, other := Kept(16); same != 0 || other != 0 || Trim() != 0 {
		t.Error("limbs are kept after Trim")
	}
}

// Free refuses a part of a polynomial and a freed one: otherwise two owners would share the same
// words. Any use after Free panics, through any copy.
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

// Concurrent goroutines never obtain the same words.
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
						t.Error("another goroutine wrote to these words")
						return
					}
				}
				p.Free()
			}
		})
	}
	wg.Wait()
}

// If many goroutines free the same polynomial concurrently, one succeeds, and its limbs are kept
// once.
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
			t.Fatalf("%d of 8 calls of Free panicked, want 7", n)
		}
		if n := Trim(); n != 3*16*8 {
			t.Fatalf("%d bytes were kept, want %d", n, 3*16*8)
		}
	}
}
