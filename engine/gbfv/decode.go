package gbfv

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// decoder computes round(P/q'·x) mod P for x modulo q' in residues x_l. The fraction x_k/q' mod 1
// is f_k = sum over l of y_l/q_l mod 1 with y_l = x_l·(q'/q_l)^-1 mod q_l. Then mu_k =
// round(f_{k-D} - b·f_k), because integers dropped from f change mu by multiples of P. f has enough
// bits that the error of mu's argument is below 1/(2q'). As q' is odd, the result is the exact
// rounding. The operations do not depend on x.
type decoder struct {
	d       int
	q       []uint64
	inverse []uint64 // (q'/q_l)^-1 mod q_l
	shoup   []uint64 // floor(2^64·inverse/q_l)
	words   int      // of f
	recip   []uint64 // round(2^(64 words)/q_l), words each
	b       []uint64
	out     int // words of mu, |mu| <= b+1
}

func newDecoder(spec params.FieldSpec, basis *ring.Basis) *decoder {
	modulus := basis.Modulus()
	bitlen := spec.B.BitLen()
	z := &decoder{
		d: basis.N() / spec.M,
		q: basis.Primes(),
		// y_l < 2^61 times half a unit in the last place, for each prime, times b+1, must be below
		// 1/(2q')
		words: (modulus.BitLen() + bitlen + 1 + bits.Len(uint(basis.Len())) + 61 + 63) / 64,
		out:   (bitlen + 2 + 63) / 64,
		b:     wordsOf(spec.B, (bitlen+63)/64),
	}
	one := new(big.Int).Lsh(big.NewInt(1), uint(64*z.words))
	for _, q := range z.q {
		bq := new(big.Int).SetUint64(q)
		cofactor := new(big.Int).Div(modulus, bq)
		inverse := cofactor.ModInverse(cofactor, bq).Uint64()
		z.inverse = append(z.inverse, inverse)
		quo, _ := bits.Div64(inverse, 0, q)
		z.shoup = append(z.shoup, quo)
		z.recip = append(z.recip, wordsOf(roundQuotient(one, bq), z.words)...)
	}
	return z
}

// fractions sets f to x_k/q' mod 1 for every k.
func (z *decoder) fractions(f []uint64, x ring.Poly) {
	clear(f)
	w := z.words
	var y [1]uint64
	for k := range x.C[0] {
		sum := f[k*w : (k+1)*w]
		for l, q := range z.q {
			v := x.C[l][k]
			quo, _ := bits.Mul64(v, z.shoup[l])
			r := v*z.inverse[l] - quo*q // below 2q
			t, borrow := bits.Sub64(r, q, 0)
			y[0] = t + q&-borrow
			addProduct(sum, z.recip[l*w:(l+1)*w], y[:])
		}
	}
}

// decode sets mu to round(f_{k-D} - b·f_k).
func (z *decoder) decode(mu intpoly.Poly, x ring.Poly) {
	n, w := len(x.C[0]), z.words
	f := make([]uint64, n*w)
	z.fractions(f, x)
	acc := make([]uint64, w+z.out)
	for k := range n {
		from, negate := k-z.d, uint64(0)
		if from < 0 {
			from, negate = from+n, ^uint64(0)
		}
		// acc = b·f_k, then acc = ±f_{k-D} - acc + 1/2
		clear(acc)
		addProduct(acc, f[k*w:(k+1)*w], z.b)
		carry, borrow := negate&1, uint64(0)
		for i := range acc {
			v := negate
			if i < w {
				v ^= f[from*w+i]
			}
			v, carry = bits.Add64(v, 0, carry)
			acc[i], borrow = bits.Sub64(v, acc[i], borrow)
		}
		var c uint64
		acc[w-1], c = bits.Add64(acc[w-1], 1<<63, 0)
		for i := w; i < len(acc); i++ {
			acc[i], c = bits.Add64(acc[i], 0, c)
		}
		copy(mu.Coeff(k), acc[w:])
	}
	clear(f)
	clear(acc)
}

// addProduct adds a·b to acc modulo 2^(64 len(acc)).
func addProduct(acc, a, b []uint64) {
	for s, w := range b {
		sum := acc[s:]
		x := a[:min(len(a), len(sum))]
		var carry, c uint64
		for k, v := range x {
			hi, lo := bits.Mul64(v, w)
			lo, c = bits.Add64(lo, sum[k], 0)
			hi, _ = bits.Add64(hi, 0, c)
			sum[k], c = bits.Add64(lo, carry, 0)
			carry, _ = bits.Add64(hi, 0, c)
		}
		for k := len(x); k < len(sum); k++ {
			sum[k], carry = bits.Add64(sum[k], carry, 0)
		}
	}
}

// wordsOf returns 0 <= v < 2^(64n) as n little-endian words.
func wordsOf(v *big.Int, n int) []uint64 {
	w := make([]uint64, n)
	buf := v.FillBytes(make([]byte, 8*n))
	for i := range w {
		w[i] = binary.BigEndian.Uint64(buf[8*(n-1-i):])
	}
	return w
}

// Decode sets coeffs to round(P/q'·x) mod P as coefficients c_j in Z_p, where x = c0 + c1·s modulo
// the product q' of the first k primes of Q, on Prefix(k). The result is correct if the invariant
// noise of every coefficient is below 1/2. Pack.Unpack converts it to field slots.
func (s *Scheme) Decode(coeffs field.Vec, x ring.Poly, k int) {
	z := s.prefix(k).decode
	mu := intpoly.New(s.N(), z.out)
	z.decode(mu, x)
	s.Pack.Reduce(coeffs, mu)
	mu.Wipe()
}

// Phase sets dst = c0 + c1·share modulo the first k primes of Q. The share of the secret key is in
// evaluation form on basis Q or any prefix longer than k; ct is on Prefix(k).
func (s *Scheme) Phase(dst ring.Poly, ct *Ciphertext, share ring.NTT, k int) {
	s.mulShare(dst, ct.C1, share, k)
	b := s.Prefix(k)
	b.Add(dst, dst, ct.C0)
}

// mulShare sets dst = c1·share modulo the first k primes.
func (s *Scheme) mulShare(dst, c1 ring.Poly, share ring.NTT, k int) {
	b := s.Prefix(k)
	t := b.BorrowNTT()
	b.Forward(t, c1)
	b.MulNTT(t, t, ring.NTT{C: share.C[:k]})
	b.Inverse(dst, t)
	t.Zero()
	t.Free()
}

// Decrypt sets slots to the message of ct under the whole secret key, in evaluation form on basis
// Q.
func (s *Scheme) Decrypt(slots field.Vec, ct *Ciphertext, key ring.NTT) {
	k := s.Q.Len()
	x := s.Q.NewPoly()
	s.Phase(x, ct, key, k)
	coeffs := s.Field.NewVec(s.Slots())
	s.Decode(coeffs, x, k)
	s.Pack.Unpack(slots, coeffs)
	x.Zero()
	x.Free()
	coeffs.Wipe()
}

// SwitchModulus returns ct modulo the product q' of the first k primes of Q: round(q'/q·c) for both
// parts. The rounding adds |r0 + r1·s| to the error of the phase, with coefficients of r within
// 1/2.
func (s *Scheme) SwitchModulus(ct *Ciphertext, k int) *Ciphertext {
	p := s.prefix(k)
	if p.divider == nil {
		return ct.Clone()
	}
	out := &Ciphertext{C0: p.basis.Borrow(), C1: p.basis.Borrow()}
	for _, pair := range [2][2]ring.Poly{{out.C0, ct.C0}, {out.C1, ct.C1}} {
		p.divider.DivRound(pair[0], ring.Poly{C: pair[1].C[:k]}, ring.Poly{C: pair[1].C[k:]})
	}
	return out
}

// DecryptionShare sets dst = c1·share + flood and the encoded mask (see ScalePlain) modulo the
// first k primes of Q. This is one party's message of distributed decryption (MatriGear, Fig. 6).
// c1 belongs to a ciphertext after SwitchModulus, flood is uniform in the instance's range, and
// mask holds the coefficients of a fresh uniform plaintext. The sum of c0 and all shares decodes to
// the message plus all masks.
func (s *Scheme) DecryptionShare(dst, c1 ring.Poly, share ring.NTT, flood intpoly.Poly, mask field.Vec, k int) {
	b := s.Prefix(k)
	s.mulShare(dst, c1, share, k)
	t := b.Borrow()
	b.FromInt(t, flood)
	b.Add(dst, dst, t)
	s.ScalePlain(t, mask, k)
	b.Add(dst, dst, t)
	t.Zero()
	t.Free()
}
