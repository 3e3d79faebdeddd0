package lwe

import (
	"bytes"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// SeedSize is the size in bytes of the public seed of the uniform halves of keys.
const SeedSize = 32

// Keys holds the public keys of a pair of secrets (z, s): the halves b of samples. The halves a are
// derived from the seed. Samples are b = <a, secret> + e + message. Ring samples are in evaluation
// form, where products are slot by slot:
//
//	Public              N words: a ring sample of 0 under z
//	Switch[i l + j]     a sample under s of z_i g_j, i in [0, N), j in [0, l), l and g of the gadget Switch
//	Rotation row i, r   N words: a ring sample under z of -z s_i g_r for r in [0, l), and of s_i g_(r-l) for r in
//	                    [l, 2l), i in [0, n), l and g of the gadget Rotation; together the RGSW encryption of s_i
//
// The slices are views of one slice, which chunks divide.
type Keys struct {
	Seed                     [SeedSize]byte
	Public, Switch, Rotation []uint64

	s     *Scheme
	words []uint64
}

// keyWords are the lengths of the parts of keys.
func (s *Scheme) keyWords() (public, switches, rotation int) {
	return s.N(), s.N() * s.Switch.Digits, s.Dim * s.RotationRows() * s.N()
}

// NewKeys returns keys whose words are all zero.
func (s *Scheme) NewKeys(seed [SeedSize]byte) *Keys {
	p, w, r := s.keyWords()
	words := make([]uint64, p+w+r)
	return &Keys{Seed: seed, Public: words[:p:p], Switch: words[p : p+w : p+w], Rotation: words[p+w:], s: s, words: words}
}

// RotationRows is the number of rows of the encryption of a coordinate of s.
func (s *Scheme) RotationRows() int { return 2 * s.Set.Rotation.Digits }

// RotationRow is row r of coordinate i.
func (k *Keys) RotationRow(i, r int) []uint64 {
	n := k.s.N()
	from := (i*k.s.RotationRows() + r) * n
	return k.Rotation[from : from+n]
}

// UniformPublic sets dst, N words, to the half a of the public key, in evaluation form.
func (s *Scheme) UniformPublic(dst []uint64, seed *[SeedSize]byte) {
	s.expand(dst[:s.N()], seed, "lwe public key", 0)
}

// UniformRotation sets dst, N words for each row in order, to the halves a of the rows of
// coordinate i of the rotation key, in evaluation form.
func (s *Scheme) UniformRotation(dst []uint64, seed *[SeedSize]byte, i int) {
	s.expand(dst[:s.RotationRows()*s.N()], seed, "lwe rotation key", i)
}

// UniformSwitch sets dst, n words for each digit in order, to the vectors a of the samples of z_i
// in the switching key.
func (s *Scheme) UniformSwitch(dst []uint64, seed *[SeedSize]byte, i int) {
	s.expand(dst[:s.Switch.Digits*s.Dim], seed, "lwe switching key", i)
}

func (s *Scheme) expand(dst []uint64, seed *[SeedSize]byte, label string, i int) {
	sample.Expand([][]uint64{dst}, []uint64{s.Q}, seed[:], label, uint64(i))
}

// checkKeys returns an error unless keys are complete and canonical keys of this set.
func (s *Scheme) checkKeys(k *Keys) error {
	if k == nil || k.s == nil {
		return fmt.Errorf("%w: none", ErrKeys)
	}
	if k.s.hash != s.hash {
		return fmt.Errorf("%w: keys of %s, not of %s", ErrSet, k.s.Name, s.Name)
	}
	if !s.canonical(k.words) {
		return fmt.Errorf("%w: a residue is not below %d", ErrKeys, s.Q)
	}
	return nil
}

// ChunkWords is the number of residues in a chunk of encoded keys, the last one aside: below 4 MiB
// for any modulus.
const ChunkWords = 1 << 19

// HeaderSize is the size in bytes of the header of keys: the hash of the set and the seed.
const HeaderSize = 32 + SeedSize

// Header returns the header that precedes the chunks.
func (k *Keys) Header() []byte { return append(bytes.Clone(k.s.hash[:]), k.Seed[:]...) }

// Chunks returns the number of chunks. Chunks divide the words of Public, Switch and Rotation, in
// this order, into [ChunkWords] words each, packed at the length of Q. They can be sent and
// received in any order.
func (s *Scheme) Chunks() int {
	p, w, r := s.keyWords()
	return (p + w + r + ChunkWords - 1) / ChunkWords
}

// chunk is the range of words of chunk i.
func (s *Scheme) chunk(i int) (from, to int) {
	p, w, r := s.keyWords()
	return i * ChunkWords, min((i+1)*ChunkWords, p+w+r)
}

// ChunkSize is the size in bytes of chunk i, in [0, Chunks()).
func (s *Scheme) ChunkSize(i int) int {
	from, to := s.chunk(i)
	return codec.PolySize(to-from, []uint64{s.Q})
}

// AppendChunk appends chunk i.
func (k *Keys) AppendChunk(dst []byte, i int) []byte {
	from, to := k.s.chunk(i)
	return codec.AppendPoly(dst, [][]uint64{k.words[from:to]}, []uint64{k.s.Q})
}

// ChunkDigests returns the SHA-256 of each chunk.
func (k *Keys) ChunkDigests() [][32]byte { return keyset.ChunkDigests(k.s.Chunks(), k.AppendChunk) }

// Digest returns the digest that identifies the keys and their set.
func (k *Keys) Digest() [32]byte { return DigestOf(k.Header(), k.ChunkDigests()) }

var format = keyset.Format{Tag: "lodge lwe keys 1", Err: ErrKeys}

// DigestOf returns the digest of keys from their header and the digests of their chunks.
func DigestOf(header []byte, chunks [][32]byte) [32]byte { return format.Digest(header, chunks) }

// Receiver assembles keys from their chunks.
type Receiver = keyset.Receiver[*Keys]

// Receive validates the header before it allocates memory for the keys. The error wraps [ErrKeys],
// or [ErrSet] if the keys are of another set.
func (s *Scheme) Receive(header []byte) (*Receiver, error) {
	if err := s.checkHeader(header); err != nil {
		return nil, err
	}
	keys := s.NewKeys([SeedSize]byte(header[32:]))
	return keyset.NewReceiver(format, header, keys, s.Chunks(), func(i int, chunk []byte) error {
		from, to := s.chunk(i)
		return codec.DecodePoly([][]uint64{keys.words[from:to]}, []uint64{s.Q}, chunk)
	}), nil
}

func (s *Scheme) checkHeader(header []byte) error {
	if len(header) != HeaderSize {
		return fmt.Errorf("%w: a header of %d bytes, want %d", ErrKeys, len(header), HeaderSize)
	}
	if [32]byte(header) != s.hash {
		return fmt.Errorf("%w: the keys are not for %s", ErrSet, s.Name)
	}
	return nil
}
