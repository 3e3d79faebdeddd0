// Package codec implements the canonical encoding of the engine's values: residues and signed
// integers packed at their bit length, least significant bit first. Each value has one encoding,
// and decoders accept no other: the length is exact, residues are below their modulus, padding is
// zero. Decoders write to slices that the caller allocated, and allocate nothing.
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Every error of this package wraps one of them.
var (
	ErrTruncated = errors.New("codec: too short")
	ErrTrailing  = errors.New("codec: too long")
	ErrRange     = errors.New("codec: value out of range")
)

// length returns an error unless have is want.
func length(have, want int) error {
	switch {
	//lodge:check codec/too-short a truncated message is decoded beyond its end
	case have < want:
		return fmt.Errorf("%w: %d bytes, want %d", ErrTruncated, have, want)
	//lodge:check codec/too-long a message can carry hidden bytes after its last value
	case have > want:
		return fmt.Errorf("%w: %d bytes, want %d", ErrTrailing, have, want)
	}
	return nil
}

// width returns the number of bits of a residue modulo q.
func width(q uint64) int { return bits.Len64(q - 1) }

// PolySize returns the size in bytes of a polynomial of n coefficients modulo the primes.
func PolySize(n int, primes []uint64) int {
	size := 0
	for _, q := range primes {
		size += kernel.PackedSize(n, width(q))
	}
	return size
}

// AppendPoly appends the residues c[i] modulo primes[i], prime by prime.
func AppendPoly(dst []byte, c [][]uint64, primes []uint64) []byte {
	for i, q := range primes {
		dst = appendWords(dst, c[i], width(q))
	}
	return dst
}

// DecodePoly sets c[i], residues modulo primes[i], from src. src must contain nothing else.
func DecodePoly(c [][]uint64, primes []uint64, src []byte) error {
	size := 0
	for i, q := range primes {
		size += kernel.PackedSize(len(c[i]), width(q))
	}
	if err := length(len(src), size); err != nil {
		return err
	}
	for i, q := range primes {
		n := kernel.PackedSize(len(c[i]), width(q))
		//lodge:check codec/padding-of-polynomials the padding of residue polynomials can carry data
		if err := padding(kernel.Unpack(c[i], src[:n], width(q))); err != nil {
			return err
		}
		var below uint64 = 1
		for _, v := range c[i] {
			_, b := bits.Sub64(v, q, 0)
			//lodge:check codec/residue-every [as=below = b] only the last residue is checked for
			//  its range
			below &= b
		}
		//lodge:check codec/residue a residue has several encodings, and arithmetic gets values
		//  outside its range
		if below == 0 {
			return fmt.Errorf("%w: a residue is not below its prime %d", ErrRange, q)
		}
		src = src[n:]
	}
	return nil
}

// appendWords appends values below 2^w, 1 <= w <= 64.
func appendWords(dst []byte, v []uint64, w int) []byte {
	start, size := len(dst), kernel.PackedSize(len(v), w)
	dst = slices.Grow(dst, size)[:start+size]
	kernel.Pack(dst[start:], v, w)
	return dst
}

// SignedSize returns the size in bytes of n signed integers of width bits, including the sign.
func SignedSize(n, width int) int { return kernel.PackedSize(n, width) }

// AppendSigned appends the coefficients of p as two's complement integers of width bits. If a
// coefficient does not fit, it appends nothing and returns an error that wraps ErrRange.
func AppendSigned(dst []byte, p intpoly.Poly, width int) ([]byte, error) {
	start := len(dst)
	if p.W == 1 && width < 64 {
		return appendShort(dst, p.C, width)
	}
	var acc uint64
	fill := 0
	for k := range p.N() {
		c := p.Coeff(k)
		//lodge:check codec/own-long an honest party sends a truncated multi-word integer, which
		//  reveals what it masks
		if !fits(c, width) {
			return dst[:start], fmt.Errorf("%w: a coefficient needs more than %d bits", ErrRange, width)
		}
		for i := range wordsFor(width) {
			w := min(64, width-64*i)
			x := word(c, i) & (^uint64(0) >> (64 - w))
			acc |= x << fill
			if fill+w >= 64 {
				dst = binary.LittleEndian.AppendUint64(dst, acc)
				acc = x >> (64 - fill)
				fill -= 64
			}
			fill += w
		}
	}
	for ; fill > 0; fill -= 8 {
		dst = append(dst, byte(acc))
		acc >>= 8
	}
	return dst, nil
}

// appendShort is AppendSigned for integers of one word.
func appendShort(dst []byte, v []uint64, width int) ([]byte, error) {
	words := make([]uint64, len(v))
	defer clear(words)
	var rest uint64
	for k, x := range v {
		rest |= (x ^ uint64(int64(x)>>63)) >> (width - 1)
		words[k] = x & (1<<width - 1)
	}
	//lodge:check codec/own-short an honest party sends a truncated integer, which reveals what it
	//  masks
	if rest != 0 {
		return dst, fmt.Errorf("%w: a coefficient needs more than %d bits", ErrRange, width)
	}
	return appendWords(dst, words, width), nil
}

// DecodeSigned sets p, whose coefficients have at least width bits, from src. src must contain
// nothing else.
func DecodeSigned(p intpoly.Poly, width int, src []byte) error {
	if err := length(len(src), SignedSize(p.N(), width)); err != nil {
		return err
	}
	if 64*p.W < width {
		panic(fmt.Sprintf("codec: cannot decode %d bits into %d words", width, p.W))
	}
	if p.W == 1 {
		zero := kernel.Unpack(p.C, src, width)
		for k, x := range p.C {
			p.C[k] = uint64(int64(x<<(64-width)) >> (64 - width))
		}
		//lodge:check codec/padding-of-words [swap=zero=>zero || true] the padding of one-word
		//  integers can carry data
		return padding(zero)
	}
	at := 0
	for k := range p.N() {
		c := p.Coeff(k)
		clear(c)
		for i := range wordsFor(width) {
			w := min(64, width-64*i)
			c[i] = bitsAt(src, at, w)
			at += w
		}
		if top := (width - 1) / 64; c[top]>>((width-1)%64)&1 == 1 {
			if r := width % 64; r != 0 {
				c[top] |= ^uint64(0) << r
			}
			for i := top + 1; i < p.W; i++ {
				c[i] = ^uint64(0)
			}
		}
	}
	//lodge:check codec/padding-of-integers [swap=at%8 == 0 || src[len(src)-1]>>(at%8) == 0=>true]
	//  the padding of multi-word integers can carry data
	return padding(at%8 == 0 || src[len(src)-1]>>(at%8) == 0)
}

// padding returns an error unless zero is true.
func padding(zero bool) error {
	//lodge:check codec/padding the padding bits after the last value can carry data
	if !zero {
		return fmt.Errorf("%w: padding is not zero", ErrRange)
	}
	return nil
}

func wordsFor(width int) int { return (width + 63) / 64 }

// word returns word i of a sign-extended integer.
func word(c []uint64, i int) uint64 {
	if i < len(c) {
		return c[i]
	}
	return uint64(int64(c[len(c)-1]) >> 63)
}

// fits reports whether a two's complement integer has at most width bits.
func fits(c []uint64, width int) bool {
	sign := uint64(int64(c[len(c)-1]) >> 63)
	var rest uint64
	for i, x := range c {
		x ^= sign
		switch lo := width - 1 - 64*i; {
		case lo <= 0:
			rest |= x
		case lo < 64:
			rest |= x >> lo
		}
	}
	return rest == 0
}

// bitsAt reads w <= 64 bits from bit at.
func bitsAt(src []byte, at, w int) uint64 {
	var lo, hi uint64
	from, shift := at/8, at%8
	if from+9 <= len(src) {
		lo, hi = binary.LittleEndian.Uint64(src[from:]), uint64(src[from+8])
	} else {
		for i, b := range src[from:] {
			lo |= uint64(b) << (8 * i)
		}
	}
	return (lo>>shift | hi<<(64-shift)) & (^uint64(0) >> (64 - w))
}
