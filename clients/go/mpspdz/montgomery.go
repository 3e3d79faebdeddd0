package mpspdz

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

const maxLimbs = MaxPrimeBits / 64

// words holds the limbs of an integer, lowest first; limbs from the field's L on are 0.
type words [maxLimbs]uint64

// montgomery converts elements of Z_p to Montgomery form, x R mod p with R = 2^(64 L), L =
// ceil(bits(p)/64).
type montgomery struct {
	limbs int    // L
	size  int    // bytes of a canonical element, ceil(bits/8)
	p     words  // odd
	n0    uint64 // -p^-1 mod 2^64
	rr    words  // R^2 mod p
}

func newMontgomery(p *big.Int) *montgomery {
	m := &montgomery{limbs: (p.BitLen() + 63) / 64, size: (p.BitLen() + 7) / 8}
	m.p = wordsOf(p)
	inverse := m.p[0] // of p mod 2^64, right to 3 bits; every step doubles them
	for range 5 {
		inverse *= 2 - m.p[0]*inverse
	}
	m.n0 = -inverse
	rr := new(big.Int).Lsh(big.NewInt(1), uint(128*m.limbs))
	m.rr = wordsOf(rr.Mod(rr, p))
	return m
}

// wordsOf returns the limbs of 0 <= x < 2^256.
func wordsOf(x *big.Int) (w words) {
	var buf [8 * maxLimbs]byte
	x.FillBytes(buf[:])
	for i := range w {
		w[i] = binary.BigEndian.Uint64(buf[8*(maxLimbs-1-i):])
	}
	return w
}

// bytes returns the size of an element in Montgomery form.
func (m *montgomery) bytes() int { return 8 * m.limbs }

// convert writes the Montgomery form of the canonical element src, both little-endian. It returns
// false if src is not below p; dst is then invalid.
func (m *montgomery) convert(dst, src []byte) bool {
	var x words
	if len(src) < m.bytes() {
		var padded [8 * maxLimbs]byte
		copy(padded[:], src)
		src = padded[:]
	}
	for i := range m.limbs {
		x[i] = binary.LittleEndian.Uint64(src[8*i:])
	}
	var below uint64
	for i := range m.limbs {
		_, below = bits.Sub64(x[i], m.p[i], below)
	}
	if m.limbs == 2 {
		m.scale2(&x)
	} else {
		m.scale(&x)
	}
	for i := range m.limbs {
		binary.LittleEndian.PutUint64(dst[8*i:], x[i])
	}
	return below == 1
}

// scale sets x < 2^(64 L) to x R mod p: the product with R^2, reduced limb by limb (CIOS; Koc, Acar
// and Kaliski, "Analyzing and comparing Montgomery multiplication algorithms", section 5).
func (m *montgomery) scale(x *words) {
	n := m.limbs
	var t [maxLimbs + 2]uint64 // below 2p after every round
	for i := range n {
		c := addProduct(t[:n], m.rr[:n], x[i])
		t[n], t[n+1] = bits.Add64(t[n], c, 0)
		c = addProduct(t[:n], m.p[:n], t[0]*m.n0)
		var over uint64
		t[n], over = bits.Add64(t[n], c, 0)
		t[n+1] += over
		copy(t[:n+1], t[1:n+2]) // t[0] is 0
		t[n+1] = 0
	}
	var d words
	var borrow uint64
	for i := range n {
		d[i], borrow = bits.Sub64(t[i], m.p[i], borrow)
	}
	_, borrow = bits.Sub64(t[n], 0, borrow)
	keep := -borrow // all ones if t < p
	for i := range n {
		x[i] = t[i]&keep | d[i]&^keep
	}
}

// addProduct adds a y to t, which has the same number of limbs, and returns the overflowing limb.
func addProduct(t, a []uint64, y uint64) (carry uint64) {
	for j := range t {
		hi, lo := bits.Mul64(a[j], y)
		var c uint64
		lo, c = bits.Add64(lo, carry, 0)
		hi += c
		t[j], c = bits.Add64(t[j], lo, 0)
		carry = hi + c
	}
	return carry
}

// scale2 is scale for two limbs, unrolled, because primes of 65 to 128 bits are the usual ones.
func (m *montgomery) scale2(x *words) {
	r0, r1, p0, p1 := m.rr[0], m.rr[1], m.p[0], m.p[1]
	var t0, t1, t2 uint64 // below 2p after every round
	for _, y := range [2]uint64{x[0], x[1]} {
		h0, l0 := bits.Mul64(r0, y)
		h1, l1 := bits.Mul64(r1, y)
		var c, t3 uint64
		l1, c = bits.Add64(l1, h0, 0)
		h1 += c
		t0, c = bits.Add64(t0, l0, 0)
		t1, c = bits.Add64(t1, l1, c)
		t2, t3 = bits.Add64(t2, h1, c)

		q := t0 * m.n0
		h0, l0 = bits.Mul64(p0, q)
		h1, l1 = bits.Mul64(p1, q)
		l1, c = bits.Add64(l1, h0, 0)
		h1 += c
		_, c = bits.Add64(t0, l0, 0) // the sum is 0
		t0, c = bits.Add64(t1, l1, c)
		t1, c = bits.Add64(t2, h1, c)
		t2 = t3 + c
	}
	d0, borrow := bits.Sub64(t0, p0, 0)
	d1, borrow := bits.Sub64(t1, p1, borrow)
	_, borrow = bits.Sub64(t2, 0, borrow)
	keep := -borrow // all ones if t < p
	x[0], x[1] = t0&keep|d0&^keep, t1&keep|d1&^keep
}
