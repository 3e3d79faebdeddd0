package stock

import (
	"bytes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/spans"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// shelf is a batch opened to read or to erase its shares.
type shelf struct {
	layout     layout
	keys, data store.Blob
	wrap       cipher.AEAD
	erasures   *atomic.Uint64 // of segments, in all batches
}

func (v *Stock) OpenShelf(b *Batch) (*shelf, error) {
	keys, err := v.OpenBlob(b.KeyBlob())
	if err != nil {
		return nil, err
	}
	s := &shelf{layout: b.layout(), keys: keys, erasures: &v.erasures}
	key, err := v.UnwrapKey(b.KeyBlob(), keys)
	if err == nil {
		defer clear(key)
		s.wrap, err = chacha20poly1305.NewX(key)
	}
	if err == nil {
		s.data, err = v.OpenBlob(b.DataBlob())
	}
	if err != nil {
		keys.Close()
		return nil, err
	}
	return s, nil
}

func (s *shelf) CloseBlobs() error { return errors.Join(s.keys.Close(), s.data.Close()) }

// slots reads the sealed slots of segments from first on, at most slotsAtOnce.
func (s *shelf) slots(first uint64) ([]byte, error) {
	n := min(slotsAtOnce, s.layout.segments()-first)
	b := make([]byte, n*SlotBytes)
	if err := seal.ReadFull(s.keys, b, SlotAt(first)); err != nil {
		return nil, fmt.Errorf("%w: slots of segments", err)
	}
	return b, nil
}

// Segment reads the shares of one, given its sealed slot; the result is within buf when that is
// large enough.
func (s *shelf) Segment(i uint64, sealedSlot, buf []byte) (shares []byte, at Slot, err error) {
	at, err = DecodeSlot(sealedSlot, s.wrap, i)
	if err != nil {
		return nil, at, err
	}
	n := SealedSize(s.layout.span(i).Count * s.layout.tuple)
	if uint64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if err := seal.ReadFull(s.data, buf, int64(at.Offset)); err != nil {
		return nil, at, fmt.Errorf("%w: segment %d", err, i)
	}
	shares, err = openSegment(buf, &at.Key)
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
func (s *shelf) ReadSpan(span Span, readable func(Span) error) *segmentReader {
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
	if at.Other != NoPlace { // some of its shares are zeros; their record says so since before they were
		if err := r.readable(Span{First: r.left.First, Count: n}); err != nil {
			return err
		}
	}
	r.out = shares[from*r.layout.tuple : (from+n)*r.layout.tuple]
	r.left = Span{First: r.left.First + n, Count: r.left.Count - n}
	return nil
}

// sameSlot is how often a slot must be read unchanged before its segment counts as damaged: a slot
// may be read while it is being written.
const sameSlot = 3

// load reads a segment by its slot, of which several are read at a time. A segment that was moved
// meanwhile, because other tuples of it were erased, has another slot.
func (r *segmentReader) load(i uint64) (shares []byte, at Slot, err error) {
	if len(r.slot) == 0 || r.erasures != r.shelf.erasures.Load() || i >= r.first+uint64(len(r.slot))/SlotBytes {
		if err := r.refill(i); err != nil {
			return nil, at, err
		}
	}
	for same := 0; same < sameSlot; {
		sealedSlot := r.slot[(i-r.first)*SlotBytes:][:SlotBytes]
		clear(r.buf)
		if shares, at, err = r.Segment(i, sealedSlot, r.buf); err == nil {
			return shares, at, nil
		}
		if err := r.refill(i); err != nil {
			return nil, at, err
		}
		if bytes.Equal(sealedSlot, r.slot[:SlotBytes]) {
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
	return r.CloseBlobs()
}

// wipe erases the shares of the tuples in done, of which those in old were erased before. Of a
// segment that is damaged it erases all, and says so.
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

func SlotAt(segment uint64) int64 { return int64(seal.HeaderBlock + segment*SlotBytes) }

// eraseSlots overwrites the slots of a run of segments.
func (s *shelf) eraseSlots(run Span) error {
	defer s.erasures.Add(1)
	if _, err := s.keys.WriteAt(make([]byte, run.Count*SlotBytes), SlotAt(run.First)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// rewrite stores a segment again without the shares of the tuples in done.
func (s *shelf) rewrite(i uint64, done Spans) error {
	b := make([]byte, SlotBytes)
	if err := seal.ReadFull(s.keys, b, SlotAt(i)); err != nil {
		return fmt.Errorf("%w: slot of segment %d", err, i)
	}
	shares, at, err := s.Segment(i, b, nil)
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
	if at.Other == NoPlace {
		size, err := s.data.Size()
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		at.Other = uint64(size)
	}
	at = Slot{Offset: at.Other, Other: at.Offset, Key: key}
	defer clear(at.Key[:])
	if _, err := s.data.WriteAt(out, int64(at.Offset)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	defer s.erasures.Add(1)
	if _, err := s.keys.WriteAt(at.Encode(s.wrap, i), SlotAt(i)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}
