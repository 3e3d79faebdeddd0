package vault

import (
	"bytes"
	"crypto/cipher"
	"errors"
	"fmt"
	"golang.org/x/crypto/chacha20poly1305"
	"io"
	"sync/atomic"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/spans"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// shelf is a batch opened to read or to erase its shares.
type shelf struct {
	layout     layout
	keys, data store.Blob
	wrap       cipher.AEAD
	erasures   *atomic.Uint64 // of segments, in all batches
}

func (v *Vault) openShelf(b *Batch) (*shelf, error) {
	keys, err := v.openBlob(b.keyBlob())
	if err != nil {
		return nil, err
	}
	s := &shelf{layout: b.layout(), keys: keys, erasures: &v.erasures}
	key, err := v.unwrap(b.keyBlob(), keys)
	if err == nil {
		defer clear(key)
		s.wrap, err = chacha20poly1305.NewX(key)
	}
	if err == nil {
		s.data, err = v.openBlob(b.dataBlob())
	}
	if err != nil {
		keys.Close()
		return nil, err
	}
	return s, nil
}

func (s *shelf) close() error { return errors.Join(s.keys.Close(), s.data.Close()) }

// slots reads the sealed slots of segments from first on, at most slotsAtOnce.
func (s *shelf) slots(first uint64) ([]byte, error) {
	n := min(slotsAtOnce, s.layout.segments()-first)
	b := make([]byte, n*slotBytes)
	if err := readFull(s.keys, b, slotAt(first)); err != nil {
		return nil, fmt.Errorf("%w: slots of segments", err)
	}
	return b, nil
}

// segment reads the shares of one, given its sealed slot; the result is within buf when that is large enough.
func (s *shelf) segment(i uint64, sealedSlot, buf []byte) (shares []byte, at slot, err error) {
	at, err = decodeSlot(sealedSlot, s.wrap, i)
	if err != nil {
		return nil, at, err
	}
	n := sealed(s.layout.span(i).Count * s.layout.tuple)
	if uint64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if err := readFull(s.data, buf, int64(at.offset)); err != nil {
		return nil, at, fmt.Errorf("%w: segment %d", err, i)
	}
	shares, err = openSegment(buf, &at.key)
	if err != nil {
		return nil, at, fmt.Errorf("%w: segment %d", err, i)
	}
	return shares, at, nil
}

// segmentReader reads the shares of a span of tuples.
type segmentReader struct {
	*shelf
	left     Span
	readable func(Span) error // refuses tuples whose shares may be erased
	slot     []byte           // sealed slots from first on
	first    uint64
	erasures uint64 // before they were read
	buf, out []byte
}

// read gives the shares of a span.
func (s *shelf) read(span Span, readable func(Span) error) *segmentReader {
	return &segmentReader{shelf: s, left: span, readable: readable}
}

func (r *segmentReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.left.Count == 0 {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

func (r *segmentReader) next() error {
	i := r.left.First / r.layout.per()
	shares, at, err := r.load(i)
	if err != nil {
		return err
	}
	r.buf = shares[:cap(shares)]
	span := r.layout.span(i)
	from := r.left.First - span.First
	n := min(r.left.Count, span.Count-from)
	if at.other != noPlace { // some of its shares are zeros; their record says so since before they were
		if err := r.readable(Span{First: r.left.First, Count: n}); err != nil {
			return err
		}
	}
	r.out = shares[from*r.layout.tuple : (from+n)*r.layout.tuple]
	r.left = Span{First: r.left.First + n, Count: r.left.Count - n}
	return nil
}

// sameSlot is how often a slot is found unchanged before what it leads to is damaged: a slot may be read while it is
// being written.
const sameSlot = 3

// load reads a segment by its slot, of which several are read at a time. A segment that was moved meanwhile, because
// other tuples of it were erased, has another slot.
func (r *segmentReader) load(i uint64) (shares []byte, at slot, err error) {
	if len(r.slot) == 0 || r.erasures != r.shelf.erasures.Load() || i >= r.first+uint64(len(r.slot))/slotBytes {
		if err := r.refill(i); err != nil {
			return nil, at, err
		}
	}
	for same := 0; same < sameSlot; {
		sealedSlot := r.slot[(i-r.first)*slotBytes:][:slotBytes]
		clear(r.buf)
		if shares, at, err = r.segment(i, sealedSlot, r.buf); err == nil {
			return shares, at, nil
		}
		if err := r.refill(i); err != nil {
			return nil, at, err
		}
		if bytes.Equal(sealedSlot, r.slot[:slotBytes]) {
			same++
		}
	}
	return nil, at, err
}

// refill reads slots from one on.
func (r *segmentReader) refill(i uint64) (err error) {
	r.erasures, r.first = r.shelf.erasures.Load(), i
	r.slot, err = r.slots(i)
	return err
}

func (r *segmentReader) Close() error {
	clear(r.buf)
	r.out, r.left = nil, Span{}
	return r.close()
}

// wipe erases the shares of the tuples in done, of which those in old were erased before. Of a segment that is damaged
// it erases all, and says so.
func (s *shelf) wipe(done, old Spans) (damaged Spans, err error) {
	var whole, parts, lost []Span // of segments, and of their tuples
	for i := range s.layout.segments() {
		span := s.layout.span(i)
		switch covered := done.Within(span); {
		case covered == old.Within(span):
		case covered == span.Count:
			whole = append(whole, Span{First: i, Count: 1})
		default:
			parts = append(parts, Span{First: i, Count: 1})
		}
	}
	for _, run := range spans.Of(whole...) {
		if err := s.eraseSlots(run); err != nil {
			return nil, err
		}
	}
	for _, part := range parts {
		err := s.rewrite(part.First, done)
		if errors.Is(err, vaulterr.ErrCorrupt) || errors.Is(err, vaulterr.ErrErased) { // erased: by a call that a crash ended
			lost = append(lost, s.layout.span(part.First))
			err = s.eraseSlots(part)
		}
		if err != nil {
			return nil, err
		}
	}
	return spans.Of(lost...), nil
}

func slotAt(segment uint64) int64 { return int64(headerBlock + segment*slotBytes) }

// eraseSlots overwrites the slots of a run of segments.
func (s *shelf) eraseSlots(run Span) error {
	defer s.erasures.Add(1)
	if _, err := s.keys.WriteAt(make([]byte, run.Count*slotBytes), slotAt(run.First)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// rewrite stores a segment again without the shares of the tuples in done.
func (s *shelf) rewrite(i uint64, done Spans) error {
	b := make([]byte, slotBytes)
	if err := readFull(s.keys, b, slotAt(i)); err != nil {
		return fmt.Errorf("%w: slot of segment %d", err, i)
	}
	shares, at, err := s.segment(i, b, nil)
	if err != nil {
		return err
	}
	defer clear(shares[:cap(shares)])
	span := s.layout.span(i)
	for _, d := range done.Clip(span) {
		clear(shares[(d.First-span.First)*s.layout.tuple : (d.End()-span.First)*s.layout.tuple])
	}
	out, key, err := sealSegment(nil, shares)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if at.other == noPlace {
		size, err := s.data.Size()
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		at.other = uint64(size)
	}
	at = slot{offset: at.other, other: at.offset, key: key}
	defer clear(at.key[:])
	if _, err := s.data.WriteAt(out, int64(at.offset)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	defer s.erasures.Add(1)
	if _, err := s.keys.WriteAt(at.encode(s.wrap, i), slotAt(i)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}
