package seal

import (
	"bytes"
	"maps"
	"sync"
)

// MaxOpened is how many records are kept open.
const MaxOpened = 256

// OpenedRecords are records that are read again and again, in the clear, with the sealed bytes that
// each was opened from: whoever reads the same bytes under the same key need not open them once
// more. There are no secrets in them.
type OpenedRecords struct {
	mu  sync.Mutex
	All map[string]openedRecord
}

type openedRecord struct {
	sealed []byte
	record any
}

// cloner is a record that may be kept open. A clone shares nothing with it that anybody changes.
type cloner[T any] interface{ Clone() *T }

// reopened gives a record that was opened from just these bytes before, or nil.
func reopened[T any](o *OpenedRecords, key string, sealed []byte) *T {
	if _, keeps := any((*T)(nil)).(cloner[T]); !keeps {
		return nil
	}
	o.mu.Lock()
	held, ok := o.All[key]
	o.mu.Unlock()
	//lodge:check vault/opened/bytes [tests=./services/store/vault] [drop=!bytes.Equal(held.sealed,
	//  sealed)] [run=TestOpenedRecords] a cached record is returned for changed bytes
	if !ok || !bytes.Equal(held.sealed, sealed) {
		return nil
	}
	c, ok := held.record.(cloner[T])
	if !ok {
		return nil
	}
	//lodge:check vault/opened/apart [tests=./services/store/vault]
	//  [swap=c.Clone()=>held.record.(*T)] [run=TestOpenedRecords] a reader's change to a record
	//  changes it for others
	return c.Clone()
}

// KeepOpen keeps a record if it is of a kind that is kept.
func KeepOpen[T any](o *OpenedRecords, key string, sealed []byte, record *T) {
	c, keeps := any(record).(cloner[T])
	if !keeps {
		return
	}
	held := openedRecord{bytes.Clone(sealed), c.Clone()}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.All == nil || len(o.All) >= MaxOpened {
		o.All = map[string]openedRecord{}
	}
	o.All[key] = held
}

func (id *Identity) Clone() *Identity {
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
