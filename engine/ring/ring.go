// Package ring implements R_q = Z_q[X]/(X^N+1) for a product q of distinct primes that are 1 mod
// 2N, in a residue number system. Polynomials in coefficient form ([Poly]) and in evaluation form
// ([NTT]) have different types. Every residue is canonical, in [0, q_i).
//
// Everything is exact integer arithmetic, so results are the same on every machine. The roots and
// the order of slots of the number theoretic transforms are Lattigo's. Functions run on the calling
// goroutine; a Basis is immutable and may be shared.
package ring

import (
	"fmt"
	"math/big"
	"slices"

	lattigo "github.com/tuneinsight/lattigo/v6/ring"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/kernel"
)

// Poly is a polynomial in coefficient form: C[i][k] is coefficient k modulo prime i.
type Poly struct{ C [][]uint64 }

// NTT is a polynomial in evaluation form: C[i][k] is its value modulo prime i at the root with the
// exponent of slot k (see Orbits).
type NTT struct{ C [][]uint64 }

// maxDegree is the largest degree of a basis.
const maxDegree = 1 << 17

// limb is one prime of a basis.
type limb struct {
	kernel.Modulus
	ntt *kernel.NTT
}

// Basis is an ordered list of primes with the degree N.
type Basis struct {
	n     int
	limbs []*limb
}

// NewBasis prepares primes of at most 61 bits, each 1 mod 2^(logN+1).
func NewBasis(logN int, primes []uint64) (*Basis, error) {
	if logN < 4 || 1<<logN > maxDegree || len(primes) == 0 {
		return nil, fmt.Errorf("ring: degree 2^%d with %d primes is not supported", logN, len(primes))
	}
	b := &Basis{n: 1 << logN}
	for _, q := range primes {
		m, err := kernel.NewModulus(q)
		if err != nil {
			return nil, fmt.Errorf("ring: %w", err)
		}
		b.limbs = append(b.limbs, &limb{Modulus: m})
	}
	r, err := lattigo.NewRing(b.n, primes) // rejects primes that are composite, repeated or not 1 mod 2N
	if err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	for i, l := range b.limbs {
		if l.ntt, err = newNTT(l.Modulus, r.SubRings[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Join returns the basis of a's primes followed by b's.
func Join(a, b *Basis) *Basis {
	if a.n != b.n {
		panic("ring: joined bases differ in degree")
	}
	return &Basis{n: a.n, limbs: slices.Concat(a.limbs, b.limbs)}
}

// Range returns the basis of primes i to j-1.
func (b *Basis) Range(i, j int) *Basis { return &Basis{n: b.n, limbs: b.limbs[i:j:j]} }

// Prefix returns the basis of the first k primes.
func (b *Basis) Prefix(k int) *Basis { return b.Range(0, k) }

// N returns the degree.
func (b *Basis) N() int { return b.n }

// Len returns the number of primes.
func (b *Basis) Len() int { return len(b.limbs) }

// Primes lists the primes.
func (b *Basis) Primes() []uint64 {
	p := make([]uint64, len(b.limbs))
	for i, l := range b.limbs {
		p[i] = l.Q
	}
	return p
}

// Modulus returns the product of the primes.
func (b *Basis) Modulus() *big.Int {
	q := big.NewInt(1)
	for _, l := range b.limbs {
		q.Mul(q, new(big.Int).SetUint64(l.Q))
	}
	return q
}

func cloneTable(c [][]uint64) [][]uint64 {
	if len(c) == 0 {
		return nil
	}
	out := borrow(len(c[0]), len(c))
	for i := range c {
		copy(out[i], c[i])
	}
	return out
}

func zeroTable(c [][]uint64) {
	for i := range c {
		clear(c[i])
	}
}

// Clone returns a copy.
func (p Poly) Clone() Poly { return Poly{cloneTable(p.C)} }

// Clone returns a copy.
func (p NTT) Clone() NTT { return NTT{cloneTable(p.C)} }

// Copy sets the limbs of p to those of o, which has at least as many limbs.
func (p Poly) Copy(o Poly) {
	for i := range p.C {
		copy(p.C[i], o.C[i])
	}
}

// Copy sets the limbs of p to those of o, which has at least as many limbs.
func (p NTT) Copy(o NTT) { Poly(p).Copy(Poly(o)) }

// Zero sets p to 0.
func (p Poly) Zero() { zeroTable(p.C) }

// Zero sets p to 0.
func (p NTT) Zero() { zeroTable(p.C) }

// Format prints the number of primes and never the residues, which may be secret, for any verb.
func (p Poly) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "[%d primes]", len(p.C)) }

// Format prints the number of primes and never the residues, which may be secret, for any verb.
func (p NTT) Format(s fmt.State, v rune) { Poly(p).Format(s, v) }

// MarshalText returns the output of Format.
func (p Poly) MarshalText() ([]byte, error) { return fmt.Append(nil, p), nil }

// MarshalText returns the output of Format.
func (p NTT) MarshalText() ([]byte, error) { return fmt.Append(nil, p), nil }

// Equal reports whether p and o have the same residues, in variable time.
func (p Poly) Equal(o Poly) bool { return slices.EqualFunc(p.C, o.C, slices.Equal[[]uint64]) }

// Equal reports whether p and o have the same residues, in variable time.
func (p NTT) Equal(o NTT) bool { return slices.EqualFunc(p.C, o.C, slices.Equal[[]uint64]) }

// Forward sets dst to the evaluation form of src. They may share storage.
func (b *Basis) Forward(dst NTT, src Poly) {
	for i, l := range b.limbs {
		l.ntt.Forward(dst.C[i], src.C[i])
	}
}

// Inverse sets dst to the coefficient form of src. They may share storage.
func (b *Basis) Inverse(dst Poly, src NTT) {
	for i, l := range b.limbs {
		l.ntt.Inverse(dst.C[i], src.C[i])
	}
}

// Add sets dst = x + y.
func (b *Basis) Add(dst, x, y Poly) {
	for i, l := range b.limbs {
		l.AddVec(dst.C[i], x.C[i], y.C[i])
	}
}

// Sub sets dst = x - y.
func (b *Basis) Sub(dst, x, y Poly) {
	for i, l := range b.limbs {
		l.SubVec(dst.C[i], x.C[i], y.C[i])
	}
}

// Neg sets dst = -x.
func (b *Basis) Neg(dst, x Poly) {
	for i, l := range b.limbs {
		l.NegVec(dst.C[i], x.C[i])
	}
}

// Double sets dst = 2x.
func (b *Basis) Double(dst, x Poly) { b.Add(dst, x, x) }

// AddNTT sets dst = x + y.
func (b *Basis) AddNTT(dst, x, y NTT) { b.Add(Poly(dst), Poly(x), Poly(y)) }

// SubNTT sets dst = x - y.
func (b *Basis) SubNTT(dst, x, y NTT) { b.Sub(Poly(dst), Poly(x), Poly(y)) }

// NegNTT sets dst = -x.
func (b *Basis) NegNTT(dst, x NTT) { b.Neg(Poly(dst), Poly(x)) }

// MulNTT sets dst = x y.
func (b *Basis) MulNTT(dst, x, y NTT) {
	for i, l := range b.limbs {
		l.MulVec(dst.C[i], x.C[i], y.C[i])
	}
}

// MulAddNTT sets dst += x y.
func (b *Basis) MulAddNTT(dst, x, y NTT) {
	for i, l := range b.limbs {
		l.MulAddVec(dst.C[i], x.C[i], y.C[i])
	}
}

// MulScalar sets dst = c x for a public integer c given by its residues.
func (b *Basis) MulScalar(dst, x Poly, c []uint64) {
	for i, l := range b.limbs {
		l.ScaleVec(dst.C[i], x.C[i], c[i])
	}
}

// AddMonomial sets dst += X^e x for e in [0, 2N). dst must not be x.
func (b *Basis) AddMonomial(dst, x Poly, e int) {
	b.checkMonomial(e)
	for i, l := range b.limbs {
		d, s := dst.C[i], x.C[i]
		add, sub := l.AddVec, l.SubVec
		at := e
		if at >= b.n {
			at -= b.n
			add, sub = sub, add
		}
		add(d[at:], d[at:], s[:b.n-at])
		sub(d[:at], d[:at], s[b.n-at:])
	}
}

// MulMonomial sets dst = X^e x for e in [0, 2N). dst must not be x.
func (b *Basis) MulMonomial(dst, x Poly, e int) {
	zeroTable(dst.C[:len(b.limbs)])
	b.AddMonomial(dst, x, e)
}

func (b *Basis) checkMonomial(e int) {
	if e < 0 || e >= 2*b.n {
		panic(fmt.Sprintf("ring: exponent %d is not in [0, %d)", e, 2*b.n))
	}
}

// smallBits bounds the magnitude of FromSmall's coefficients.
const smallBits = 31

// FromSmall is FromInt for coefficients of one word, below 2^31 in magnitude, and primes above
// 2^31.
func (b *Basis) FromSmall(dst Poly, v intpoly.Poly) {
	if v.W != 1 {
		panic(fmt.Sprintf("ring: small coefficients of %d words", v.W))
	}
	for i, l := range b.limbs {
		if l.Q>>smallBits == 0 {
			panic(fmt.Sprintf("ring: prime %d is too small for FromSmall", l.Q))
		}
		l.SignedVec(dst.C[i], v.C)
	}
}

// MulAddSubring sets dst += x(X^d) y(X^d) for polynomials x and y of N/d coefficients. The product
// lies in the subring of X^d.
func (b *Basis) MulAddSubring(dst, x, y Poly, d int) {
	m := b.n / d
	for l, q := range b.limbs {
		to := dst.C[l]
		for i, v := range x.C[l][:m] {
			for j, w := range y.C[l][:m] {
				p := q.Mul(v, w)
				if k := i + j; k < m {
					to[k*d] = q.Add(to[k*d], p)
				} else {
					to[(k-m)*d] = q.Sub(to[(k-m)*d], p)
				}
			}
		}
	}
}

// FromInt sets dst to v modulo the primes. v may have fewer coefficients than this ring's degree;
// then dst is as short.
func (b *Basis) FromInt(dst Poly, v intpoly.Poly) {
	n := v.N()
	size := min(block, n)
	rows, sum, signs := make([]uint64, v.W*size), make([]uint64, size), make([]uint8, size)
	sums := make([][]*kernel.Sum, len(b.limbs))
	for i, l := range b.limbs {
		sums[i] = l.wordSums(v.W)
	}
	for start := 0; start < n; start += size {
		for k := range size {
			c := v.Coeff(start + k)
			for w, x := range c {
				rows[w*size+k] = x
			}
			signs[k] = uint8(c[v.W-1] >> 63)
		}
		for i, l := range b.limbs {
			d := dst.C[i][start : start+size]
			sums[i][0].Apply(d, rows, size, signs)
			for j, s := range sums[i][1:] {
				s.Apply(sum, rows[(j+1)*kernel.MaxWordTerms*size:], size, signs)
				l.AddVec(d, d, sum)
			}
		}
	}
	clear(rows)
	clear(sum)
	clear(signs)
}

// wordSums computes the residue of an integer of the given number of words. It adds up MaxWordTerms
// words at a time. The first sum includes -2^(64 words) if the sign is set.
func (l *limb) wordSums(words int) (sums []*kernel.Sum) {
	shift := l.Reduce(1, 0) // 2^64
	wrap := l.Neg(l.Exp(shift, uint64(words)))
	for from := 0; from < words; from += kernel.MaxWordTerms {
		var weights []uint64
		for w := from; w < min(from+kernel.MaxWordTerms, words); w++ {
			weights = append(weights, l.Exp(shift, uint64(w)))
		}
		sums = append(sums, l.NewSum(weights, wrap, 64))
		wrap = 0
	}
	return sums
}

// newNTT prepares the transform of a prime with Lattigo's root: g^((q-1)/2N) for the smallest
// primitive root g > 2.
func newNTT(m kernel.Modulus, r *lattigo.SubRing) (*kernel.NTT, error) {
	t, err := kernel.NewNTT(m, r.N, m.Exp(r.PrimitiveRoot, (m.Q-1)/uint64(2*r.N)))
	if err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	return t, nil
}
