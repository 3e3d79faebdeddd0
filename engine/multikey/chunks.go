package multikey

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// HeaderSize is the size in bytes of the header of keys: the set's hash, the digest of the common
// reference string, the owner in four bytes, least significant first, and the seed of the masks.
const HeaderSize = 32 + 32 + 4 + SeedSize

// Header returns the header that precedes the chunks.
func (k *Keys) Header() []byte {
	b := append(make([]byte, 0, HeaderSize), k.s.hash[:]...)
	b = binary.LittleEndian.AppendUint32(append(b, k.s.crs[:]...), k.Owner)
	return append(b, k.Seed[:]...)
}

// HeaderSeed returns the seed in a header of HeaderSize bytes.
func HeaderSeed(header []byte) [SeedSize]byte { return [SeedSize]byte(header[HeaderSize-SeedSize:]) }

// chunkBytes bounds the size of chunks of the rotation key. A chunk with a single coordinate may be
// larger.
const chunkBytes = 3 << 20

// elementSize returns the size in bytes of an encoded ring element: N words packed at 64-Drop bits.
// N is a multiple of 16, so there is no padding, and every string of this length encodes an
// element.
func (s *Scheme) elementSize() int { return kernel.PackedSize(s.N(), ringBits-s.Drop) }

// perChunk returns the number of coordinates in a chunk of the rotation key.
func (s *Scheme) perChunk() int {
	_, each := s.rows()
	return max(1, chunkBytes/(each*s.elementSize()))
}

// Chunks returns the number of chunks of keys: one with the switching key, the public part and the
// relinearisation key, followed by those of the rotation key. Chunks can be sent and received in
// any order.
func (s *Scheme) Chunks() int { return 1 + (s.Dim+s.perChunk()-1)/s.perChunk() }

// chunk returns the range of ring elements in chunk i, and its number of words of the switching
// key.
func (s *Scheme) chunk(i int) (from, to, short int) {
	first, each := s.rows()
	if i == 0 {
		return 0, first, (s.N() - s.Dim) * s.Switch.Digits
	}
	return first + (i-1)*s.perChunk()*each, first + min(i*s.perChunk(), s.Dim)*each, 0
}

// ChunkSize returns the size in bytes of chunk i, in [0, Chunks()).
func (s *Scheme) ChunkSize(i int) int {
	from, to, short := s.chunk(i)
	return 4*short + (to-from)*s.elementSize()
}

// KeySize returns the size in bytes of keys including the header.
func (s *Scheme) KeySize() int {
	size := HeaderSize
	for i := range s.Chunks() {
		size += s.ChunkSize(i)
	}
	return size
}

// AppendChunk appends chunk i.
func (k *Keys) AppendChunk(dst []byte, i int) []byte {
	from, to, short := k.s.chunk(i)
	dst = appendShort(dst, k.short[:short])
	for row := from; row < to; row++ {
		at := len(dst)
		dst = append(dst, make([]byte, k.s.elementSize())...)
		kernel.Pack(dst[at:], k.row(row), ringBits-k.s.Drop)
	}
	return dst
}

// ChunkDigests returns the SHA-256 of each chunk.
func (k *Keys) ChunkDigests() [][32]byte {
	list := make([][32]byte, k.s.Chunks())
	var buffer []byte
	for i := range list {
		buffer = k.AppendChunk(buffer[:0], i)
		list[i] = sha256.Sum256(buffer)
	}
	return list
}

// ID returns the name of the keys.
func (k *Keys) ID() KeyID { return IDOf(k.Header(), k.ChunkDigests()) }

// IDOf returns the name of keys with this header and these digests of chunks: SHA-256 of a tag, the
// header and the digests.
func IDOf(header []byte, chunks [][32]byte) KeyID {
	b := append([]byte("lodge multikey keys 1"), header...)
	for _, c := range chunks {
		b = append(b, c[:]...)
	}
	return sha256.Sum256(b)
}

// Receiver assembles keys from their chunks, which may arrive in any order, for example from a
// resumed stream.
type Receiver struct {
	keys   *Keys
	hashes [][32]byte
	have   []bool
}

// CheckHeader validates the header of an owner's keys. The error wraps ErrKeys, ErrSet, ErrCRS, or
// ErrOwner.
func (s *Scheme) CheckHeader(owner uint32, header []byte) error {
	switch {
	//lodge:check multikey/header [swap=len(header) != HeaderSize=>len(header) < HeaderSize]
	//  [run=Chunks] a header can have trailing bytes
	case len(header) != HeaderSize:
		return fmt.Errorf("%w: the header has %d bytes, want %d", ErrKeys, len(header), HeaderSize)
	//lodge:check multikey/keys-set [run=Chunks] keys of another parameter set are accepted
	case [32]byte(header) != s.hash:
		return fmt.Errorf("%w: the keys are not for %s", ErrSet, s.Name)
	//lodge:check multikey/keys-string [run=Chunks] keys of another common reference string are
	//  accepted
	case [32]byte(header[32:]) != s.crs:
		return fmt.Errorf("%w: keys", ErrCRS)
	}
	//lodge:check multikey/owner [run=Chunks] a party registers keys for another party
	if got := binary.LittleEndian.Uint32(header[64:]); got != owner {
		return fmt.Errorf("%w: the owner is %d, want %d", ErrOwner, got, owner)
	}
	return nil
}

// Receive validates the header with CheckHeader before it allocates memory for the keys of an
// owner, and returns a receiver.
func (s *Scheme) Receive(owner uint32, header []byte) (*Receiver, error) {
	if err := s.CheckHeader(owner, header); err != nil {
		return nil, err
	}
	return &Receiver{
		keys: s.newKeys(owner, HeaderSeed(header)), hashes: make([][32]byte, s.Chunks()), have: make([]bool, s.Chunks()),
	}, nil
}

// Put stores chunk i. It accepts the same chunk again and rejects a different one in its place. The
// error wraps ErrKeys, and one of package codec's if the chunk has the wrong size; the chunk then
// remains missing.
func (r *Receiver) Put(i int, chunk []byte) error {
	//lodge:check multikey/chunk-number [drop=i < 0] [run=Chunks] a chunk with a negative number
	//  crashes the receiver
	if i < 0 || i >= len(r.have) {
		return fmt.Errorf("%w: there is no chunk %d in keys of %d chunks", ErrKeys, i, len(r.have))
	}
	s := r.keys.s
	//lodge:check multikey/chunk-length [run=Chunks] a chunk of the wrong length is accepted
	if err := exactly("chunk", len(chunk), s.ChunkSize(i)); err != nil {
		return fmt.Errorf("%w: chunk %d: %w", ErrKeys, i, err)
	}
	sum := sha256.Sum256(chunk)
	if r.have[i] {
		//lodge:check multikey/chunk-twice [run=Chunks] a second chunk replaces the first
		if sum != r.hashes[i] {
			return fmt.Errorf("%w: chunk %d was received twice and differs", ErrKeys, i)
		}
		return nil
	}
	from, to, short := s.chunk(i)
	decodeShort(r.keys.short[:short], chunk)
	chunk = chunk[4*short:]
	for row := from; row < to; row++ {
		kernel.Unpack(r.keys.row(row), chunk[:s.elementSize()], ringBits-s.Drop)
		chunk = chunk[s.elementSize():]
	}
	r.hashes[i], r.have[i] = sum, true
	return nil
}

// Missing lists the chunks that have not been received.
func (r *Receiver) Missing() (list []int) {
	for i, have := range r.have {
		if !have {
			list = append(list, i)
		}
	}
	return list
}

// Finish returns the keys if no chunk is missing and they have the given name. The error wraps
// ErrKeys.
func (r *Receiver) Finish(id KeyID) (*Keys, error) {
	//lodge:check multikey/missing-chunks [swap=0=>1] [run=Chunks] [redundant=a missing chunk has
	//  digest 0, which changes the name] incomplete keys are accepted
	if list := r.Missing(); len(list) > 0 {
		return nil, fmt.Errorf("%w: %d of %d chunks are missing", ErrKeys, len(list), len(r.have))
	}
	//lodge:check multikey/keys-name [run=Chunks] received keys need not match their identifier
	if got := IDOf(r.keys.Header(), r.hashes); got != id {
		return nil, fmt.Errorf("%w: the keys have the name %x, not %x", ErrKeys, got, id)
	}
	return r.keys, nil
}
