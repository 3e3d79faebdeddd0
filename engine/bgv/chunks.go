package bgv

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/keyset"
)

// Keys are encoded as a header and chunks, one for each sample. Chunks can be sent and received in
// any order, and each can be checked alone: the digest of keys covers the header and the digests of
// the chunks. The header is
//
//	the hash of the set (32 bytes), the seed (32 bytes), the number of automorphisms (one byte), and each of them in four
//	bytes, least significant first
//
// and a chunk is the b of a sample, with residues packed prime by prime. Chunk 0 contains the
// public key.

// minHeader is the size in bytes of a header without automorphisms.
const minHeader = sha256.Size + SeedSize + 1

// HeaderSize returns the size in bytes of the header of keys with the given number of
// automorphisms.
func HeaderSize(galois int) int { return minHeader + 4*galois }

// ChunkSize returns the size in bytes of a chunk.
func (s *Scheme) ChunkSize() int { return codec.PolySize(s.N(), s.QP()) }

// KeysHeader encodes the header of keys.
func (s *Scheme) KeysHeader(k *Keys) []byte {
	set := s.Hash()
	b := append(append(make([]byte, 0, HeaderSize(len(k.Galois))), set[:]...), k.Seed[:]...)
	b = append(b, byte(len(k.Galois)))
	for _, g := range k.Galois {
		b = binary.LittleEndian.AppendUint32(b, uint32(g))
	}
	return b
}

// parseHeader is the inverse of KeysHeader.
func (s *Scheme) parseHeader(b []byte) (seed [SeedSize]byte, galois []uint64, err error) {
	//lodge:check bgv/keys-length [swap=len(b) != HeaderSize(int(b[minHeader-1]))=>len(b) <
	//  HeaderSize(int(b[minHeader-1]))] keys are decoded without a limit on their size
	if len(b) < minHeader || len(b) != HeaderSize(int(b[minHeader-1])) {
		return seed, nil, fmt.Errorf("%w: the header has the wrong length, %d bytes", ErrKeys, len(b))
	}
	//lodge:check bgv/keys-set keys of another parameter set are accepted
	if set := s.Hash(); [32]byte(b) != set {
		return seed, nil, fmt.Errorf("%w: they do not belong to set %s", ErrKeys, s.Name)
	}
	for at := minHeader; at < len(b); at += 4 {
		galois = append(galois, uint64(binary.LittleEndian.Uint32(b[at:])))
	}
	return [SeedSize]byte(b[sha256.Size:]), galois, s.CheckGalois(galois)
}

// AppendChunk appends chunk i, in [0, len(k.B)).
func (s *Scheme) AppendChunk(dst []byte, k *Keys, i int) []byte {
	return codec.AppendPoly(dst, k.B[i].C, s.QP())
}

// ChunkDigests returns the SHA-256 of each chunk.
func (s *Scheme) ChunkDigests(k *Keys) [][32]byte {
	return keyset.ChunkDigests(len(k.B), func(dst []byte, i int) []byte { return s.AppendChunk(dst, k, i) })
}

// KeysDigest returns the digest that identifies keys and their set.
func (s *Scheme) KeysDigest(k *Keys) [32]byte { return DigestOf(s.KeysHeader(k), s.ChunkDigests(k)) }

var format = keyset.Format{Tag: "lodge bgv keys 1", Err: ErrKeys}

// DigestOf returns the digest of keys from their header and the digests of their chunks.
func DigestOf(header []byte, chunks [][32]byte) [32]byte { return format.Digest(header, chunks) }

// Receiver assembles keys from their chunks.
type Receiver = keyset.Receiver[*Keys]

// Receive checks the header before it allocates memory for the keys. The error wraps ErrKeys.
func (s *Scheme) Receive(header []byte) (*Receiver, error) {
	seed, galois, err := s.parseHeader(header)
	if err != nil {
		return nil, err
	}
	keys, err := s.NewKeys(seed, galois)
	if err != nil {
		return nil, err
	}
	return keyset.NewReceiver(format, header, keys, len(keys.B), func(i int, chunk []byte) error {
		return codec.DecodePoly(keys.B[i].C, s.QP(), chunk)
	}), nil
}

// ReceivePublicKey returns the public key of keys with the given digest, from chunk 0, the header
// and the digests of all chunks, which may come from an untrusted source. The error wraps ErrKeys.
func (s *Scheme) ReceivePublicKey(digest [32]byte, header []byte, chunks [][32]byte, chunk []byte) (*rlwe.PublicKey, error) {
	seed, galois, err := s.parseHeader(header)
	if err != nil {
		return nil, err
	}
	//lodge:check bgv/public-digest another number of chunks than the keys have is accepted
	if len(chunks) != s.Samples(len(galois)) {
		return nil, fmt.Errorf("%w: %d chunk digests, want %d", ErrKeys, len(chunks), s.Samples(len(galois)))
	}
	if err := format.CheckFirst(digest, header, chunks, chunk); err != nil {
		return nil, err
	}
	k := &Keys{Seed: seed}
	k.B = append(k.B, s.basis.NewNTT())
	if err := codec.DecodePoly(k.B[0].C, s.QP(), chunk); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return s.PublicToLattigo(k), nil
}
