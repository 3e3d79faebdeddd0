package vault

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// maxOpened is how many records are kept open.
const maxOpened = 256

// openedRecords are records that are read again and again, in the clear, with the sealed bytes that each was opened
// from: whoever reads the same bytes under the same key need not open them once more. There are no secrets in them.
type openedRecords struct {
	mu  sync.Mutex
	all map[string]openedRecord
}

type openedRecord struct {
	sealed []byte
	record any
}

// cloner is a record that may be kept open. A clone shares nothing with it that anybody changes.
type cloner[T any] interface{ Clone() *T }

// reopened gives a record that was opened from just these bytes before, or nil.
func reopened[T any](o *openedRecords, key string, sealed []byte) *T {
	if _, keeps := any((*T)(nil)).(cloner[T]); !keeps {
		return nil
	}
	o.mu.Lock()
	held, ok := o.all[key]
	o.mu.Unlock()
	//lodge:check vault/opened/bytes [drop=!bytes.Equal(held.sealed, sealed)]
	//  [run=TestOpenedRecords] a cached record is returned for changed bytes
	if !ok || !bytes.Equal(held.sealed, sealed) {
		return nil
	}
	c, ok := held.record.(cloner[T])
	if !ok {
		return nil
	}
	//lodge:check vault/opened/apart [swap=c.Clone()=>held.record.(*T)] [run=TestOpenedRecords] a
	//  reader's change to a record changes it for others
	return c.Clone()
}

// keepOpen keeps a record if it is of a kind that is kept.
func keepOpen[T any](o *openedRecords, key string, sealed []byte, record *T) {
	c, keeps := any(record).(cloner[T])
	if !keeps {
		return
	}
	held := openedRecord{bytes.Clone(sealed), c.Clone()}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil || len(o.all) >= maxOpened {
		o.all = map[string]openedRecord{}
	}
	o.all[key] = held
}

func (e *Epoch) Clone() *Epoch {
	c := *e
	c.Galois, c.Members = slices.Clone(e.Galois), slices.Clone(e.Members)
	for i, m := range c.Members {
		c.Members[i] = bytes.Clone(m)
	}
	return &c
}

func (b *Batch) Clone() *Batch {
	c := *b
	c.Quorum, c.Taken, c.Gone, c.Wiped = slices.Clone(b.Quorum), slices.Clone(b.Taken), slices.Clone(b.Gone), slices.Clone(b.Wiped)
	c.Verdict.Signatures = slices.Clone(b.Verdict.Signatures)
	for i, s := range c.Verdict.Signatures {
		c.Verdict.Signatures[i] = bytes.Clone(s)
	}
	return &c
}

func (id *identity) Clone() *identity {
	c := *id
	c.ID, c.Peers = bytes.Clone(id.ID), maps.Clone(id.Peers)
	for p, a := range c.Peers {
		if a != nil {
			again := *a
			c.Peers[p] = &again
		}
	}
	return &c
}
