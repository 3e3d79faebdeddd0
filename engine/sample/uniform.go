package sample

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// Uniform fills dst with uniform residues modulo q by masked rejection.
func Uniform(dst []uint64, q uint64, s *Stream) {
	mask := ^uint64(0) >> bits.LeadingZeros64(q-1)
	for i := 0; i < len(dst); {
		v := s.Uint64() & mask
		dst[i] = v
		if v < q {
			i++
		}
	}
}

// Expand fills dst with a uniform polynomial that everybody who knows the public seed gets: dst[i] with
// residues modulo primes[i], in the order of Uniform, from the stream that the seed, the label and the
// indices followed by i name.
func Expand(dst [][]uint64, primes []uint64, seed []byte, label string, index ...uint64) {
	for i, q := range primes {
		name := append(append(make([]uint64, 0, len(index)+1), index...), uint64(i))
		Uniform(dst[i], q, newStream(derive("lodge common reference string", seed, label, name)))
	}
}

// Ternary fills dst with uniform values of {-1, 0, 1}.
func Ternary(dst []int64, s *Stream) {
	var word uint64
	left := 0
	for i := 0; i < len(dst); {
		if left == 0 {
			word, left = s.Uint64(), 32
		}
		v := int64(word & 3)
		word >>= 2
		left--
		dst[i] = v - 1
		if v != 3 {
			i++
		}
	}
}

// Flood fills dst with integers that are uniform in [-bound, bound], by masked rejection. The words of dst
// hold the bound and a sign.
func Flood(dst intpoly.Poly, bound *big.Int, s *Stream) {
	if bound.Sign() <= 0 || bound.BitLen() > 64*dst.W-1 {
		panic(fmt.Sprintf("sample: flooding of %d bits in %d words", bound.BitLen(), dst.W))
	}
	width := new(big.Int).Lsh(bound, 1) // candidates are in [0, width]
	limit, shift := words(width, dst.W), words(bound, dst.W)
	n := (width.BitLen() + 63) / 64
	mask := ^uint64(0) >> uint(64*n-width.BitLen())
	for k := 0; k < dst.N(); {
		c := dst.Coeff(k)
		for i := range n {
			c[i] = s.Uint64()
		}
		c[n-1] &= mask
		clear(c[n:])
		var above uint64 // 1 if limit < c
		for i := range c {
			_, above = bits.Sub64(limit[i], c[i], above)
		}
		if above == 1 {
			continue
		}
		var borrow uint64
		for i := range c {
			c[i], borrow = bits.Sub64(c[i], shift[i], borrow)
		}
		k++
	}
}

func words(v *big.Int, n int) []uint64 {
	out := make([]uint64, n)
	t := new(big.Int).Set(v)
	for i := range out {
		out[i] = new(big.Int).And(t, new(big.Int).SetUint64(^uint64(0))).Uint64()
		t.Rsh(t, 64)
	}
	return out
}
