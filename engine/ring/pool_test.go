package ring

import (
	"slices"
	"testing"
)

// What is given back comes again, once, and as zero where that is promised.
func TestStorageIsUsedAgain(t *testing.T) {
	b := mustBasis(t, 4, primesOf(4, 30, 3)...)
	Trim()
	p := b.NewPoly()
	for _, c := range p.C {
		for k := range c {
			c[k] = 7
		}
	}
	first := &p.C[0][0]
	p.Free()
	q := b.NewNTT()
	if &q.C[0][0] != first {
		t.Error("storage that was given back is not used again")
	}
	for i, c := range q.C {
		if len(c) != b.N() || cap(c) != b.N() || slices.ContainsFunc(c, func(x uint64) bool { return x != 0 }) {
			t.Errorf("limb %d of a new polynomial is not %d zeros", i, b.N())
		}
	}
	if r := b.Borrow(); &r.C[0][0] == first {
		t.Error("two owners")
	}
	q.Free()
	words, p := BorrowWords(16, 3)
	if len(words) != 3*16 || &words[0] != first || &p.C[2][15] != &words[47] {
		t.Error("words are not those of a polynomial")
	}
	p.Free()
	if n := Trim(); n != 3*16*8 {
		t.Errorf("%d bytes were kept, want %d", n, 3*16*8)
	}
	if r := b.BorrowNTT(); &r.C[0][0] == first {
		t.Error("kept after Trim")
	}
}

// A part of a polynomial is refused: two owners of the same words would follow.
func TestFreeRefusesParts(t *testing.T) {
	b := mustBasis(t, 4, primesOf(4, 30, 3)...)
	one := mustBasis(t, 4, primesOf(4, 30, 1)...)
	p := b.NewPoly()
	for name, part := range map[string]Poly{
		"prefix": {C: p.C[:2]}, "first": {C: p.C[:1]}, "suffix": {C: p.C[1:]}, "last": {C: p.C[2:]}, "middle": {C: p.C[1:2]},
		"bounded": {C: p.C[:2:2]}, "copy": {C: slices.Clone(p.C)}, "another's limb": {C: [][]uint64{one.NewPoly().C[0]}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("was taken")
				}
			}()
			part.Free()
		})
	}
	p.Free()
	Poly{}.Free()
	c := b.NewPoly().Clone()
	c.Free()
}
