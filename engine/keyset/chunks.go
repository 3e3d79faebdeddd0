package keyset

import (
	"crypto/sha256"
	"fmt"
)

// A Format describes the chunked public keys of one scheme.
type Format struct {
	// Tag separates the digests of the scheme's keys from other hashes.
	Tag string
	// Err is the scheme's error for malformed keys. Every error of this package about keys wraps
	// it.
	Err error
}

// Digest returns the digest of keys from their header and the SHA-256 of each chunk.
func (f Format) Digest(header []byte, chunks [][32]byte) [32]byte {
	b := append([]byte(f.Tag), header...)
	for _, c := range chunks {
		b = append(b, c[:]...)
	}
	return sha256.Sum256(b)
}

// ChunkDigests returns the SHA-256 of each of n chunks. The function appends chunk i to its
// argument.
func ChunkDigests(n int, appendChunk func(dst []byte, i int) []byte) [][32]byte {
	list := make([][32]byte, n)
	var buffer []byte
	for i := range list {
		buffer = appendChunk(buffer[:0], i)
		list[i] = sha256.Sum256(buffer)
	}
	return list
}

// CheckFirst returns an error unless first is chunk 0 of keys with the given digest. The header and
// the digests of the chunks may come from an untrusted source. chunks must not be empty.
func (f Format) CheckFirst(digest [32]byte, header []byte, chunks [][32]byte, first []byte) error {
	//lodge:check keyset/public-digest a received public key need not match its digest
	if f.Digest(header, chunks) != digest {
		return fmt.Errorf("%w: the header and the chunk digests do not have digest %x", f.Err, digest)
	}
	//lodge:check keyset/public-chunk a chunk of a public key need not match its digest
	if sha256.Sum256(first) != chunks[0] {
		return fmt.Errorf("%w: chunk 0 does not have its digest", f.Err)
	}
	return nil
}

// A Receiver assembles keys of type K from their chunks, which may arrive in any order, for example
// on a resumed stream. A Receiver must not be used concurrently.
type Receiver[K any] struct {
	format Format
	header []byte
	keys   K
	decode func(i int, chunk []byte) error
	hashes [][32]byte
	have   []bool
}

// NewReceiver returns a receiver of n chunks for a header that the scheme has validated. decode
// validates chunk i, in [0, n), and stores it in the keys.
func NewReceiver[K any](f Format, header []byte, keys K, n int, decode func(i int, chunk []byte) error) *Receiver[K] {
	return &Receiver[K]{
		format: f, header: append([]byte(nil), header...), keys: keys, decode: decode, hashes: make([][32]byte, n), have: make([]bool, n),
	}
}

// Put stores chunk i. It accepts the same chunk again and rejects a different one in its place. The
// error wraps the scheme's error for malformed keys and the decoder's error; the chunk then remains
// missing.
func (r *Receiver[K]) Put(i int, chunk []byte) error {
	//lodge:check keyset/chunk-number [drop=i < 0] a chunk with a negative number crashes the receiver
	if i < 0 || i >= len(r.have) {
		return fmt.Errorf("%w: chunk %d of %d does not exist", r.format.Err, i, len(r.have))
	}
	sum := sha256.Sum256(chunk)
	if r.have[i] {
		//lodge:check keyset/chunk-twice a second chunk replaces the first without an error
		if sum != r.hashes[i] {
			return fmt.Errorf("%w: chunk %d was received twice with different contents", r.format.Err, i)
		}
		return nil
	}
	//lodge:check keyset/chunk-malformed a malformed chunk counts as received
	if err := r.decode(i, chunk); err != nil {
		return fmt.Errorf("%w: chunk %d: %w", r.format.Err, i, err)
	}
	r.hashes[i], r.have[i] = sum, true
	return nil
}

// Missing lists the chunks that have not been received.
func (r *Receiver[K]) Missing() (list []int) {
	for i, have := range r.have {
		if !have {
			list = append(list, i)
		}
	}
	return list
}

// Finish returns the keys if no chunk is missing and the keys have the digest. The error wraps the
// scheme's error for malformed keys.
func (r *Receiver[K]) Finish(digest [32]byte) (none K, err error) {
	//lodge:check keyset/missing-chunks [swap=0=>1] [redundant=a missing chunk has digest 0, which changes the
	//  digest of the keys] incomplete keys are accepted
	if list := r.Missing(); len(list) > 0 {
		return none, fmt.Errorf("%w: %d of %d chunks are missing", r.format.Err, len(list), len(r.have))
	}
	//lodge:check keyset/keys-digest received keys need not match their digest
	if got := r.format.Digest(r.header, r.hashes); got != digest {
		return none, fmt.Errorf("%w: their digest is %x, want %x", r.format.Err, got, digest)
	}
	return r.keys, nil
}
