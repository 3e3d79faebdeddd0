package multikey

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// HeaderSize is the size in bytes of the header of keys: the set's hash, the digest of the common reference string, the
// owner in four bytes, least significant first, and the seed of the masks.
const HeaderSize = 32 + 32 + 4 + SeedSize

// Header is what goes before the chunks.
func (k *Keys) Header() []byte {
	b := append(make([]byte, 0, HeaderSize), k.s.hash[:]...)
	b = binary.LittleEndian.AppendUint32(append(b, k.s.crs[:]...), k.Owner)
	return append(b, k.Seed[:]...)
}

// HeaderSeed gives the seed in a header, which has HeaderSize bytes.
func HeaderSeed(header []byte) [SeedSize]byte { return [SeedSize]byte(header[HeaderSize-SeedSize:]) }

// chunkBytes bounds the chunks of the rotation key, but for one of a single coordinate.
const chunkBytes = 3 << 20

// elementSize is the size in bytes of an encoded ring element: N words packed at 64-Drop bits. N is a multiple of 16, so
// that there is no padding, and every string of this length is the encoding of an element.
func (s *Scheme) elementSize() int { return kernel.PackedSize(s.N(), ringBits-s.Drop) }

// perChunk is the number of coordinates in a chunk of the rotation key.
func (s *Scheme) perChunk() int {
	_, each := s.rows()
	return max(1, chunkBytes/(each*s.elementSize()))
}

// Chunks is the number of chunks of keys: one of the switching key, the public part and the relinearisation key, and
// then those of the rotation key. They can be sent and received in any order.
func (s *Scheme) Chunks() int { return 1 + (s.Dim+s.perChunk()-1)/s.perChunk() }

// chunk says which ring elements are in chunk i, and how many words of the switching key.
func (s *Scheme) chunk(i int) (from, to, short int) {
	first, each := s.rows()
	if i == 0 {
		return 0, first, (s.N() - s.Dim) * s.Switch.Digits
	}
	return first + (i-1)*s.perChunk()*each, first + min(i*s.perChunk(), s.Dim)*each, 0
}

// ChunkSize is the size in bytes of chunk i, in [0, Chunks()).
func (s *Scheme) ChunkSize(i int) int {
	from, to, short := s.chunk(i)
	return 4*short + (to-from)*s.elementSize()
}

// KeySize is the size in bytes of keys, header and all.
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

// ChunkDigests are the SHA-256 of the chunks.
func (k *Keys) ChunkDigests() [][32]byte {
	list := make([][32]byte, k.s.Chunks())
	var buffer []byte
	for i := range list {
		buffer = k.AppendChunk(buffer[:0], i)
		list[i] = sha256.Sum256(buffer)
	}
	return list
}

// ID is the name of the keys.
func (k *Keys) ID() KeyID { return IDOf(k.Header(), k.ChunkDigests()) }

// IDOf is the name of keys with this header and these digests of chunks: SHA-256 of a tag, the header and the digests.
func IDOf(header []byte, chunks [][32]byte) KeyID {
	b := append([]byte("lodge multikey keys 1"), header...)
	for _, c := range chunks {
		b = append(b, c[:]...)
	}
	return sha256.Sum256(b)
}

// Receiver puts keys together from their chunks, in any order, as a resumed stream has them.
type Receiver struct {
	keys   *Keys
	hashes [][32]byte
	have   []bool
}

// CheckHeader refuses what is no header of an owner's keys. The error wraps ErrKeys, ErrSet, ErrCRS, or ErrOwner.
func (s *Scheme) CheckHeader(owner uint32, header []byte) error {
	switch {
	//lodge:check multikey/header [swap=len(header) != HeaderSize=>len(header) < HeaderSize]
	//  [run=Chunks] a header can have trailing bytes
	case len(header) != HeaderSize:
		return fmt.Errorf("%w: a header of %d bytes, want %d", ErrKeys, len(header), HeaderSize)
	//lodge:check multikey/keys-set [run=Chunks] keys of another parameter set are accepted
	case [32]byte(header) != s.hash:
		return fmt.Errorf("%w: keys not of %s", ErrSet, s.Name)
	//lodge:check multikey/keys-string [run=Chunks] keys of another common reference string are
	//  accepted
	case [32]byte(header[32:]) != s.crs:
		return fmt.Errorf("%w: keys", ErrCRS)
	}
	//lodge:check multikey/owner [run=Chunks] a party registers keys for another party
	if got := binary.LittleEndian.Uint32(header[64:]); got != owner {
		return fmt.Errorf("%w: %d, want %d", ErrOwner, got, owner)
	}
	return nil
}

// Receive starts with the header, before anything is allocated for the keys of an owner. The error is CheckHeader's.
func (s *Scheme) Receive(owner uint32, header []byte) (*Receiver, error) {
	if err := s.CheckHeader(owner, header); err != nil {
		return nil, err
	}
	return &Receiver{
		keys: s.newKeys(owner, HeaderSeed(header)), hashes: make([][32]byte, s.Chunks()), have: make([]bool, s.Chunks()),
	}, nil
}

// Put takes chunk i. The same one may come again, and another in its place may not. The error wraps ErrKeys, and one of
// package codec's if the chunk has the wrong size; the receiver then still wants the chunk.
func (r *Receiver) Put(i int, chunk []byte) error {
	//lodge:check multikey/chunk-number [drop=i < 0] [run=Chunks] a chunk with a negative number
	//  crashes the receiver
	if i < 0 || i >= len(r.have) {
		return fmt.Errorf("%w: chunk %d of %d", ErrKeys, i, len(r.have))
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
			return fmt.Errorf("%w: chunk %d came twice and differs", ErrKeys, i)
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

// Missing lists the chunks that have not come.
func (r *Receiver) Missing() (list []int) {
	for i, have := range r.have {
		if !have {
			list = append(list, i)
		}
	}
	return list
}

// Finish returns the keys if nothing is missing and they have the name. The error wraps ErrKeys.
func (r *Receiver) Finish(id KeyID) (*Keys, error) {
	//lodge:check multikey/missing-chunks [swap=0=>1] [run=Chunks] [redundant=a missing chunk has
	//  digest 0, which changes the name] incomplete keys are accepted
	if list := r.Missing(); len(list) > 0 {
		return nil, fmt.Errorf("%w: %d of %d chunks are missing", ErrKeys, len(list), len(r.have))
	}
	//lodge:check multikey/keys-name [run=Chunks] received keys need not match their identifier
	if got := IDOf(r.keys.Header(), r.hashes); got != id {
		return nil, fmt.Errorf("%w: their name is %x, not %x", ErrKeys, got, id)
	}
	return r.keys, nil
}
