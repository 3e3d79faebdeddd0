package store

import (
	"fmt"
	"slices"
	"strings"
)

// reader is the lower level of a layer: a transaction of the storage, or a layer.
type reader interface {
	get(key string) ([]byte, error) // nil: absent
	// getAll sets the values of existing keys.
	getAll(keys []string, values [][]byte) error
	// scan goes through the keys with the prefix that are above `after`, in order, until f says
	// stop.
	scan(prefix, after string, f func(key string, value []byte) (more bool, err error)) error
}

// layer holds writes above its reader. Every function of a group has a layer over that of the
// group, so that its writes can be dropped.
type layer struct {
	under  reader
	own    map[string][]byte // nil: deleted
	keys   []string          // of own
	sorted bool              // keys are in order
	size   int               // bytes of keys and values written
}

func newLayer(under reader) *layer {
	return &layer{under: under, own: map[string][]byte{}, sorted: true}
}

// set takes the value over; nil deletes.
func (l *layer) set(key string, value []byte) {
	if _, ok := l.own[key]; !ok {
		l.sorted = l.sorted && (len(l.keys) == 0 || l.keys[len(l.keys)-1] < key)
		l.keys = append(l.keys, key)
	}
	l.own[key] = value
	l.size += len(key) + len(value)
}

// ordered gives the keys written, in order.
func (l *layer) ordered() []string {
	if !l.sorted {
		slices.Sort(l.keys)
		l.sorted = true
	}
	return l.keys
}

// applyTo writes what l holds to another layer, and is not used after.
func (l *layer) applyTo(to *layer) {
	if len(to.keys) == 0 {
		to.own, to.keys, to.sorted, to.size = l.own, l.keys, l.sorted, l.size
		return
	}
	for _, key := range l.keys {
		to.set(key, l.own[key])
	}
}

func (l *layer) get(key string) ([]byte, error) {
	if v, ok := l.own[key]; ok {
		return v, nil
	}
	return l.under.get(key)
}

func (l *layer) getAll(keys []string, values [][]byte) error {
	if len(l.own) == 0 {
		return l.under.getAll(keys, values)
	}
	var rest []string
	var places []int
	for i, key := range keys {
		if v, ok := l.own[key]; ok {
			values[i] = v
		} else {
			rest, places = append(rest, key), append(places, i)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	under := make([][]byte, len(rest))
	if err := l.under.getAll(rest, under); err != nil {
		return err
	}
	for i, at := range places {
		values[at] = under[i]
	}
	return nil
}

func (l *layer) scan(prefix, after string, f func(string, []byte) (bool, error)) error {
	type record struct {
		key   string
		value []byte
	}
	var own []record // as they are now: f may write
	keys := l.ordered()
	from, _ := slices.BinarySearch(keys, max(prefix, after))
	for _, key := range keys[from:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		if key > after {
			own = append(own, record{key, l.own[key]})
		}
	}
	more := true
	// before returns the value below the layer; all of it for a nil one.
	before := func(key *string) (err error) {
		for more && err == nil && len(own) > 0 && (key == nil || own[0].key < *key) {
			r := own[0]
			own = own[1:]
			if r.value != nil {
				more, err = f(r.key, r.value)
			}
		}
		return err
	}
	err := l.under.scan(prefix, after, func(key string, value []byte) (bool, error) {
		if err := before(&key); err != nil || !more {
			return false, err
		}
		if len(own) > 0 && own[0].key == key {
			if value, own = own[0].value, own[1:]; value == nil {
				return true, nil
			}
		}
		var err error
		more, err = f(key, value)
		return more, err
	})
	if err != nil {
		return err
	}
	return before(nil)
}

// transaction is the Tx that a function gets.
type transaction struct {
	reads  reader
	writes *layer // nil: read only
	ended  bool
}

func (t *transaction) check(key string) error {
	if t.ended {
		return ErrEnded
	}
	return checkKey(key)
}

func (t *transaction) Get(key string) ([]byte, error) {
	if err := t.check(key); err != nil {
		return nil, err
	}
	return t.reads.get(key)
}

func (t *transaction) GetAll(keys []string) ([][]byte, error) {
	for _, key := range keys {
		if err := t.check(key); err != nil {
			return nil, err
		}
	}
	values := make([][]byte, len(keys))
	return values, t.reads.getAll(keys, values)
}

func (t *transaction) Put(key string, value []byte) error {
	if err := t.check(key); err != nil {
		return err
	}
	if t.writes == nil {
		return ErrReadOnly
	}
	if len(value) > MaxValue {
		return fmt.Errorf("%w: value of %d bytes; at most %d", ErrInvalid, len(value), MaxValue)
	}
	held := make([]byte, len(value)) // not nil when it is empty
	copy(held, value)
	t.writes.set(key, held)
	return nil
}

func (t *transaction) Delete(key string) error {
	if err := t.check(key); err != nil {
		return err
	}
	if t.writes == nil {
		return ErrReadOnly
	}
	t.writes.set(key, nil)
	return nil
}

func (t *transaction) Scan(prefix string, f func(key string, value []byte) error) error {
	return t.ScanAfter(prefix, "", func(key string, value []byte) (bool, error) {
		return true, f(key, value)
	})
}

func (t *transaction) ScanAfter(prefix, after string, f func(key string, value []byte) (bool, error)) error {
	if t.ended {
		return ErrEnded
	}
	if err := checkText(prefix); err != nil {
		return err
	}
	if err := checkText(after); err != nil {
		return err
	}
	return t.reads.scan(prefix, after, f)
}
