package vault

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// The shares of a batch lie in segments of whole tuples, each under a key of
// its own, so that those of some tuples can be erased while others stay. The
// data blob holds the segments, in chunks sealed like those of an object. The
// key blob begins with a header block like an object's, with the batch's key,
// and has a slot for every segment: where its data begins, and its key, sealed
// under the batch's. Erasing a segment overwrites its slot; erasing a part of
// one writes the rest elsewhere under a fresh key, and then its slot.

const (
	segmentBytes = 64 << 10 // a segment has about so many bytes of shares, and at least a tuple
	slotBytes    = 128      // divides a disk's sector, so that a slot is old or new after a crash
	slotsAtOnce  = 32
)

// layout of a batch's segments.
type layout struct {
	tuple uint64 // bytes of a tuple
	count uint64 // tuples of the batch
}

func (b *Batch) layout() layout { return layout{b.TupleBytes, b.Count} }

// per is how many tuples a segment has; the last may have fewer.
func (l layout) per() uint64 { return max(1, segmentBytes/max(1, l.tuple)) }

func (l layout) segments() uint64 { return (l.count + l.per() - 1) / l.per() }

// span of a segment, in tuples.
func (l layout) span(segment uint64) Span {
	first := segment * l.per()
	return Span{First: first, Count: min(l.per(), l.count-first)}
}

// sealed is how long n bytes of shares are in chunks.
func sealed(n uint64) uint64 {
	chunks := max(1, (n+chunkSize-1)/chunkSize)
	return n + chunks*gcmOverhead
}

// slot says where a segment is and holds its key; a slot of zeros is erased.
// Where a part of a segment is erased, it moves between two places.
type slot struct {
	offset, other uint64
	key           [keyLen]byte
}

const (
	noPlace   = math.MaxUint64
	slotFixed = 16 // bytes before the nonce
)

func slotPlace(segment uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte("lodge segment "), segment)
}

// encode seals a slot under the batch's key.
func (s *slot) encode(wrap cipher.AEAD, segment uint64) []byte {
	b := make([]byte, slotFixed+wrap.NonceSize(), slotBytes)
	binary.LittleEndian.PutUint64(b, s.offset)
	binary.LittleEndian.PutUint64(b[8:], s.other)
	rand.Read(b[slotFixed:])
	b = wrap.Seal(b, b[slotFixed:], s.key[:], append(slotPlace(segment), b[:slotFixed]...))
	return b[:slotBytes]
}

// decodeSlot opens a slot; ErrErased when it has been overwritten.
func decodeSlot(b []byte, wrap cipher.AEAD, segment uint64) (s slot, err error) {
	erased := true
	for _, x := range b {
		erased = erased && x == 0
	}
	if erased {
		return s, fmt.Errorf("%w: segment %d", vaulterr.ErrErased, segment)
	}
	from := slotFixed + wrap.NonceSize()
	end := from + keyLen + wrap.Overhead()
	key, err := wrap.Open(nil, b[slotFixed:from], b[from:end], append(slotPlace(segment), b[:slotFixed]...))
	if err != nil {
		return s, vaulterr.ErrCorrupt
	}
	copy(s.key[:], key)
	clear(key)
	s.offset, s.other = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return s, nil
}

// sealSegment encrypts the shares of a segment under a fresh key.
func sealSegment(dst, shares []byte) (out []byte, key [keyLen]byte, err error) {
	rand.Read(key[:])
	aead, err := chunkCipher(key[:])
	if err != nil {
		return nil, key, err
	}
	for i := uint64(0); ; i++ {
		n := min(len(shares), chunkSize)
		last := n == len(shares)
		dst = aead.Seal(dst, chunkNonce(i, last), shares[:n], nil)
		if shares = shares[n:]; last {
			return dst, key, nil
		}
	}
}

// openSegment decrypts in place.
func openSegment(in []byte, key *[keyLen]byte) ([]byte, error) {
	aead, err := chunkCipher(key[:])
	if err != nil {
		return nil, err
	}
	out := in[:0]
	for i := uint64(0); ; i++ {
		n := min(len(in), chunkSize+gcmOverhead)
		last := n == len(in)
		piece, err := aead.Open(in[:0], chunkNonce(i, last), in[:n], nil)
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
	v      *Vault
	layout layout
	names  [2]string // of the key blob and the data blob
	data   store.Writer
	wrap   cipher.AEAD
	slots  []byte // the key blob
	buf    []byte // of the segment being written
	out    []byte
	offset uint64
	size   uint64
	named  [2]bool
	err    error
}

func (v *Vault) createSegments(b *Batch) (*segmentWriter, error) {
	w := &segmentWriter{v: v, layout: b.layout(), names: [2]string{b.keyBlob(), b.dataBlob()}}
	key := make([]byte, keyLen)
	defer clear(key)
	rand.Read(key)
	var err error
	if w.wrap, err = chacha20poly1305.NewX(key); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	if w.data, err = v.store.Create(w.names[1]); err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	w.slots = v.header(w.names[0], key)
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
	s := slot{offset: w.offset, other: noPlace}
	w.out, s.key, w.err = sealSegment(w.out[:0], w.buf)
	if w.err == nil {
		_, w.err = w.data.Write(w.out)
	}
	w.slots = append(w.slots, s.encode(w.wrap, uint64(len(w.slots)-headerBlock)/slotBytes)...)
	clear(s.key[:])
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
	keys, err := w.v.store.Create(w.names[0])
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

// abort erases what was written, committed or not.
func (w *segmentWriter) abort() {
	clear(w.buf[:cap(w.buf)])
	if !w.named[1] {
		w.data.Abort()
	}
	for i, named := range w.named {
		if named {
			w.v.erase(w.names[i])
		}
	}
	w.named = [2]bool{}
	if w.err == nil {
		w.err = errors.New("vault: the writer was aborted")
	}
}
