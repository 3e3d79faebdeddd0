package ot

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
)

// linear is a universal hash that is linear over GF(2), for strings of one length, a multiple of 16
// bytes. It is the polynomial hash over GF(2^128) of Galois/counter mode, for which processors have
// instructions, without the terms for the length and the nonce. The point is random under AES; two
// strings of n blocks collide for at most n of 2^128 points. The cipher encrypts nothing here: each
// key is used for one challenge, and its hashes are public.
type linear struct {
	mode cipher.AEAD
	zero [tagSize]byte // the tag of zeros
}

const tagSize = 16

var nonce [12]byte

func newLinear(challenge [32]byte, length int) *linear {
	c, err := aes.NewCipher(challenge[:])
	if err != nil {
		panic(err) // the length is right
	}
	mode, err := cipher.NewGCM(c)
	if err != nil {
		panic(err) // the block is that of AES
	}
	l := &linear{mode: mode}
	l.zero = l.of(make([]byte, length))
	return l
}

// of returns the hash of a string of the right length.
func (l *linear) of(column []byte) (sum [tagSize]byte) {
	l.mode.Seal(sum[:0], nonce[:], nil, column)
	subtle.XORBytes(sum[:], sum[:], l.zero[:])
	return sum
}

// challenge returns the key of the hash for a chunk. It depends on everything that the receiver
// chose before.
func (id ID) challenge(transcript [32]byte, first uint64, columns []byte) [32]byte {
	number := binary.LittleEndian.AppendUint64(nil, first)
	return hashFields([]byte("lodge ot challenge"), id[:], transcript[:], number, columns)
}
