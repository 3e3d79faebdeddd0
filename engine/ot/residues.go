package ot

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// ErrModulus is returned for a modulus that Residues does not support.
var ErrModulus = errors.New("ot: modulus is not supported")

// Residues implements the integers modulo m = p 2^k for an odd p >= 3, m < 2^61. For powers of two
// use Words.
type Residues struct {
	m    uint64
	twos int // k
	odd  kernel.Modulus
}

// NewResidues prepares a modulus. The error wraps ErrModulus.
func NewResidues(m uint64) (Residues, error) {
	k := bits.TrailingZeros64(m)
	if m == 0 || bits.Len64(m) > kernel.MaxBits || k > 32 {
		return Residues{}, fmt.Errorf("%w %d", ErrModulus, m)
	}
	odd, err := kernel.NewModulus(m >> k)
	if err != nil {
		return Residues{}, fmt.Errorf("%w %d: %w", ErrModulus, m, err)
	}
	return Residues{m, k, odd}, nil
}

// once returns v mod m for v < 2m.
func (r *Residues) once(v uint64) uint64 {
	d := v - r.m
	return d + r.m&uint64(int64(d)>>63)
}

// of maps two words to a residue: p times the lowest k bits, plus the rest modulo p. If the words
// are uniform, the residue is within 2^-67 of uniform.
func (r *Residues) of(hi, lo uint64) uint64 {
	low := lo & (1<<r.twos - 1)
	lo = lo>>r.twos | hi<<(64-r.twos) // a shift by 64 gives 0
	return low*r.odd.Q + r.odd.Reduce(hi>>r.twos, lo)
}

// Residues uses len(d) transfers with the correlations d, which must be residues. It sets share to
// the sender's shares, and correction to the message for the receiver, also residues. share and
// correction may alias d. The error is ErrSpent.
func (b *SenderBatch) Residues(share, correction, d []uint64, r Residues) error {
	if b.Left() < len(d) {
		return ErrSpent
	}
	share, correction = share[:len(d)], correction[:len(d)]
	for i, v := range d {
		at, q := uint64(b.used), b.rows[b.used]
		//lodge:check ot/once-of-residues a transfer of residues can be used twice
		b.rows[b.used] = block{}
		b.used++
		w0, w1 := r.of(b.hash.wide(at, q)), r.of(b.hash.wide(at, q.xor(b.s)))
		share[i] = r.once(r.m - w0)
		correction[i] = r.once(r.once(w0+r.m-w1) + v)
	}
	return nil
}

// Residues uses as many transfers as there are corrections, which must be residues, and sets share
// to the receiver's shares. The error is ErrSpent.
func (b *ReceiverBatch) Residues(share, correction []uint64, r Residues) error {
	if b.Left() < len(correction) {
		return ErrSpent
	}
	share = share[:len(correction)]
	for i, c := range correction {
		at, row := uint64(b.used), b.rows[b.used]
		x := b.choices[at/64] >> (at % 64) & 1
		b.rows[b.used] = block{}
		b.used++
		share[i] = r.once(r.of(b.hash.wide(at, row)) + c&-x)
	}
	return nil
}
