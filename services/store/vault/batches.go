package vault

import (
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/spans"
)

// openBatches are the records of batches within one transaction. Each is read once, and written once by flush, however
// many ranges of it there are: a record with a hundred thousand spans takes tens of milliseconds to open and to seal,
// and meanwhile nobody else writes.
type openBatches struct {
	v  *Vault
	tx store.Tx
	by map[string]*openBatch
}

// openBatch is the record of a batch, and what flush is to do with it.
type openBatch struct {
	*Batch
	gone    []Span // from now on, which flush adds to Taken and Gone
	changed bool
}

func (v *Vault) openBatches(tx store.Tx) *openBatches {
	return &openBatches{v, tx, map[string]*openBatch{}}
}

func (o *openBatches) get(id string) (*openBatch, error) {
	if b := o.by[id]; b != nil {
		return b, nil
	}
	b, err := o.v.batch(o.tx, id)
	if err != nil {
		return nil, err
	}
	o.by[id] = &openBatch{Batch: b}
	return o.by[id], nil
}

// of are the ranges of a reservation, as tuples of each batch.
func (o *openBatches) of(ranges []Range) (map[*openBatch]Spans, error) {
	list := map[*openBatch][]Span{}
	for _, x := range ranges {
		b, err := o.get(x.Batch)
		if err != nil {
			return nil, err
		}
		list[b] = append(list[b], x.Span)
	}
	out := make(map[*openBatch]Spans, len(list))
	for b, s := range list {
		out[b] = spans.Of(s...)
	}
	return out, nil
}

// ending are the batches with shares to erase once the transaction is done.
func (o *openBatches) ending() (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(o.by)) {
		if len(o.by[id].gone) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// flush writes what changed.
func (o *openBatches) flush() error {
	for _, id := range slices.Sorted(maps.Keys(o.by)) {
		b := o.by[id]
		if len(b.gone) > 0 {
			gone := spans.Of(b.gone...)
			b.Taken, b.Gone, b.changed = b.Taken.Or(gone), b.Gone.Or(gone), true
		}
		if !b.changed {
			continue
		}
		if err := put(o.v, o.tx, batchPrefix+id, b.Batch); err != nil {
			return err
		}
	}
	return nil
}
