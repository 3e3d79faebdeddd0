package multikey

import (
	"encoding/binary"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/keyset"
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
func (k *Keys) ChunkDigests() [][32]byte { return keyset.ChunkDigests(k.s.Chunks(), k.AppendChunk) }

// ID returns the digest that names the keys.
func (k *Keys) ID() KeyID { return IDOf(k.Header(), k.ChunkDigests()) }

var format = keyset.Format{Tag: "lodge multikey keys 1", Err: ErrKeys}

// IDOf returns the name of keys from their header and the digests of their chunks.
func IDOf(header []byte, chunks [][32]byte) KeyID { return format.Digest(header, chunks) }

// Receiver assembles keys from their chunks.
type Receiver = keyset.Receiver[*Keys]

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
	keys := s.newKeys(owner, HeaderSeed(header))
	return keyset.NewReceiver(format, header, keys, s.Chunks(), keys.decodeChunk), nil
}

// decodeChunk is the inverse of AppendChunk. The error is one of package codec's if the chunk has
// the wrong size.
func (k *Keys) decodeChunk(i int, chunk []byte) error {
	s := k.s
	//lodge:check multikey/chunk-length [run=Chunks] a chunk of the wrong length is accepted
	if err := exactly("chunk", len(chunk), s.ChunkSize(i)); err != nil {
		return err
	}
	from, to, short := s.chunk(i)
	decodeShort(k.short[:short], chunk)
	chunk = chunk[4*short:]
	for row := from; row < to; row++ {
		kernel.Unpack(k.row(row), chunk[:s.elementSize()], ringBits-s.Drop)
		chunk = chunk[s.elementSize():]
	}
	return nil
}
