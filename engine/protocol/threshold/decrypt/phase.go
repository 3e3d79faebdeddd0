package decrypt

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/parallel"
)

// Ciphertexts is a batch of ciphertexts. At returns N residues modulo Q and one more; the caller
// must not change them. At must be safe for concurrent use.
type Ciphertexts interface {
	Len() int
	At(i int) (a []uint64, b uint64)
}

// switcher computes a party's shares of phases. Its running time depends only on public values.
type switcher struct {
	Params
	modulus kernel.Modulus // for an odd Q
	inverse uint64         // 1/Q mod 2^64
	twos    bool           // Q is a power of two
	eta     residues
}

func newSwitcher(p Params) (*switcher, error) {
	s := &switcher{Params: p, twos: p.Modulus%2 == 0, eta: residues(p.Kind.Eta())}
	if s.twos {
		return s, nil
	}
	var err error
	if s.modulus, err = kernel.NewModulus(p.Modulus); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParams, err)
	}
	s.inverse = 1
	for range 6 { // each step doubles the number of correct bits, initially one
		s.inverse *= 2 - p.Modulus*s.inverse
	}
	return s, nil
}

// product returns <a, s> modulo 2^64, and whether all entries of a are below q, a power of two.
func product(a, s []uint64, q uint64) (sum uint64, residues bool) {
	s = s[:len(a)]
	var bits uint64
	for i, x := range a {
		bits |= x
		sum += x * s[i]
	}
	return sum, bits < q
}

// share returns this party's u', its share of the phase modulo eta. first marks the party that adds
// b.
func (s *switcher) share(a []uint64, b uint64, secret []uint64, first bool) (uint64, error) {
	if len(a) != s.Dimension {
		return 0, fmt.Errorf("%w: dimension %d, want %d", ErrCiphertext, len(a), s.Dimension)
	}
	var sum uint64
	var residues bool
	if s.twos {
		sum, residues = product(a, secret, s.Modulus)
	} else {
		sum, residues = s.modulus.Inner(a, secret)
	}
	//lodge:check decrypt/residues [drop=!residues] ciphertexts with values outside the modulus pass
	if !residues || b >= s.Modulus {
		return 0, fmt.Errorf("%w: a value is not below the modulus %d", ErrCiphertext, s.Modulus)
	}
	if !first {
		b = 0
	}
	if s.twos {
		return s.round((b - sum) & (s.Modulus - 1)), nil
	}
	return s.round(s.modulus.Sub(b, sum)), nil
}

// round returns floor((eta u + Q/2)/Q) mod eta for u in [0, Q). It avoids a division, whose running
// time depends on the operands.
func (s *switcher) round(u uint64) uint64 {
	hi, lo := bits.Mul64(u, uint64(s.eta))
	lo, c := bits.Add64(lo, s.Modulus/2, 0)
	hi += c
	if s.twos {
		q := bits.Len64(s.Modulus) - 1
		return s.eta.once(hi<<(64-q) | lo>>q)
	}
	// The dividend minus its remainder is a multiple of Q. The quotient fits in a word, so it is
	// the lower word times 1/Q modulo 2^64. It is at most eta.
	return s.eta.once((lo - s.modulus.Reduce(hi, lo)) * s.inverse)
}

// residues implements arithmetic modulo a number below 2^62.
type residues uint64

// once returns v mod m for v < 2m.
func (m residues) once(v uint64) uint64 {
	d := v - uint64(m)
	return d + uint64(m)&uint64(int64(d)>>63)
}

func (m residues) add(a, b uint64) uint64 { return m.once(a + b) }
func (m residues) sub(a, b uint64) uint64 { return m.once(a + uint64(m) - b) }

// all reports whether every number is a residue. The check is needed because a packed value may
// have more bits than m allows.
func (m residues) all(v []uint64) bool {
	below := uint64(1)
	for _, x := range v {
		_, b := bits.Sub64(x, uint64(m), 0)
		below &= b
	}
	return below == 1
}

// shares sets u to this party's shares of the ciphertexts' phases.
func (s *switcher) shares(ctx context.Context, u []uint64, c *Config) error {
	const block = 64
	first := c.Session.Self == 0
	return parallel.Try(ctx, c.Workers, (len(u)+block-1)/block, func(k int) error {
		for i := k * block; i < min(len(u), (k+1)*block); i++ {
			a, b := c.Ciphertexts.At(i)
			var err error
			if u[i], err = s.share(a, b, c.Secret, first); err != nil {
				return fmt.Errorf("ciphertext %d: %w", i, err)
			}
		}
		return nil
	})
}
