package vault

import (
	"bytes"
	"errors"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// segments is how many segments hold the shares of the batch.
func (b *Batch) segments() int { return int(b.layout().segments()) }

// checkShares looks at every segment of a batch: what is erased must not open, and the rest must.
func (v *Vault) checkShares(b *Batch, find func(where, what string, args ...any), progress func(int)) (checked int, err error) {
	s, err := v.openShelf(b)
	if err != nil {
		return 0, err
	}
	defer s.close()
	var buf []byte
	defer func() { clear(buf) }()
	for first := uint64(0); first < s.layout.segments(); first += slotsAtOnce {
		slots, err := s.slots(first)
		if err != nil {
			return checked, err
		}
		for i := first; len(slots) > 0; i, slots = i+1, slots[slotBytes:] {
			checked++
			span := s.layout.span(i)
			plain, _, err := s.segment(i, slots[:slotBytes], buf)
			if err == nil {
				buf = plain[:cap(plain)]
				zeros(b, i, span, plain, find)
				continue
			}
			if erased := errors.Is(err, vaulterr.ErrErased); !erased && !errors.Is(err, vaulterr.ErrCorrupt) {
				return checked, err
			} else if !erased || b.Gone.Within(span) != span.Count {
				find(batchPrefix+b.ID, "segment %d, tuples from %d on: %v", i, span.First, err)
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
			find(batchPrefix+b.ID, "segment %d: the shares of tuples from %d on are erased, and still there", i, x.First)
		}
	}
}
