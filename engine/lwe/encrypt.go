package lwe

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// PublicKey is a ring sample (a, b = a z + e) under z, both halves in evaluation form;
// [Scheme.PublicKey] prepares one. It is immutable and may be shared.
type PublicKey struct {
	s    *Scheme
	a, b []uint64
}

// PublicKey prepares the public key of keys. The error wraps [ErrKeys].
func (s *Scheme) PublicKey(k *Keys) (*PublicKey, error) {
	if err := s.checkKeys(k); err != nil {
		return nil, err
	}
	p := &PublicKey{s: s, a: make([]uint64, s.N()), b: append([]uint64(nil), k.Public...)}
	s.UniformPublic(p.a, &k.Seed)
	return p, nil
}

// ReceivePublicKey returns the public key of keys with a digest. It needs the header of the keys,
// the digests of their chunks, and chunk 0. The error wraps [ErrKeys], or [ErrSet].
func (s *Scheme) ReceivePublicKey(digest [32]byte, header []byte, chunks [][32]byte, first []byte) (*PublicKey, error) {
	if err := s.checkHeader(header); err != nil {
		return nil, err
	}
	if len(chunks) != s.Chunks() {
		return nil, fmt.Errorf("%w: %d chunk digests, want %d", ErrKeys, len(chunks), s.Chunks())
	}
	if err := format.CheckFirst(digest, header, chunks, first); err != nil {
		return nil, err
	}
	from, to := s.chunk(0)
	words := make([]uint64, to-from)
	if err := codec.DecodePoly([][]uint64{words}, []uint64{s.Q}, first); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	p := &PublicKey{s: s, a: make([]uint64, s.N()), b: words[:s.N():s.N()]}
	seed := [SeedSize]byte(header[32:])
	s.UniformPublic(p.a, &seed)
	return p, nil
}

// Encrypt returns a ring ciphertext whose coefficient k is messages[k] in the encoding, and 0
// beyond the last of at most N. With u a difference of bits in each coefficient and errors e1, e2,
//
//	(a u + e1, b u + e2 + m),  of phase m + e u + e2 - e1 z.
//
// The source is for one ciphertext: two that are made of the same one reveal their difference. The
// error wraps [ErrMessage].
func (p *PublicKey) Encrypt(messages []uint64, e Encoding, source *sample.Source) (*Ring, error) {
	s, n := p.s, p.s.N()
	if len(messages) > n {
		return nil, fmt.Errorf("%w: %d messages for %d coefficients", ErrMessage, len(messages), n)
	}
	c := s.NewRing()
	small, u, secret := make([]int64, n), make([]uint64, n), make([]uint64, n)
	defer func() {
		clear(small)
		clear(u)
		clear(secret)
	}()
	for k, m := range messages {
		phase, err := s.Encode(m, e)
		if err != nil {
			clear(c.B)
			return nil, fmt.Errorf("coefficient %d: %w", k, err)
		}
		c.B[k] = phase
	}
	draw := func(dst []uint64, sampler func([]int64, *sample.Stream), name string) {
		stream := source.Stream("lwe encryption " + name)
		defer stream.Wipe()
		sampler(small, stream)
		s.FromSigned(dst, small)
	}
	draw(u, Differences, "u")
	s.Forward(u, u)
	s.mod.MulVec(c.A, p.a, u)
	s.Inverse(c.A, c.A)
	draw(secret, s.errors.Sample, "e1")
	s.mod.AddVec(c.A, c.A, secret)

	draw(secret, s.errors.Sample, "e2")
	s.mod.AddVec(c.B, c.B, secret)
	s.mod.MulVec(secret, p.b, u)
	s.Inverse(secret, secret)
	s.mod.AddVec(c.B, c.B, secret)
	return c, nil
}

// FromSigned sets dst to integers below Q in magnitude, as residues, in a time that does not depend
// on them.
func (s *Scheme) FromSigned(dst []uint64, v []int64) {
	for i, x := range v {
		dst[i] = s.residue(x)
	}
}
