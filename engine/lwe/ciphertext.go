package lwe

import (
	"fmt"
	"slices"
)

// LWE is a ciphertext of dimension N modulo Q: its phase is B - <A, z>. An [Evaluator] computes on
// LWE ciphertexts; [Scheme.Extract] extracts them from a [Ring].
type LWE struct {
	A []uint64
	B uint64
}

// Ring is a ciphertext over R_Q, in coefficient form: its phase is B - A z. Every coefficient of
// the phase is a message. [PublicKey.Encrypt] makes them.
type Ring struct{ A, B []uint64 }

// NewLWE returns the zero ciphertext.
func (s *Scheme) NewLWE() *LWE { return &LWE{A: make([]uint64, s.N())} }

// NewRing returns the zero ciphertext.
func (s *Scheme) NewRing() *Ring { return &Ring{A: make([]uint64, s.N()), B: make([]uint64, s.N())} }

// Clone returns a copy.
func (c *LWE) Clone() *LWE { return &LWE{A: slices.Clone(c.A), B: c.B} }

// Copy sets c to o, of the same dimension.
func (c *LWE) Copy(o *LWE) {
	copy(c.A, o.A)
	c.B = o.B
}

// Equal reports whether two ciphertexts have the same residues.
func (c *LWE) Equal(o *LWE) bool { return c.B == o.B && slices.Equal(c.A, o.A) }

// Clone returns a copy.
func (c *Ring) Clone() *Ring { return &Ring{A: slices.Clone(c.A), B: slices.Clone(c.B)} }

// Equal reports whether two ciphertexts have the same residues.
func (c *Ring) Equal(o *Ring) bool { return slices.Equal(c.A, o.A) && slices.Equal(c.B, o.B) }

// Check returns an error, which wraps [ErrCiphertext], unless c is a ciphertext of the set.
func (s *Scheme) Check(c *LWE) error {
	switch {
	case c == nil || len(c.A) != s.N():
		return fmt.Errorf("%w: not of dimension %d", ErrCiphertext, s.N())
	case c.B >= s.Q || !s.canonical(c.A):
		return fmt.Errorf("%w: a residue is not below %d", ErrCiphertext, s.Q)
	}
	return nil
}

// CheckRing is Check for a ring ciphertext.
func (s *Scheme) CheckRing(c *Ring) error {
	switch {
	case c == nil || len(c.A) != s.N() || len(c.B) != s.N():
		return fmt.Errorf("%w: not of degree %d", ErrCiphertext, s.N())
	case !s.canonical(c.A) || !s.canonical(c.B):
		return fmt.Errorf("%w: a residue is not below %d", ErrCiphertext, s.Q)
	}
	return nil
}

// Trivial sets dst to the ciphertext of a phase that anyone can read: A is 0.
func (s *Scheme) Trivial(dst *LWE, phase uint64) {
	clear(dst.A)
	dst.B = phase
}

// Add sets dst = a + b: phases and noise add up. dst may be an operand.
func (s *Scheme) Add(dst, a, b *LWE) {
	s.mod.AddVec(dst.A, a.A, b.A)
	dst.B = s.mod.Add(a.B, b.B)
}

// Sub sets dst = a - b. dst may be an operand.
func (s *Scheme) Sub(dst, a, b *LWE) {
	s.mod.SubVec(dst.A, a.A, b.A)
	dst.B = s.mod.Sub(a.B, b.B)
}

// Neg sets dst = -a. dst may be a.
func (s *Scheme) Neg(dst, a *LWE) {
	s.mod.NegVec(dst.A, a.A)
	dst.B = s.mod.Neg(a.B)
}

// Scale sets dst = c a for a small integer, |c| < Q: the noise grows by |c|. dst may be a.
func (s *Scheme) Scale(dst, a *LWE, c int64) {
	f := s.mod.Factor(s.residue(c))
	s.mod.ScaleByVec(dst.A, a.A, f)
	dst.B = s.mod.Scale(a.B, f)
}

// AddPhase adds a public constant to the phase.
func (s *Scheme) AddPhase(dst *LWE, phase uint64) { dst.B = s.mod.Add(dst.B, phase) }

// residue returns c mod Q for |c| < Q.
func (s *Scheme) residue(c int64) uint64 { return uint64(c) + s.Q&uint64(c>>63) }

// AddRing sets dst = a + b. dst may be an operand.
func (s *Scheme) AddRing(dst, a, b *Ring) {
	s.mod.AddVec(dst.A, a.A, b.A)
	s.mod.AddVec(dst.B, a.B, b.B)
}

// SubRing sets dst = a - b. dst may be an operand.
func (s *Scheme) SubRing(dst, a, b *Ring) {
	s.mod.SubVec(dst.A, a.A, b.A)
	s.mod.SubVec(dst.B, a.B, b.B)
}

// Extract sets dst to a ciphertext of coefficient k, in [0, N), of the phase of c. As
//
//	(a z)_k = sum_{i <= k} a_{k-i} z_i - sum_{i > k} a_{N+k-i} z_i,
//
// the vector is (a_k, ..., a_0, -a_{N-1}, ..., -a_{k+1}). The noise does not change.
func (s *Scheme) Extract(dst *LWE, c *Ring, k int) {
	n := s.N()
	for i := range k + 1 {
		dst.A[i] = c.A[k-i]
	}
	for i := k + 1; i < n; i++ {
		dst.A[i] = s.mod.Neg(c.A[n+k-i])
	}
	dst.B = c.B[k]
}

// Unroll sets dst, of 2N residues, to the vectors of Extract for all coefficients of a ring
// ciphertext: the vector for coefficient k is dst[N-1-k:2N-1-k].
func (s *Scheme) Unroll(dst []uint64, c *Ring) {
	n := s.N()
	for i, a := range c.A {
		dst[n-1-i] = a
		dst[2*n-1-i] = s.mod.Neg(a)
	}
}
