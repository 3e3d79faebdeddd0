package field

import (
	"bytes"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Products of the ends of the range and of random elements are the same words on every path, and packing undoes unpacking.
func TestPaths(t *testing.T) {
	before := kernel.Selected()
	defer func() {
		if err := kernel.Select(before); err != nil {
			t.Fatal(err)
		}
	}()
	for _, s := range []spec{specs[12], specs[19], specs[21]} { // 8, 16 and 64 limbs
		f := s.field(t)
		p := newPacking(t, f, s.logN)
		coeffs := f.NewVec(p.D())
		if err := f.Random(coeffs, bytes.NewReader(bytes.Repeat([]byte{0xa5, 0x3c, 0x11, 0xfe, 0x07}, 20*len(coeffs.W)))); err != nil {
			t.Fatal(err)
		}
		copy(coeffs.At(0), f.minusOne)
		copy(coeffs.At(1), f.plainOne)
		var want Vec
		for path := range kernel.Best() + 1 {
			if err := kernel.Select(path); err != nil {
				t.Fatal(err)
			}
			slots := f.NewVec(p.D())
			p.Unpack(slots, coeffs)
			if want.W == nil {
				want = slots.Clone()
			}
			if !slices.Equal(slots.W, want.W) {
				t.Fatalf("%d limbs, path %v: other slots", f.limbs, path)
			}
			p.Pack(slots, slots)
			if !slices.Equal(slots.W, coeffs.W) {
				t.Fatalf("%d limbs, path %v: packing does not undo unpacking", f.limbs, path)
			}
		}
	}
}
