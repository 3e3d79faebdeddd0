// Package sample draws the random values of the engine from named streams of a cryptographic generator:
// uniform residues, ternary and discrete Gaussian polynomials, and the flooding of distributed decryption.
//
// A Source is a seed; Stream and Sub derive independent streams and sources from it by name, so that every
// value has one place that draws it and nothing depends on the order of calls. Derivation is SHAKE256 over
// length-prefixed fields; a stream is AES-256 in counter mode. Seeds enter from outside the engine.
//
// The discrete Gaussian is described in gaussian.go. Rejection makes the time of a sampler depend on what it
// rejects, and for a Gaussian on the centre; accepted values are neither branched nor indexed on.
package sample

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha3"
	"encoding/binary"
	"fmt"
	"io"
)

// SeedSize is the length in bytes of seeds that this package derives, and the least it accepts.
const SeedSize = 32

const bufferSize = 4096

// Source is a secret seed. It is safe for concurrent use until it is wiped.
type Source struct{ seed []byte }

// NewSource makes a source of a seed of at least SeedSize uniform bytes, which it copies.
func NewSource(seed []byte) *Source {
	if len(seed) < SeedSize {
		panic(fmt.Sprintf("sample: seed of %d bytes", len(seed)))
	}
	return &Source{append([]byte(nil), seed...)}
}

// Sub is the source of this name.
func (s *Source) Sub(label string, index ...uint64) *Source {
	return &Source{derive("lodge source", s.seed, label, index)}
}

// Stream is the stream of this name. The same name gives the same stream again.
func (s *Source) Stream(label string, index ...uint64) *Stream {
	return newStream(derive("lodge stream", s.seed, label, index))
}

// Wipe erases the seed. Streams that were made stay usable.
func (s *Source) Wipe() { clear(s.seed) }

// String shows nothing of the seed.
func (s *Source) String() string { return "[redacted]" }

// GoString shows nothing of the seed.
func (s *Source) GoString() string { return s.String() }

func derive(tag string, seed []byte, label string, index []uint64) []byte {
	h := sha3.NewSHAKE256()
	var n [8]byte
	field := func(b []byte) {
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	field([]byte(tag))
	field(seed)
	field([]byte(label))
	for _, i := range index {
		field(binary.LittleEndian.AppendUint64(nil, i))
	}
	out := make([]byte, SeedSize)
	h.Read(out)
	return out
}

// Stream is an endless string of random bytes. It is not safe for concurrent use.
type Stream struct {
	ctr    cipher.Stream
	at     int
	buffer [bufferSize]byte
}

func newStream(key []byte) *Stream {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	clear(key)
	return &Stream{ctr: cipher.NewCTR(block, make([]byte, aes.BlockSize)), at: bufferSize}
}

func (s *Stream) fill() {
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
		clear(s.buffer[s.at : s.at+k])
		s.at += k
		p = p[k:]
	}
	return n, nil
}

// Uint64 is a uniform word: the next 8 bytes, least significant first, of what is left in whole words.
func (s *Stream) Uint64() uint64 {
	if s.at > bufferSize-8 {
		s.fill()
	}
	v := binary.LittleEndian.Uint64(s.buffer[s.at:])
	s.at += 8
	return v
}

var _ io.Reader = (*Stream)(nil)
