// Package sample draws the random values of the engine from named streams of a cryptographic
// generator: uniform residues, ternary and discrete Gaussian polynomials, and the flooding noise of
// distributed decryption.
//
// A Source is a seed. Stream and Sub derive independent streams and sources from it by name, so
// that every value is drawn in one place and nothing depends on the order of calls. Derivation is
// SHAKE256 over length-prefixed fields (derive); a stream is AES-256 in counter mode (newStream).
// Seeds enter from outside the engine through Draw, which refuses bytes that are visibly not random
// and binds them to their use. A public seed expands to the same polynomial for every party; Expand
// fixes how.
//
// gaussian.go describes the discrete Gaussian and its error analysis. Rejection makes the time of a
// sampler depend on rejected values, and for a Gaussian on the centre. Nothing branches on or
// indexes by accepted values.
package sample

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha3"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/secret"
)

// SeedSize is the length in bytes of the seeds that this package derives, and the minimum that it
// accepts.
const SeedSize = 32

const bufferSize = 4096

// Source is a secret seed. It is safe for concurrent use until it is wiped.
type Source struct{ seed secret.Bytes }

// NewSource returns a source for a given seed of at least SeedSize bytes. It copies the seed and
// does not judge it. It is meant for tests, measurements, and seeds that a protocol derives or
// exchanges. Production code draws seeds with Draw; engine/seeds_test.go lists the other permitted
// callers.
func NewSource(seed []byte) *Source {
	if len(seed) < SeedSize {
		panic(fmt.Sprintf("sample: seed of %d bytes is too short", len(seed)))
	}
	return &Source{secret.NewBytes(bytes.Clone(seed))}
}

// Sub returns the source with this name. It panics on a wiped source.
func (s *Source) Sub(label string, index ...uint64) *Source {
	return &Source{secret.NewBytes(derive("lodge source", s.seed.Open(), label, index))}
}

// Stream returns the stream with this name. The same name yields the same stream again. It panics
// on a wiped source.
func (s *Source) Stream(label string, index ...uint64) *Stream {
	return newStream(derive("lodge stream", s.seed.Open(), label, index))
}

// Wipe erases the seed. Streams and sources derived from it remain usable.
func (s *Source) Wipe() { s.seed.Wipe() }

// Format prints nothing of the seed, for any verb.
func (Source) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

// derive returns the first SeedSize bytes of SHAKE256(F(tag) F(seed) F(label) F(index[0])
// F(index[1]) ...), where F(x) is the length of x in bytes followed by x, and lengths and indices
// are 8 bytes, least significant first. The encoding is injective because fields carry their
// lengths, so different names never yield the same input.
func derive(tag string, seed []byte, label string, index []uint64) []byte {
	fields := [][]byte{[]byte(tag), seed, []byte(label)}
	for _, i := range index {
		fields = append(fields, binary.LittleEndian.AppendUint64(nil, i))
	}
	return hashFields(fields...)
}

// hashFields returns the first SeedSize bytes of SHAKE256 of the fields, each preceded by its
// length.
func hashFields(fields ...[]byte) []byte {
	h := sha3.NewSHAKE256()
	var n [8]byte
	for _, b := range fields {
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	out := make([]byte, SeedSize)
	h.Read(out)
	return out
}

// Stream is an endless string of random bytes. It is not safe for concurrent use.
type Stream struct {
	ctr    cipher.Stream     // nil once wiped
	at     int               // bytes before it in buffer are used up
	buffer *[bufferSize]byte // a pointer, because fmt with a wrong verb follows the first one in an unexported field
}

// newStream returns the key stream of AES-256 in counter mode. The counter is a block of 16 bytes,
// most significant first, that starts at 0. It clears the key.
func newStream(key []byte) *Stream {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	clear(key)
	return &Stream{ctr: cipher.NewCTR(block, make([]byte, aes.BlockSize)), at: bufferSize, buffer: new([bufferSize]byte)}
}

func (s *Stream) fill() {
	if s.ctr == nil {
		panic("sample: wiped stream")
	}
	clear(s.buffer[:])
	s.ctr.XORKeyStream(s.buffer[:], s.buffer[:])
	s.at = 0
}

// Read fills p and never fails.
func (s *Stream) Read(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if s.at == bufferSize {
			s.fill()
		}
		k := copy(p, s.buffer[s.at:])
		clear(s.buffer[s.at : s.at+k]) // no later reader of this memory may find bytes already used
		s.at += k
		p = p[k:]
	}
	return n, nil
}

// Uint64 returns a uniform word: the next 8 bytes, least significant first. It skips a rest of less
// than 8 bytes that a Read left at the end of a buffer.
func (s *Stream) Uint64() uint64 {
	if s.at > bufferSize-8 {
		s.fill()
	}
	v := binary.LittleEndian.Uint64(s.buffer[s.at:])
	binary.LittleEndian.PutUint64(s.buffer[s.at:], 0)
	s.at += 8
	return v
}

// words fills dst with the results of successive calls of Uint64.
func (s *Stream) words(dst []uint64) {
	for len(dst) > 0 {
		if s.at > bufferSize-8 {
			s.fill()
		}
		left := s.buffer[s.at:]
		n := min(len(dst), len(left)/8)
		for i := range dst[:n] {
			dst[i] = binary.LittleEndian.Uint64(left[8*i:])
		}
		clear(left[:8*n])
		s.at += 8 * n
		dst = dst[n:]
	}
}

// Wipe erases the buffer and drops the key, which the cipher does not let us erase. A wiped stream
// panics when it is read.
func (s *Stream) Wipe() {
	clear(s.buffer[:])
	s.ctr, s.at = nil, bufferSize
}

// Format prints nothing of the stream, for any verb.
func (*Stream) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, secret.Redacted) }

var _ io.Reader = (*Stream)(nil)
