package field

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// BenchmarkField times the operations on one plaintext for fields of 1, 2, 4, 16 and 64 limbs.
func BenchmarkField(b *testing.B) {
	for _, s := range []spec{specs[9], specs[16], specs[17], specs[19], specs[21]} {
		f := s.field(b)
		p := newPacking(b, f, s.logN)
		c, slots := f.NewVec(p.D()), f.NewVec(p.D())
		f.Random(c, shake("bench"))
		e, mu := intpoly.New(p.N(), p.DigitWords()), intpoly.New(p.N(), p.DigitWords()+1)
		centres, z := make([]uint64, 2*p.N()), make([]int64, p.N())
		x := f.NewElement()
		for name, op := range map[string]func(){
			"Mul":      func() { f.Mul(x, x, f.rr) },
			"Add":      func() { f.Add(x, x, f.rr) },
			"Unpack":   func() { p.Unpack(slots, c) },
			"Pack":     func() { p.Pack(slots, c) },
			"Digits":   func() { p.Digits(e, c) },
			"Centres":  func() { p.CosetCentres(centres, z, e) },
			"Assemble": func() { p.AssembleRandPack(mu, e, z) },
			"Reduce":   func() { p.Reduce(slots, mu) },
		} {
			b.Run(fmt.Sprintf("%s/bits=%d,D=%d", name, f.Bits(), p.D()), func(b *testing.B) {
				for b.Loop() {
					op()
				}
			})
		}
	}
}
