package stock

import (
	"errors"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/spans"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Owed is that shares of a batch are yet to be erased. Whole segments of masks are erased by the
// next sweep, and those of which only a part is spent may wait until a time, so that a stream of
// decryptions does not rewrite a segment for each.
type Owed struct{ until time.Time }

// Settle is how long a segment with spent masks may wait for the rest of it to be spent.
const Settle = time.Minute

// Owe notes that shares of a batch are to be erased. An earlier time that was noted stays.
func (v *Stock) Owe(id string, until time.Time) *Owed {
	for {
		now := &Owed{until}
		old, there := v.Unwiped.LoadOrStore(id, now)
		if !there {
			return now
		}
		if x := old.(*Owed); x.until.Before(until) {
			now.until = x.until
		}
		if v.Unwiped.CompareAndSwap(id, old, now) {
			return now
		}
	}
}

// Reading has the masks that are recorded as gone and are being read for the decryption that has
// spent them. They are not erased meanwhile.
type Reading struct {
	mu sync.Mutex
	by map[string][]*Span // of batches
}

// Begin is before they are recorded as gone, and end when they are read.
func (r *Reading) Begin(batch string, span Span) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string][]*Span{}
	}
	mine := &span
	r.by[batch] = append(r.by[batch], mine)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		var left []*Span
		for _, x := range r.by[batch] {
			if x != mine {
				left = append(left, x)
			}
		}
		if r.by[batch] = left; len(left) == 0 {
			delete(r.by, batch)
		}
	}
}

// of a batch.
func (r *Reading) of(batch string) Spans {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Span
	for _, x := range r.by[batch] {
		all = append(all, *x)
	}
	return spans.Of(all...)
}

// erasable gives the tuples of a batch that are to be erased now, with those that are already, and
// whether others wait.
func (v *Stock) erasable(b *Batch, due bool) (gone Spans, waits bool) {
	//lodge:check vault/masks/reading [tests=./services/store/vault]
	//  [swap=b.Gone.AndNot(v.Reading.of(b.ID))=>b.Gone] [run=TestSweepWhileReading] masks are
	//  erased while they are read
	gone = b.Gone.AndNot(v.Reading.of(b.ID))
	if !b.Masks() || due {
		return gone, false
	}
	l := b.layout()
	var whole []Span
	for _, x := range gone.AndNot(b.Wiped) {
		for i := x.First / l.per(); i <= (x.End()-1)/l.per(); i++ {
			if span := l.span(i); gone.Within(span) == span.Count {
				whole = append(whole, span)
			}
		}
	}
	now := b.Wiped.Or(spans.Of(whole...))
	return now, now.Count() < gone.Count()
}

// Wipe erases the shares of the tuples that a batch records as gone, and records that it has.
// Tuples whose shares cannot be told from those, because their segment is damaged, go with them.
func (v *Stock) Wipe(id string) (err error) {
	v.wiping.Lock()
	defer v.wiping.Unlock()
	o, due := v.owes(id)
	waits := false
	defer func() {
		switch {
		case err != nil:
			//lodge:check vault/masks/again [tests=./services/store/vault]
			//  [run=TestSweepOfMasksFails] a failed erasure is not repeated
			v.Owe(id, time.Time{})
		case !waits:
			v.Unwiped.CompareAndDelete(id, o) // unless more came meanwhile
		}
	}()
	b, err := v.Batch(id)
	if err != nil {
		return err
	}
	blobs := []string{b.KeyBlob(), b.DataBlob()}
	if b.State == BatchConsumed || b.State == BatchRevoked {
		return v.EraseObjects(blobs)
	}
	var gone Spans
	gone, waits = v.erasable(&b, due)
	if gone.Count() == b.Wiped.Count() {
		return nil
	}
	whole := gone.Count() == b.Count
	var damaged Spans
	if !whole {
		if damaged, err = v.wipeShares(&b, gone); err != nil {
			return err
		}
	}
	err = v.Advance(func(tx store.Tx) error {
		b, err := v.BatchIn(tx, id)
		if err != nil || b.State != BatchAvailable {
			return err
		}
		b.Wiped = gone
		b.Lost += damaged.AndNot(b.Taken).Count()
		b.Taken, b.Gone, b.Wiped = b.Taken.Or(damaged), b.Gone.Or(damaged), b.Wiped.Or(damaged)
		if whole = b.Wiped.Count() == b.Count; whole {
			b.State = BatchConsumed
			if err := dropMasks(tx, b); err != nil {
				return err
			}
		}
		return seal.Put(v.Store, tx, BatchPrefix+id, b)
	})
	if err != nil || !whole {
		return err
	}
	return v.EraseObjects(blobs)
}

// owes returns the pending erasure of a batch, and whether all of it is due. Tuples that are added
// later may wait again.
func (v *Stock) owes(id string) (o *Owed, due bool) {
	for {
		was, _ := v.Unwiped.LoadOrStore(id, &Owed{})
		if o = was.(*Owed); o.until.After(v.Clock()) {
			return o, false
		}
		o = &Owed{until: v.Clock().Add(Settle)}
		if v.Unwiped.CompareAndSwap(id, was, o) {
			return o, true
		}
	}
}

func (v *Stock) wipeShares(b *Batch, gone Spans) (damaged Spans, err error) {
	s, err := v.OpenShelf(b)
	if errors.Is(err, vaulterr.ErrErased) { // revoked meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.CloseBlobs()
	return s.wipe(gone, b.Wiped)
}

func (v *Stock) wipeAll(batches []string) (err error) {
	for _, b := range batches {
		err = errors.Join(err, v.Wipe(b))
	}
	return err
}

// WipePending does all pending erasures.
func (v *Stock) WipePending() error {
	var batches []string
	v.Unwiped.Range(func(id, _ any) bool {
		batches = append(batches, id.(string))
		return true
	})
	return v.wipeAll(batches)
}
