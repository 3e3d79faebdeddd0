package bgv

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"github.com/lodge-mpc/lodge/engine/codec"
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
	list := make([][32]byte, len(k.B))
	var b []byte
	for i := range list {
		b = s.AppendChunk(b[:0], k, i)
		list[i] = sha256.Sum256(b)
	}
	return list
}

// KeysDigest returns a digest that identifies keys and their set: SHA-256 of a tag, the header, and
// the SHA-256 of every chunk.
func (s *Scheme) KeysDigest(k *Keys) [32]byte { return DigestOf(s.KeysHeader(k), s.ChunkDigests(k)) }

// DigestOf returns the digest of keys from their header and the digests of their chunks.
func DigestOf(header []byte, chunks [][32]byte) [32]byte {
	b := append([]byte("lodge bgv keys 1"), header...)
	for _, c := range chunks {
		b = append(b, c[:]...)
	}
	return sha256.Sum256(b)
}

// Receiver assembles keys from their chunks, which may arrive in any order, for example on a
// resumed stream.
type Receiver struct {
	scheme *Scheme
	header []byte
	keys   *Keys
	hashes [][32]byte
	have   []bool
}

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
	n := len(keys.B)
	return &Receiver{scheme: s, header: append([]byte(nil), header...), keys: keys, hashes: make([][32]byte, n), have: make([]bool, n)}, nil
}

// Put adds chunk i. The same chunk may be added again, but not a different one. The error wraps
// ErrKeys; the chunk is then still missing.
func (r *Receiver) Put(i int, chunk []byte) error {
	if i < 0 || i >= len(r.have) {
		return fmt.Errorf("%w: chunk %d of %d does not exist", ErrKeys, i, len(r.have))
	}
	sum := sha256.Sum256(chunk)
	if r.have[i] {
		if sum != r.hashes[i] {
			return fmt.Errorf("%w: chunk %d was received twice with different contents", ErrKeys, i)
		}
		return nil
	}
	if err := codec.DecodePoly(r.keys.B[i].C, r.scheme.QP(), chunk); err != nil {
		return fmt.Errorf("%w: chunk %d: %w", ErrKeys, i, err)
	}
	r.hashes[i], r.have[i] = sum, true
	return nil
}

// Missing lists the chunks that were not received.
func (r *Receiver) Missing() (list []int) {
	for i, have := range r.have {
		if !have {
			list = append(list, i)
		}
	}
	return list
}

// Finish returns the keys if all chunks were received and the keys have the digest. The error wraps
// ErrKeys.
func (r *Receiver) Finish(digest [32]byte) (*Keys, error) {
	if list := r.Missing(); len(list) > 0 {
		return nil, fmt.Errorf("%w: %d of %d chunks are missing", ErrKeys, len(list), len(r.have))
	}
	//lodge:check bgv/keys-digest received keys need not match their digest
	if got := DigestOf(r.header, r.hashes); got != digest {
		return nil, fmt.Errorf("%w: their digest is %x, want %x", ErrKeys, got, digest)
	}
	return r.keys, nil
}

// ReceivePublicKey returns the public key of keys with the given digest, from chunk 0, the header
// and the digests of all chunks, which may come from an untrusted source. The error wraps ErrKeys.
func (s *Scheme) ReceivePublicKey(digest [32]byte, header []byte, chunks [][32]byte, chunk []byte) (*rlwe.PublicKey, error) {
	seed, galois, err := s.parseHeader(header)
	switch {
	case err != nil:
		return nil, err
	//lodge:check bgv/public-digest [drop=DigestOf(header, chunks) != digest] a received public key
	//  need not match its digest
	case len(chunks) != s.Samples(len(galois)) || DigestOf(header, chunks) != digest:
		return nil, fmt.Errorf("%w: the header and the chunk digests do not have digest %x", ErrKeys, digest)
	//lodge:check bgv/public-chunk a chunk of a public key need not match its digest
	case sha256.Sum256(chunk) != chunks[0]:
		return nil, fmt.Errorf("%w: chunk 0 does not have its digest", ErrKeys)
	}
	k := &Keys{Seed: seed}
	k.B = append(k.B, s.basis.NewNTT())
	if err := codec.DecodePoly(k.B[0].C, s.QP(), chunk); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return s.PublicToLattigo(k), nil
}
