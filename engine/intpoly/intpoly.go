// Package intpoly holds polynomials of Z[X]/(X^N+1) whose coefficients are small signed
// integers of a fixed number of words: witnesses, masks and responses of proofs, flooding noise.
package intpoly

// Poly is a polynomial with N signed coefficients. Coefficient k is the two's-complement
// little-endian integer C[k*W : (k+1)*W]. Operations wrap modulo 2^(64 W); callers size W by bounds.
type Poly struct {
	W int
	C []uint64
}

// New returns the zero polynomial with n coefficients of w words.
func New(n, w int) Poly { return Poly{W: w, C: make([]uint64, n*w)} }

// N returns the number of coefficients.
func (p Poly) N() int { return len(p.C) / p.W }

// Coeff returns the words of coefficient k, aliased.
func (p Poly) Coeff(k int) []uint64 { return p.C[k*p.W : (k+1)*p.W] }

// Wipe zeroes p.
func (p Poly) Wipe() { clear(p.C) }
