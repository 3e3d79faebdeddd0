package ot

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
)

// hasher is the tweakable hash of Guo, Katz, Wang and Yu (Efficient and secure multiparty
// computation from fixed-key block ciphers, IEEE S&P 2020, Section 7.4):
//
//	H(j, x) = pi(pi(x) + j) + pi(x)
//
// for a permutation pi. If pi is random, H is tweakable circular correlation robust. pi is AES-128
// under a public key that depends on the ID. A hasher is not safe for concurrent use.
type hasher struct {
	pi     cipher.Block
	buffer [2][16]byte
}

func newHasher(id ID) *hasher {
	key := hashFields([]byte("lodge ot permutation"), id[:])
	pi, err := aes.NewCipher(key[:16])
	if err != nil {
		panic(err) // the length is right
	}
	return &hasher{pi: pi}
}

// sum returns the first 64 bits of H(j, x).
func (h *hasher) sum(j uint64, x block) uint64 {
	in, out := h.buffer[0][:], h.buffer[1][:]
	binary.LittleEndian.PutUint64(in, x.lo)
	binary.LittleEndian.PutUint64(in[8:], x.hi)
	h.pi.Encrypt(out, in)
	first := binary.LittleEndian.Uint64(out)
	binary.LittleEndian.PutUint64(out, first^j)
	h.pi.Encrypt(in, out)
	return first ^ binary.LittleEndian.Uint64(in)
}

// wide returns all 128 bits of H(j, x).
func (h *hasher) wide(j uint64, x block) (hi, lo uint64) {
	lo = h.sum(j, x) // leaves pi(pi(x) + j) and pi(x) + j in the buffer; the upper half of the latter is that of pi(x)
	in, out := h.buffer[0][8:], h.buffer[1][8:]
	return binary.LittleEndian.Uint64(in) ^ binary.LittleEndian.Uint64(out), lo
}

// Wipe erases the buffer of the last sum.
func (h *hasher) Wipe() { clear(h.buffer[:]) }
