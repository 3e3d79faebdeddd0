package field

import (
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/kernel"
)

// onPaths runs a function on every path of package kernel.
func onPaths(t *testing.T, run func(path kernel.Path)) {
	t.Helper()
	before := kernel.Selected()
	defer func() {
		if err := kernel.Select(before); err != nil {
			t.Fatal(err)
		}
	}()
	for path := range kernel.Best() + 1 {
		if err := kernel.Select(path); err != nil {
			t.Fatal(err)
		}
		run(path)
	}
}

// ends fills v with random elements, and puts the words 0, 1, p-1 and R mod p in all pairs at some
// places.
func ends(t *testing.T, f *Field, v Vec, salt string) {
	t.Helper()
	if err := f.Random(v, shake(salt)); err != nil {
		t.Fatal(err)
	}
	some := [][]uint64{f.NewElement(), f.plainOne, f.one, f.minusOne, f.words(new(big.Int).Sub(f.p, big.NewInt(1)))}
	for i := range min(v.Len(), len(some)*len(some)) {
		if salt == "a" {
			copy(v.At(i), some[i%len(some)])
		} else {
			copy(v.At(i), some[i/len(some)])
		}
	}
}

// Vector operations return the same words on every path. On the first path they agree with Mul and
// Add, which other tests compare with big integers. The vectors are longer than a chunk, and their
// length is not a multiple of a kernel's step.
func TestVectorsOnPaths(t *testing.T) {
	forFields(t, func(t *testing.T, _ spec, f *Field) {
		for _, n := range []int{1, fewProducts, chunk + 9} {
			a, b := f.NewVec(n), f.NewVec(n)
			ends(t, f, a, "a")
			ends(t, f, b, "b")
			s := b.At(n - 1)
			product, scaled, added, inner := f.NewVec(n), f.NewVec(n), f.NewVec(n), f.NewVec(1)
			for i := range n {
				f.Mul(product.At(i), a.At(i), b.At(i))
				f.Mul(scaled.At(i), a.At(i), s)
				f.Add(added.At(i), b.At(i), scaled.At(i))
				f.Add(inner.At(0), inner.At(0), product.At(i))
			}
			encoding := make([]byte, n*f.Size())
			for i := range n {
				f.Encode(encoding[i*f.Size():(i+1)*f.Size()], a.At(i))
			}
			random := f.NewVec(n)
			if err := f.Random(random, shake("r")); err != nil {
				t.Fatal(err)
			}
			onPaths(t, func(path kernel.Path) {
				for name, op := range map[string]struct {
					want Vec
					run  func(dst Vec)
				}{
					"MulVec":    {product, func(dst Vec) { f.MulVec(dst, a, b) }},
					"ScaleVec":  {scaled, func(dst Vec) { f.ScaleVec(dst, a, s) }},
					"MulAddVec": {added, func(dst Vec) { copy(dst.W, b.W); f.MulAddVec(dst, a, s) }},
					"Inner":     {inner, func(dst Vec) { f.Inner(dst.At(0), a, b) }},
					"Random":    {random, func(dst Vec) { t.Helper(); fail(t, f.Random(dst, shake("r"))) }},
					"DecodeVec": {a, func(dst Vec) { t.Helper(); fail(t, f.DecodeVec(dst, encoding)) }},
				} {
					got := f.NewVec(op.want.Len())
					op.run(got)
					if !slices.Equal(got.W, op.want.W) {
						t.Errorf("%d limbs, path %v, %d elements: %s differs", f.limbs, path, n, name)
					}
				}
				got := make([]byte, len(encoding))
				if f.EncodeVec(got, a); !slices.Equal(got, encoding) {
					t.Errorf("%d limbs, path %v, %d elements: EncodeVec differs", f.limbs, path, n)
				}
			})
		}
	})
}

// Packing, digits and reduction return the same words on every path.
func TestPackingOnPaths(t *testing.T) {
	forFields(t, func(t *testing.T, s spec, f *Field) {
		p := newPacking(t, f, s.logN)
		coeffs := f.NewVec(p.D())
		ends(t, f, coeffs, "a")
		var want map[string][]uint64
		onPaths(t, func(path kernel.Path) {
			slots, back, reduced := f.NewVec(p.D()), f.NewVec(p.D()), f.NewVec(p.D())
			digits := intpoly.New(p.N(), p.DigitWords())
			p.Unpack(slots, coeffs)
			p.Pack(back, slots)
			p.Digits(digits, coeffs)
			p.Reduce(reduced, digits)
			if !slices.Equal(back.W, coeffs.W) {
				t.Errorf("%d limbs, path %v: packing does not undo unpacking", f.limbs, path)
			}
			if !slices.Equal(reduced.W, coeffs.W) {
				t.Errorf("%d limbs, path %v: digits do not reduce to their coefficients", f.limbs, path)
			}
			got := map[string][]uint64{"slots": slots.W, "digits": digits.C}
			if want == nil {
				want = got
			}
			if !maps.EqualFunc(got, want, slices.Equal[[]uint64]) {
				t.Errorf("%d limbs, path %v: slots or digits differ", f.limbs, path)
			}
		})
	})
}

func fail(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
