package stock

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// The shares of a batch lie in segments of whole tuples, each under a separate key, so that the
// shares of some tuples can be erased while others stay. The data blob holds the segments, in
// chunks sealed like those of an object. The key blob begins with a header block like an object's,
// with the batch's key, and has a slot for every segment: where its data begins, and its key,
// sealed under the batch's. Erasing a segment overwrites its slot; erasing a part of one writes the
// rest elsewhere under a fresh key, and then its slot.

const (
	SegmentBytes = 64 << 10 // approximate bytes of shares in a segment, which has at least one tuple
	SlotBytes    = 128      // divides a disk's sector, so that a slot is old or new after a crash
	slotsAtOnce  = 32
)

// layout of a batch's segments.
type layout struct {
	tuple uint64 // bytes of a tuple
	count uint64 // tuples of the batch
}

func (b *Batch) layout() layout { return layout{b.TupleBytes, b.Count} }

// per is how many tuples a segment has; the last may have fewer.
func (l layout) per() uint64 { return max(1, SegmentBytes/max(1, l.tuple)) }

func (l layout) segments() uint64 { return (l.count + l.per() - 1) / l.per() }

// span of a segment, in tuples.
func (l layout) span(segment uint64) Span {
	first := segment * l.per()
	return Span{First: first, Count: min(l.per(), l.count-first)}
}

// sealed is how long n bytes of shares are in chunks.
func SealedSize(n uint64) uint64 {
	chunks := max(1, (n+seal.ChunkSize-1)/seal.ChunkSize)
	return n + chunks*seal.GCMOverhead
}

// Slot says where a segment is and holds its key; a slot of zeros is erased.
// Where a part of a segment is erased, it moves between two places.
type Slot struct {
	Offset, Other uint64
	Key           [seal.KeyLen]byte
}

const (
	NoPlace   = math.MaxUint64
	SlotFixed = 16 // bytes before the nonce
)

func slotPlace(segment uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte("lodge segment "), segment)
}

// Encode seals a slot under the batch's key.
func (s *Slot) Encode(wrap cipher.AEAD, segment uint64) []byte {
	b := make([]byte, SlotFixed+wrap.NonceSize(), SlotBytes)
	binary.LittleEndian.PutUint64(b, s.Offset)
	binary.LittleEndian.PutUint64(b[8:], s.Other)
	rand.Read(b[SlotFixed:])
	b = wrap.Seal(b, b[SlotFixed:], s.Key[:], append(slotPlace(segment), b[:SlotFixed]...))
	return b[:SlotBytes]
}

// DecodeSlot opens a slot; ErrErased when it has been overwritten.
func DecodeSlot(b []byte, wrap cipher.AEAD, segment uint64) (s Slot, err error) {
	erased := true
	for _, x := range b {
		erased = erased && x == 0
	}
	if erased {
		return s, fmt.Errorf("%w: segment %d", vaulterr.ErrErased, segment)
	}
	from := SlotFixed + wrap.NonceSize()
	end := from + seal.KeyLen + wrap.Overhead()
	key, err := wrap.Open(nil, b[SlotFixed:from], b[from:end], append(slotPlace(segment), b[:SlotFixed]...))
	if err != nil {
		return s, vaulterr.ErrCorrupt
	}
	copy(s.Key[:], key)
	clear(key)
	s.Offset, s.Other = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return s, nil
}

// sealSegment encrypts the shares of a segment under a fresh key.
func sealSegment(dst, shares []byte) (out []byte, key [seal.KeyLen]byte, err error) {
	rand.Read(key[:])
	aead, err := seal.ChunkCipher(key[:])
	if err != nil {
		return nil, key, err
	}
	for i := uint64(0); ; i++ {
		n := min(len(shares), seal.ChunkSize)
		last := n == len(shares)
		dst = aead.Seal(dst, seal.ChunkNonce(i, last), shares[:n], nil)
		if shares = shares[n:]; last {
			return dst, key, nil
		}
	}
}

// openSegment decrypts in place.
func openSegment(in []byte, key *[seal.KeyLen]byte) ([]byte, error) {
	aead, err := seal.ChunkCipher(key[:])
	if err != nil {
		return nil, err
	}
	out := in[:0]
	for i := uint64(0); ; i++ {
		n := min(len(in), seal.ChunkSize+seal.GCMOverhead)
		last := n == len(in)
		piece, err := aead.Open(in[:0], seal.ChunkNonce(i, last), in[:n], nil)
		if err != nil {
			return nil, vaulterr.ErrCorrupt
		}
		out = append(out, piece...) // moves to the left by the tags
		if in = in[n:]; last {
			return out, nil
		}
	}
}

// segmentWriter stores the shares of a batch.
type segmentWriter struct {
	v      *Stock
	layout layout
	names  [2]string // of the key blob and the data blob
	data   store.Writer
	Wrap   cipher.AEAD
	slots  []byte // the key blob
	buf    []byte // of the segment being written
	out    []byte
	offset uint64
	size   uint64
	named  [2]bool
	err    error
}

func (v *Stock) CreateSegments(b *Batch) (*segmentWriter, error) {
	w := &segmentWriter{v: v, layout: b.layout(), names: [2]string{b.KeyBlob(), b.DataBlob()}}
	key := make([]byte, seal.KeyLen)
	defer clear(key)
	rand.Read(key)
	var err error
	if w.Wrap, err = chacha20poly1305.NewX(key); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if w.data, err = v.Backend.Create(w.names[1]); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	w.slots = v.ObjectHeader(w.names[0], key)
	w.buf = make([]byte, 0, w.layout.per()*w.layout.tuple)
	return w, nil
}

// Write appends shares.
func (w *segmentWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && w.err == nil {
		k := min(len(p), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, p[:k]...)
		p, n = p[k:], n+k
		if len(w.buf) == cap(w.buf) {
			w.flush()
		}
	}
	return n, w.err
}

// flush writes out the segment in the buffer.
func (w *segmentWriter) flush() {
	if w.err != nil {
		return
	}
	s := Slot{Offset: w.offset, Other: NoPlace}
	w.out, s.Key, w.err = sealSegment(w.out[:0], w.buf)
	if w.err == nil {
		_, w.err = w.data.Write(w.out)
	}
	w.slots = append(w.slots, s.Encode(w.Wrap, uint64(len(w.slots)-seal.HeaderBlock)/SlotBytes)...)
	clear(s.Key[:])
	w.size += uint64(len(w.buf))
	w.offset += uint64(len(w.out))
	clear(w.buf)
	w.buf = w.buf[:0]
}

// commit makes the shares durable: the data before the keys.
func (w *segmentWriter) commit() error {
	if len(w.buf) > 0 {
		w.flush()
	}
	if w.err == nil && w.size != w.layout.count*w.layout.tuple {
		w.err = fmt.Errorf("%w: %d bytes of shares for %d tuples of %d", vaulterr.ErrState, w.size, w.layout.count, w.layout.tuple)
	}
	if w.err == nil {
		w.err = w.data.Commit()
		w.named[1] = w.err == nil
	}
	if w.err == nil {
		w.err = w.commitKeys()
	}
	if w.err != nil {
		w.abort()
	}
	return w.err
}

func (w *segmentWriter) commitKeys() error {
	keys, err := w.v.Backend.Create(w.names[0])
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if _, err := keys.Write(w.slots); err != nil {
		keys.Abort()
		return fmt.Errorf("vault: %w", err)
	}
	if err := keys.Commit(); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	w.named[0] = true
	return nil
}

// abort erases the written data, committed or not.
func (w *segmentWriter) abort() {
	clear(w.buf[:cap(w.buf)])
	if !w.named[1] {
		w.data.Abort()
	}
	for i, named := range w.named {
		if named {
			w.v.EraseObject(w.names[i])
		}
	}
	w.named = [2]bool{}
	if w.err == nil {
		w.err = errors.New("vault: the writer was aborted")
	}
}
