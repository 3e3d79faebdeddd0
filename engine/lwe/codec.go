package lwe

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
)

// LWESize is the size in bytes of an encoded LWE ciphertext: N residues packed at the length of Q,
// and one more.
func (s *Scheme) LWESize() int {
	return codec.PolySize(s.N(), []uint64{s.Q}) + codec.PolySize(1, []uint64{s.Q})
}

// RingSize is the size in bytes of an encoded ring ciphertext: A and then B, N packed residues
// each.
func (s *Scheme) RingSize() int { return codec.PolySize(s.N(), []uint64{s.Q, s.Q}) }

// AppendLWE appends the encoding of c.
func (s *Scheme) AppendLWE(dst []byte, c *LWE) []byte {
	return codec.AppendPoly(dst, [][]uint64{c.A, {c.B}}, []uint64{s.Q, s.Q})
}

// AppendRing appends the encoding of c.
func (s *Scheme) AppendRing(dst []byte, c *Ring) []byte {
	return codec.AppendPoly(dst, [][]uint64{c.A, c.B}, []uint64{s.Q, s.Q})
}

// DecodeLWE sets c, which NewLWE made, from exactly src. The error wraps one of package [codec]'s;
// c may be anything then.
func (s *Scheme) DecodeLWE(c *LWE, src []byte) error {
	b := []uint64{0}
	if err := codec.DecodePoly([][]uint64{c.A, b}, []uint64{s.Q, s.Q}, src); err != nil {
		return fmt.Errorf("lwe: ciphertext: %w", err)
	}
	c.B = b[0]
	return nil
}

// DecodeRing is DecodeLWE for a ring ciphertext.
func (s *Scheme) DecodeRing(c *Ring, src []byte) error {
	if err := codec.DecodePoly([][]uint64{c.A, c.B}, []uint64{s.Q, s.Q}, src); err != nil {
		return fmt.Errorf("lwe: ring ciphertext: %w", err)
	}
	return nil
}
