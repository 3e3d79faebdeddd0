// Package field implements the prime fields Z_p, p = b^M+1, of generalized BFV plaintexts, and the
// packing of vectors over Z_p into the plaintext ring Z[X]/(X^N+1, X^D-b), D = N/M
// (MatriGear, section 2.3 and appendix B.1).
//
// p has between 64 and 4096 bits. An element is L = ceil(bits/64) little-endian limbs in Montgomery
// form, x·2^(64L) mod p, always reduced to [0,p). Arithmetic, encoding, packing, digits and
// reduction neither branch nor index on values; only the field, lengths and exponents are public.
// Set-up, and the methods that take or return a *big.Int, are for public values and tests.
package field

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

const (
	minBits  = 64
	maxBits  = 4096
	maxLimbs = maxBits / 64

	// primalityRounds is the number of Miller-Rabin rounds that follow a Baillie-PSW test when a
	// field is created.
	primalityRounds = 4
)

var (
	// ErrParameters is wrapped by the errors of New and NewPacking.
	ErrParameters = errors.New("field: unusable parameters")
	// ErrLength reports an encoding whose length does not match exactly.
	ErrLength = errors.New("field: wrong length")
	// ErrRange reports an encoded element that is not below the modulus.
	ErrRange = errors.New("field: element out of range")
)

// Field is Z_p for p = b^M+1. It is immutable and safe for concurrent use.
type Field struct {
	b, p *big.Int
	m    int // M

	bits  int
	limbs int
	mod   []uint64 // p
	n0    uint64   // -p^-1 mod 2^64

	one      []uint64 // R mod p, with R = 2^(64 limbs): the Montgomery form of 1
	minusOne []uint64 // p - one
	rr       []uint64 // R^2 mod p
	plainOne []uint64 // the integer 1, which takes an element out of Montgomery form

	inverseExp *big.Int // p-2

	wide *kernel.Wide // p for many products at a time, from wideLimbs limbs on
}

// Element is an element of a field: its limbs in Montgomery form, in [0,p).
type Element = []uint64

// New returns Z_p for p = b^m+1. It returns an error if b is odd, or p is composite or not of 64 to
// 4096 bits.
func New(b *big.Int, m int) (*Field, error) {
	if b == nil || b.Sign() <= 0 || m < 1 || m > maxBits || m*(b.BitLen()-1) > maxBits {
		return nil, fmt.Errorf("%w: p has more than %d bits, or b or M is not positive", ErrParameters, maxBits)
	}
	f, err := newField(b, m)
	if err != nil {
		return nil, err
	}
	if f.bits < minBits || f.bits > maxBits {
		return nil, fmt.Errorf("%w: p has %d bits, want %d to %d", ErrParameters, f.bits, minBits, maxBits)
	}
	return f, nil
}

// newField is New without the bounds on the size of p, so that tests can be exhaustive.
func newField(b *big.Int, m int) (*Field, error) {
	if b.Bit(0) != 0 {
		return nil, fmt.Errorf("%w: b is odd", ErrParameters)
	}
	if m&(m-1) != 0 {
		return nil, fmt.Errorf("%w: M is not a power of two", ErrParameters)
	}
	p := new(big.Int).Exp(b, big.NewInt(int64(m)), nil)
	p.Add(p, big.NewInt(1))
	if p.BitLen() <= maxBits && !p.ProbablyPrime(primalityRounds) {
		return nil, fmt.Errorf("%w: b^M+1 is composite", ErrParameters)
	}
	f := &Field{
		b: new(big.Int).Set(b), p: p, m: m,
		bits:  p.BitLen(),
		limbs: (p.BitLen() + 63) / 64,
	}
	if f.limbs > maxLimbs {
		return f, nil // the caller rejects it
	}
	f.mod = f.words(p)
	f.n0 = -inverse64(f.mod[0])
	r := new(big.Int).Lsh(big.NewInt(1), uint(64*f.limbs))
	f.one = f.words(new(big.Int).Mod(r, p))
	f.minusOne = f.words(new(big.Int).Sub(p, new(big.Int).Mod(r, p)))
	f.rr = f.words(new(big.Int).Mod(new(big.Int).Mul(r, r), p))
	f.plainOne = f.words(big.NewInt(1))
	f.inverseExp = new(big.Int).Sub(p, big.NewInt(2))
	if f.limbs >= wideLimbs {
		f.wide = kernel.NewWide(f.mod)
	}
	return f, nil
}

// inverse64 returns a^-1 mod 2^64 for odd a.
func inverse64(a uint64) uint64 {
	x := a // right to 3 bits; every step doubles them
	for range 5 {
		x *= 2 - a*x
	}
	return x
}

// words returns the limbs of x, 0 <= x < 2^(64 limbs).
func (f *Field) words(x *big.Int) []uint64 {
	w := make([]uint64, f.limbs)
	buf := x.FillBytes(make([]byte, 8*f.limbs))
	for i, c := range buf {
		k := len(buf) - 1 - i
		w[k/8] |= uint64(c) << (8 * (k % 8))
	}
	return w
}

// B returns b.
func (f *Field) B() *big.Int { return new(big.Int).Set(f.b) }

// M returns M.
func (f *Field) M() int { return f.m }

// Modulus returns p.
func (f *Field) Modulus() *big.Int { return new(big.Int).Set(f.p) }

// Bits returns the length of p in bits.
func (f *Field) Bits() int { return f.bits }

// Limbs returns L, the number of words of an element.
func (f *Field) Limbs() int { return f.limbs }

// NewElement returns 0.
func (f *Field) NewElement() Element { return make(Element, f.limbs) }

// One returns 1.
func (f *Field) One() Element { return append(Element(nil), f.one...) }

// SetUint64 sets dst to v mod p.
func (f *Field) SetUint64(dst Element, v uint64) {
	clear(dst)
	dst[0] = v
	f.Mul(dst, dst, f.rr)
}

// SetBig sets dst to v mod p for a public v of any size and sign.
func (f *Field) SetBig(dst Element, v *big.Int) {
	copy(dst, f.words(new(big.Int).Mod(v, f.p)))
	f.Mul(dst, dst, f.rr)
}

// Big returns a public element as an integer in [0,p).
func (f *Field) Big(a Element) *big.Int {
	t := f.NewElement()
	f.Mul(t, a, f.plainOne)
	v := new(big.Int)
	for i := len(t) - 1; i >= 0; i-- {
		v.Lsh(v, 64)
		v.Or(v, new(big.Int).SetUint64(t[i]))
	}
	return v
}

// IsZero reports whether a = 0, in constant time.
func (f *Field) IsZero(a Element) bool {
	var acc uint64
	for _, w := range a[:f.limbs] {
		acc |= w
	}
	return acc == 0
}

// Equal reports whether a = b, in constant time.
func (f *Field) Equal(a, b Element) bool {
	var acc uint64
	for i, w := range a[:f.limbs] {
		acc |= w ^ b[i]
	}
	return acc == 0
}

// Inverse sets dst to a^(p-2): the inverse of a, or 0 for a = 0.
func (f *Field) Inverse(dst, a Element) { f.Exp(dst, a, f.inverseExp) }

// Exp sets dst to a^e for a public exponent e >= 0. Its time depends only on e.
func (f *Field) Exp(dst, a Element, e *big.Int) {
	const window = 4
	table := f.NewVec(1 << window)
	copy(table.At(0), f.one)
	for i := 1; i < table.Len(); i++ {
		f.Mul(table.At(i), table.At(i-1), a)
	}
	acc := f.One()
	for k := (e.BitLen()+window-1)/window - 1; k >= 0; k-- {
		var digit uint
		for i := window - 1; i >= 0; i-- {
			f.Mul(acc, acc, acc)
			digit = digit<<1 | e.Bit(window*k+i)
		}
		f.Mul(acc, acc, table.At(int(digit)))
	}
	copy(dst, acc)
	clear(acc)
	table.Wipe()
}

// bitMask returns all ones for bit = 1 and 0 for bit = 0.
func bitMask(bit uint64) uint64 { return -bit }

// limbsBelow returns 1 if a < b as integers of equally many limbs, else 0.
func limbsBelow(a, b []uint64) uint64 {
	var borrow uint64
	for i := range a {
		_, borrow = bits.Sub64(a[i], b[i], borrow)
	}
	return borrow
}

// Small returns Z_p for p = b^m+1 of any size, for tests that enumerate a whole field. Such a p
// gives no security, and no parameter set names one.
func Small(b int64, m int) (*Field, error) { return newField(big.NewInt(b), m) }
