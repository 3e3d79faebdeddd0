package gbfv

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// ErrNoKey is wrapped when an evaluation needs a missing rotation key.
var ErrNoKey = errors.New("gbfv: missing rotation key")

// SwitchKey switches a multiple of some s' to s. For each gadget digit j, K0[j] = -a_j·s + s'·g_j +
// e_j and K1[j] = a_j, in evaluation form on basis Q. s' is s^2 for relinearisation, and phi(s) for
// the rotation phi: the automorphism is applied before the switch.
type SwitchKey struct{ K0, K1 []ring.NTT }

// freeUniform frees K1.
func (k *SwitchKey) freeUniform() {
	for _, a := range k.K1 {
		a.Free()
	}
}

// Keys provides evaluation keys to several goroutines concurrently. A provider need not store
// uniform halves; it may expand them from a seed on demand.
type Keys interface {
	Relin() *SwitchKey
	// Rotation returns the key for X -> X^g, g = 5^(i·N/(2d)) mod 2N, which rotates the rows of d x
	// d matrices by i, 0 < i < d. Keys for one d also serve every smaller power of two. The caller
	// owns K1 and must free it.
	Rotation(i, d int) (*SwitchKey, error)
}

// Galois returns 5^(i·N/(2d)) mod 2N, the exponent of rotation i of dimension d. It depends on the
// ring, not on a field.
func Galois(n, i, d int) int {
	g := 1
	for range (i%d + d) % d * (n / (2 * d)) {
		g = g * 5 & (2*n - 1)
	}
	return g
}

// KeyTable implements [Keys]. It stores the halves K0 and requests the halves K1 when they are
// needed.
type KeyTable struct {
	N        int
	RelinKey *SwitchKey
	K0       map[int][]ring.NTT // by Galois element
	// Uniform computes K1 for a Galois element on each call.
	Uniform func(g int) []ring.NTT
}

// Relin returns the relinearisation key.
func (t *KeyTable) Relin() *SwitchKey { return t.RelinKey }

// Rotation implements Keys. Its error wraps [ErrNoKey] if the key is missing.
func (t *KeyTable) Rotation(i, d int) (*SwitchKey, error) {
	g := Galois(t.N, i, d)
	k0, ok := t.K0[g]
	if !ok {
		return nil, fmt.Errorf("%w: rotation %d of dimension %d", ErrNoKey, i, d)
	}
	return &SwitchKey{K0: k0, K1: t.Uniform(g)}, nil
}

// digit is one gadget digit. An element x of R_q contributes the centred [x]_{Q_j}, where Q_j is
// the product of the primes lo to hi-1, with the factor g_j = 1 mod Q_j and 0 mod the other primes.
type digit struct {
	lo, hi int
	below  *ring.Extender // from the digit's primes to the primes before them; nil if there are none
	above  *ring.Extender // and to the primes after them
}

func newGadget(q *ring.Basis, width int) []digit {
	var all []digit
	for lo := 0; lo < q.Len(); lo += width {
		d := digit{lo: lo, hi: min(lo+width, q.Len())}
		own := q.Range(d.lo, d.hi)
		if d.lo > 0 {
			d.below = ring.NewExtender(own, q.Range(0, d.lo))
		}
		if d.hi < q.Len() {
			d.above = ring.NewExtender(own, q.Range(d.hi, q.Len()))
		}
		all = append(all, d)
	}
	return all
}

// GadgetDigits returns the number of digits of a switching key.
func (s *Scheme) GadgetDigits() int { return len(s.gadget) }

// DigitPrimes returns the range [lo, hi) of primes on which the gadget factor g_j is 1; on the
// others it is 0.
func (s *Scheme) DigitPrimes(j int) (lo, hi int) { return s.gadget[j].lo, s.gadget[j].hi }

// AddGadget adds g_j·x to dst.
func (s *Scheme) AddGadget(dst, x ring.NTT, j int) {
	lo, hi := s.DigitPrimes(j)
	s.Q.Range(lo, hi).AddNTT(ring.NTT{C: dst.C[lo:hi]}, ring.NTT{C: dst.C[lo:hi]}, ring.NTT{C: x.C[lo:hi]})
}

// decompose sets dst to digit j of x, extended to all of Q.
func (d *digit) decompose(dst, x ring.Poly) {
	for l := d.lo; l < d.hi; l++ {
		copy(dst.C[l], x.C[l])
	}
	own := ring.Poly{C: x.C[d.lo:d.hi]}
	if d.below != nil {
		d.below.Extend(ring.Poly{C: dst.C[:d.lo]}, own)
	}
	if d.above != nil {
		d.above.Extend(ring.Poly{C: dst.C[d.hi:]}, own)
	}
}

// accumulator collects sums of key switches in evaluation form, with the buffers for them.
type accumulator struct {
	s        *Scheme
	c0, c1   ring.NTT
	digit    ring.Poly
	digitNTT ring.NTT
}

// accumulator returns an accumulator with zero sums. The caller must call done.
func (s *Scheme) accumulator() *accumulator {
	return &accumulator{s: s, c0: s.Q.NewNTT(), c1: s.Q.NewNTT(), digit: s.Q.Borrow(), digitNTT: s.Q.BorrowNTT()}
}

func (a *accumulator) done() {
	a.digit.Free()
	freeAll([]ring.NTT{a.c0, a.c1, a.digitNTT})
}

// add adds x [.] key: a pair (c0, c1) with c0 + c1·s = x·s' + small error, for x in coefficient
// form.
func (a *accumulator) add(x ring.Poly, key *SwitchKey) {
	for j := range a.s.gadget {
		a.s.gadget[j].decompose(a.digit, x)
		a.s.Q.Forward(a.digitNTT, a.digit)
		a.s.Q.MulAddNTT(a.c0, a.digitNTT, key.K0[j])
		a.s.Q.MulAddNTT(a.c1, a.digitNTT, key.K1[j])
	}
}

// mulP sets dst = P·x = X^D·x - b·x modulo the primes of Q. dst must not be x.
func (s *Scheme) mulP(dst, x ring.Poly) {
	s.Q.MulScalar(dst, x, s.minusB)
	s.Q.AddMonomial(dst, x, s.Slots())
}

// validDim reports whether d is a power of two that divides the number of slots.
func (s *Scheme) validDim(d int) bool {
	return d > 0 && d&(d-1) == 0 && d <= s.Slots()
}
