package stock

import (
	"bytes"
	"errors"

	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Segments is how many segments hold the shares of the batch.
func (b *Batch) Segments() int { return int(b.layout().segments()) }

// CheckShares verifies every segment of a batch: erased segments must not decrypt, and all others
// must.
func (v *Stock) CheckShares(b *Batch, find func(where, what string, args ...any), progress func(int)) (checked int, err error) {
	s, err := v.OpenShelf(b)
	if err != nil {
		return 0, err
	}
	defer s.CloseBlobs()
	var buf []byte
	defer func() { clear(buf) }()
	for first := uint64(0); first < s.layout.segments(); first += slotsAtOnce {
		slots, err := s.slots(first)
		if err != nil {
			return checked, err
		}
		for i := first; len(slots) > 0; i, slots = i+1, slots[SlotBytes:] {
			checked++
			span := s.layout.span(i)
			plain, _, err := s.Segment(i, slots[:SlotBytes], buf)
			if err == nil {
				buf = plain[:cap(plain)]
				zeros(b, i, span, plain, find)
				continue
			}
			if erased := errors.Is(err, vaulterr.ErrErased); !erased && !errors.Is(err, vaulterr.ErrCorrupt) {
				return checked, err
			} else if !erased || b.Gone.Within(span) != span.Count {
				find(BatchPrefix+b.ID, "segment %d, tuples from %d on: %v", i, span.First, err)
			}
		}
		progress(int(first))
	}
	return checked, nil
}

// zeros: the erased tuples of a segment that still opens.
func zeros(b *Batch, i uint64, span Span, plain []byte, find func(where, what string, args ...any)) {
	for _, x := range b.Wiped.Clip(span) {
		part := plain[(x.First-span.First)*b.TupleBytes : (x.End()-span.First)*b.TupleBytes]
		if !bytes.Equal(part, make([]byte, len(part))) {
			find(BatchPrefix+b.ID, "segment %d: the shares of tuples from %d on are erased, and still there", i, x.First)
		}
	}
}
