package stock

import (
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/spans"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// openBatches are the records of batches within one transaction. Each is read once, and written
// once by flush, however many ranges of it there are: a record with a hundred thousand spans takes
// tens of milliseconds to open and to seal, and meanwhile nobody else writes.
type openBatches struct {
	v  *Stock
	tx store.Tx
	by map[string]*openBatch
}

// openBatch is the record of a batch, and what flush is to do with it.
type openBatch struct {
	*Batch
	gone    []Span // from now on, which flush adds to Taken and Gone
	changed bool
}

func (v *Stock) openBatches(tx store.Tx) *openBatches {
	return &openBatches{v, tx, map[string]*openBatch{}}
}

func (o *openBatches) get(id string) (*openBatch, error) {
	if b := o.by[id]; b != nil {
		return b, nil
	}
	b, err := o.v.BatchIn(o.tx, id)
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
		if err := seal.Put(o.v.Store, o.tx, BatchPrefix+id, b.Batch); err != nil {
			return err
		}
	}
	return nil
}

// Tenants lists, in order, the tenants that have a MAC key or a batch under an epoch, in whatever
// state.
func (v *Stock) Tenants(epoch uint64) ([]string, error) {
	found := map[string]bool{}
	err := v.Backend.View(func(tx store.Tx) error {
		keys, err := seal.List[keys.MACKey](v.Store, tx, keys.MACPrefix)
		if err != nil {
			return err
		}
		for _, k := range keys {
			found[k.Tenant] = found[k.Tenant] || k.Epoch == epoch
		}
		batches, err := seal.List[Batch](v.Store, tx, BatchPrefix)
		for _, b := range batches {
			if b != nil && b.Tenant != "" { // masks have none
				found[b.Tenant] = found[b.Tenant] || b.Epoch == epoch
			}
		}
		return err
	})
	maps.DeleteFunc(found, func(_ string, under bool) bool { return !under })
	return slices.Sorted(maps.Keys(found)), err
}
