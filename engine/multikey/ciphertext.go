package multikey

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// eighth is 1/8 of the torus, and eighthWide is the same in words of keys.
const (
	eighth     = 1 << (lweBits - 3)
	eighthWide = 1 << (ringBits - 3)
)

// Part is the part of one party in a ciphertext: n words that are multiplied by the party's z in
// the phase.
type Part struct {
	Key KeyID
	A   []uint32
}

// Ciphertext is an LWE ciphertext under the keys of its parts, in ascending order of their names.
// Its phase is B + sum <A, z>. A ciphertext without parts is a public bit.
type Ciphertext struct {
	Parts []Part
	B     uint32
}

// Trivial returns the ciphertext of a public bit, without parts.
func Trivial(bit bool) *Ciphertext {
	if bit {
		return &Ciphertext{B: eighth}
	}
	return &Ciphertext{B: -eighth & (1<<lweBits - 1)}
}

// Clone returns a copy.
func (c *Ciphertext) Clone() *Ciphertext {
	d := &Ciphertext{B: c.B, Parts: slices.Clone(c.Parts)}
	for i := range d.Parts {
		d.Parts[i].A = slices.Clone(d.Parts[i].A)
	}
	return d
}

// Equal reports whether two ciphertexts have the same words under the same keys.
func (c *Ciphertext) Equal(o *Ciphertext) bool {
	return c.B == o.B && slices.EqualFunc(c.Parts, o.Parts, func(p, q Part) bool {
		return p.Key == q.Key && slices.Equal(p.A, q.A)
	})
}

// Keys returns the names of the keys under which a ciphertext is encrypted.
func (c *Ciphertext) Keys() []KeyID {
	ids := make([]KeyID, len(c.Parts))
	for i, p := range c.Parts {
		ids[i] = p.Key
	}
	return ids
}

// Not returns the ciphertext of the opposite bit, under the same keys and with the same noise.
func Not(c *Ciphertext) *Ciphertext {
	d := c.Clone()
	d.B = -d.B
	for _, p := range d.Parts {
		for i, x := range p.A {
			p.A[i] = -x
		}
	}
	return d
}

// Check returns an error unless c is a ciphertext of the set. The error wraps [ErrCiphertext], or
// [ErrParties].
func (s *Scheme) Check(c *Ciphertext) error {
	//lodge:check multikey/no-ciphertext [run=TasksAreRefused] a missing operand crashes the
	//  evaluation
	if c == nil {
		return fmt.Errorf("%w: none", ErrCiphertext)
	}
	//lodge:check multikey/parties [run=TasksAreRefused] a ciphertext has more parties than the
	//  noise allows
	if len(c.Parts) > s.Parties {
		return fmt.Errorf("%w: %d parties, but %s supports %d", ErrParties, len(c.Parts), s.Name, s.Parties)
	}
	for i, p := range c.Parts {
		//lodge:check multikey/dimension [run=TasksAreRefused|Decryption] a part of the wrong
		//  dimension crashes the evaluation
		if len(p.A) != s.Dim {
			return fmt.Errorf("%w: part %d does not have dimension %d", ErrCiphertext, i, s.Dim)
		}
		//lodge:check multikey/order [run=CiphertextEncoding] a ciphertext has several encodings
		//lodge:check multikey/order-of-equals [swap=bytes.Compare(c.Parts[i-1].Key[:], p.Key[:]) >=
		//  0=>bytes.Compare(c.Parts[i-1].Key[:], p.Key[:]) > 0]
		//  [run=CiphertextEncoding|TasksAreRefused] a ciphertext names one key twice
		if i > 0 && bytes.Compare(c.Parts[i-1].Key[:], p.Key[:]) >= 0 {
			return fmt.Errorf("%w: the keys are not in ascending order", ErrCiphertext)
		}
	}
	return nil
}

// CiphertextSize returns the size in bytes of an encoded ciphertext of k parts: k, the keys' names,
// B, and n words for each.
func (s *Scheme) CiphertextSize(k int) int { return 1 + 4 + k*(32+4*s.Dim) }

// AppendCiphertext appends the encoding of a ciphertext that Check accepts.
func (s *Scheme) AppendCiphertext(dst []byte, c *Ciphertext) []byte {
	dst = append(dst, byte(len(c.Parts)))
	for _, p := range c.Parts {
		dst = append(dst, p.Key[:]...)
	}
	dst = binary.LittleEndian.AppendUint32(dst, c.B)
	for _, p := range c.Parts {
		dst = appendShort(dst, p.A)
	}
	return dst
}

// DecodeCiphertext reads exactly one ciphertext. The encoding is canonical: it fixes the number of
// parts, the length and the order of the keys. The error wraps [ErrCiphertext] or [ErrParties], or
// one of package [codec]'s.
func (s *Scheme) DecodeCiphertext(src []byte) (*Ciphertext, error) {
	//lodge:check multikey/empty [run=CiphertextEncoding] an empty ciphertext crashes the decoder
	if len(src) == 0 {
		return nil, fmt.Errorf("multikey: ciphertext: %w", codec.ErrTruncated)
	}
	k := int(src[0])
	//lodge:check multikey/encoded-parties [run=CiphertextEncoding] a ciphertext is decoded without
	//  a limit on its size
	if k > s.Parties {
		return nil, fmt.Errorf("%w: %d parties, but %s supports %d", ErrParties, k, s.Name, s.Parties)
	}
	if err := exactly("ciphertext", len(src), s.CiphertextSize(k)); err != nil {
		return nil, err
	}
	c := &Ciphertext{Parts: make([]Part, k), B: binary.LittleEndian.Uint32(src[1+32*k:])}
	words := make([]uint32, k*s.Dim)
	decodeShort(words, src[5+32*k:])
	for i := range c.Parts {
		c.Parts[i] = Part{KeyID(src[1+32*i:]), words[i*s.Dim : (i+1)*s.Dim : (i+1)*s.Dim]}
	}
	//lodge:check multikey/decoded [run=CiphertextEncoding] a decoded ciphertext need not be valid
	if err := s.Check(c); err != nil {
		return nil, err
	}
	return c, nil
}

// exactly returns an error unless the length is the given one.
func exactly(what string, have, want int) error {
	switch {
	//lodge:check multikey/too-short [run=Encoding] a truncated input is decoded beyond its end
	case have < want:
		return fmt.Errorf("multikey: %s: %w: %d bytes, want %d", what, codec.ErrTruncated, have, want)
	//lodge:check multikey/too-long [run=Encoding] an input can have trailing bytes
	case have > want:
		return fmt.Errorf("multikey: %s: %w: %d bytes, want %d", what, codec.ErrTrailing, have, want)
	}
	return nil
}

func appendShort(dst []byte, v []uint32) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint32(dst, x)
	}
	return dst
}

func decodeShort(v []uint32, src []byte) {
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(src[4*i:])
	}
}

// Batch holds the public part of bits that a party encrypted. Masks are expanded from a seed, so
// that a bit takes four bytes.
type Batch struct {
	Key  KeyID
	Seed [SeedSize]byte
	B    []uint32

	s *Scheme
}

// MaxBatch is the maximal number of bits in a batch.
const MaxBatch = 1 << 20

// Len returns the number of bits.
func (b *Batch) Len() int { return len(b.B) }

// mask sets a to the mask of bit i. buffer holds n/2 words.
func (b *Batch) mask(a []uint32, buffer []uint64, i int) {
	expandShort(a, buffer, &b.Seed, "multikey encryption", uint64(i))
}

// expandShort fills dst, of even length, with words modulo 2^32, the lower half of each word of the
// stream first.
func expandShort(dst []uint32, buffer []uint64, seed *[SeedSize]byte, label string, index ...uint64) {
	sample.ExpandWords(buffer[:len(dst)/2], seed[:], label, index...)
	for i, w := range buffer[:len(dst)/2] {
		dst[2*i], dst[2*i+1] = uint32(w), uint32(w>>32)
	}
}

// Ciphertext returns the ciphertext of bit i, in [0, Len()).
func (b *Batch) Ciphertext(i int) *Ciphertext {
	c := &Ciphertext{B: b.B[i], Parts: []Part{{b.Key, make([]uint32, b.s.Dim)}}}
	b.mask(c.Parts[0].A, make([]uint64, b.s.Dim/2), i)
	return c
}

// batchHead is the size in bytes of the beginning of an encoded batch: the set's hash, the key's
// name, the seed, and the number of bits.
const batchHead = 32 + 32 + SeedSize + 4

// BatchSize returns the size in bytes of an encoded batch of the given number of bits.
func (s *Scheme) BatchSize(bits int) int { return batchHead + 4*bits }

// AppendBatch appends the encoding of a batch.
func (s *Scheme) AppendBatch(dst []byte, b *Batch) []byte {
	dst = append(append(append(dst, s.hash[:]...), b.Key[:]...), b.Seed[:]...)
	return appendShort(binary.LittleEndian.AppendUint32(dst, uint32(len(b.B))), b.B)
}

// DecodeBatch reads exactly one batch. The error wraps [ErrCiphertext] or [ErrSet], or one of
// package [codec]'s.
func (s *Scheme) DecodeBatch(src []byte) (*Batch, error) {
	//lodge:check multikey/batch-head [run=BatchEncoding] a truncated batch is decoded beyond its
	//  end
	if len(src) < batchHead {
		return nil, fmt.Errorf("multikey: batch: %w: %d bytes", codec.ErrTruncated, len(src))
	}
	//lodge:check multikey/batch-set [run=BatchEncoding] a batch of another parameter set is
	//  accepted
	if [32]byte(src) != s.hash {
		return nil, fmt.Errorf("%w: the batch is not for %s", ErrSet, s.Name)
	}
	count := binary.LittleEndian.Uint32(src[batchHead-4:])
	//lodge:check multikey/batch-count [run=BatchEncoding] a batch has any size
	if count > MaxBatch {
		return nil, fmt.Errorf("%w: a batch of %d bits (at most %d)", ErrCiphertext, count, MaxBatch)
	}
	if err := exactly("batch", len(src), s.BatchSize(int(count))); err != nil {
		return nil, err
	}
	b := &Batch{Key: KeyID(src[32:]), Seed: [SeedSize]byte(src[64:]), B: make([]uint32, count), s: s}
	decodeShort(b.B, src[batchHead:])
	return b, nil
}
