package sample

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// Uniform fills dst with uniform residues modulo q >= 1 by masked rejection. It reads words, masks
// each to the length of q-1, and keeps those below q, in order. Only rejections influence its time.
func Uniform(dst []uint64, q uint64, s *Stream) {
	if q == 0 {
		panic("sample: the modulus is 0")
	}
	mask := ^uint64(0) >> bits.LeadingZeros64(q-1)
	for len(dst) > 0 {
		if s.at > bufferSize-8 {
			s.fill()
		}
		left := s.buffer[s.at:]
		n := 0
		for n < len(dst) && len(left) >= 8 {
			v := binary.LittleEndian.Uint64(left) & mask
			left = left[8:]
			dst[n] = v
			_, below := bits.Sub64(v, q, 0)
			n += int(below)
		}
		s.at = bufferSize - len(left)
		dst = dst[n:]
	}
}

// Expand fills dst with a uniform polynomial that everyone can derive from the public seed. The
// result is fixed for all parties and versions: dst[i] holds residues modulo primes[i], taken in
// the order of Uniform from the words, least significant byte first, of the AES-256 counter-mode
// stream (newStream) under the key derive("lodge common reference string", seed, label, (index...,
// i)).
func Expand(dst [][]uint64, primes []uint64, seed []byte, label string, index ...uint64) {
	if len(dst) != len(primes) {
		panic(fmt.Sprintf("sample: %d polynomials for %d primes", len(dst), len(primes)))
	}
	name := append(slices.Clone(index), 0)
	for i, q := range primes {
		name[len(index)] = uint64(i)
		Uniform(dst[i], q, newStream(derive("lodge common reference string", seed, label, name)))
	}
}

// ExpandWords is Expand for whole words, residues modulo 2^64: the unmodified words of the stream
// of index 0.
func ExpandWords(dst []uint64, seed []byte, label string, index ...uint64) {
	name := append(slices.Clone(index), 0)
	newStream(derive("lodge common reference string", seed, label, name)).words(dst)
}

// Ternary fills dst with uniform values of {-1, 0, 1} from two bits each; 3 is rejected.
func Ternary(dst []int64, s *Stream) {
	var word uint64
	left := 0
	for i := 0; i < len(dst); {
		if left == 0 {
			word, left = s.Uint64(), 32
		}
		v := word & 3
		word >>= 2
		left--
		dst[i] = int64(v) - 1
		i += int(1 - v&(v>>1))
	}
}

// Flood fills dst with integers that are uniform in [-bound, bound], by masked rejection of
// candidates for the value plus bound. The bound is at least 1 and public, and the words of dst
// must hold it and a sign. Only rejections influence the time.
func Flood(dst intpoly.Poly, bound *big.Int, s *Stream) {
	if bound.Sign() <= 0 || bound.BitLen() > 64*dst.W-1 {
		panic(fmt.Sprintf("sample: flooding of %d bits and a sign does not fit in %d words", bound.BitLen(), dst.W))
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
		clear(c[n:])     // the sign is set below
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

// words returns the n least significant words of v >= 0.
func words(v *big.Int, n int) []uint64 {
	out := make([]uint64, n)
	t := new(big.Int).Set(v)
	for i := range out {
		out[i] = new(big.Int).And(t, new(big.Int).SetUint64(^uint64(0))).Uint64()
		t.Rsh(t, 64)
	}
	return out
}
