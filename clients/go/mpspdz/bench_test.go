package mpspdz

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// BenchmarkWrite converts scalar triples of each number of limbs and discards them; the rate is
// that of Lodge's encoding.
func BenchmarkWrite(b *testing.B) {
	for _, bits := range []int{64, 128, 192, 256} {
		b.Run(fmt.Sprintf("bits=%d", bits), func(b *testing.B) {
			p := testPrimes[bits]
			tree, err := NewTree(b.Context(), b.TempDir(), Options{Prime: p, Parties: 2, KeyShare: little(p, 5)})
			if err != nil {
				b.Fatal(err)
			}
			f, err := tree.File(Target{Kind: Scalar})
			if err != nil {
				b.Fatal(err)
			}
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			file := f.file
			f.file = null
			defer func() {
				f.file = file // which Abort removes
				if err := errors.Join(null.Close(), f.Abort()); err != nil {
					b.Error(err)
				}
			}()
			shares := make([]byte, 6*1000*tree.m.size)
			for i := range shares {
				shares[i] = byte(i * 7 % 251)
				if (i+1)%tree.m.size == 0 {
					shares[i] &= 0x3f
				}
			}
			b.SetBytes(int64(len(shares)))
			for b.Loop() {
				if _, err := f.Write(shares); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
