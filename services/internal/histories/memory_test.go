package histories

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/lodge-mpc/lodge/services/store"
)

// disk holds the persistent content of a store in memory. Values are never modified, only replaced,
// so that a copy is cheap.
type disk struct {
	mu      sync.Mutex
	updates sync.Mutex // serialises updates
	records map[string][]byte
	keys    []string // keys of the records, sorted
	blobs   map[string][]byte
}

func newDisk() *disk { return &disk{records: map[string][]byte{}, blobs: map[string][]byte{}} }

func (d *disk) open() (store.Store, error) { return &memory{disk: d}, nil }

// copy returns a function that restores the present content.
func (d *disk) copy() (putBack func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	records, keys, blobs := d.records, d.keys, maps.Clone(d.blobs)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.records, d.keys, d.blobs = records, keys, maps.Clone(blobs)
	}, nil
}

// inMemory returns a backend on a new disk.
func inMemory() backend {
	d := newDisk()
	return backend{d.open, d.copy}
}

// memory is a store on a disk. All writes are durable immediately.
type memory struct{ *disk }

// transaction holds its changes separately from the records; a nil value is a deletion.
type transaction struct {
	records map[string][]byte
	keys    []string
	changes map[string][]byte // nil: read-only
}

func (t *transaction) Get(key string) ([]byte, error) {
	if v, ok := t.changes[key]; ok {
		return v, nil
	}
	return t.records[key], nil
}

func (t *transaction) GetAll(keys []string) (values [][]byte, err error) {
	for _, key := range keys {
		value, err := t.Get(key)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func (t *transaction) Put(key string, value []byte) error {
	if t.changes == nil {
		return store.ErrReadOnly
	}
	t.changes[key] = append([]byte{}, value...)
	return nil
}

func (t *transaction) Delete(key string) error {
	if t.changes == nil {
		return store.ErrReadOnly
	}
	t.changes[key] = nil
	return nil
}

func (t *transaction) Scan(prefix string, f func(string, []byte) error) error {
	return t.ScanAfter(prefix, "", func(k string, v []byte) (bool, error) { return true, f(k, v) })
}

func (t *transaction) ScanAfter(prefix, after string, f func(string, []byte) (bool, error)) error {
	from, _ := slices.BinarySearch(t.keys, max(prefix, after))
	to := from
	for to < len(t.keys) && strings.HasPrefix(t.keys[to], prefix) {
		to++
	}
	keys := t.keys[from:to]
	var fresh []string
	for k := range t.changes {
		if strings.HasPrefix(k, prefix) && t.records[k] == nil {
			fresh = append(fresh, k)
		}
	}
	if len(fresh) > 0 {
		keys = slices.Concat(keys, fresh)
		slices.Sort(keys)
	}
	for _, k := range keys {
		v, _ := t.Get(k)
		if v == nil || k <= after {
			continue
		}
		if more, err := f(k, v); err != nil || !more {
			return err
		}
	}
	return nil
}

func (m *memory) View(f func(store.Tx) error) error {
	m.mu.Lock()
	t := &transaction{records: m.records, keys: m.keys}
	m.mu.Unlock()
	return f(t)
}

func (m *memory) Update(f func(store.Tx) error) error {
	m.updates.Lock()
	defer m.updates.Unlock()
	m.mu.Lock()
	t := &transaction{records: m.records, keys: m.keys, changes: map[string][]byte{}}
	m.mu.Unlock()
	if err := f(t); err != nil || len(t.changes) == 0 {
		return err
	}
	records, other := maps.Clone(t.records), false
	for k, v := range t.changes {
		_, was := records[k]
		if v == nil {
			delete(records, k)
		} else {
			records[k] = v
		}
		other = other || was != (v != nil)
	}
	keys := t.keys
	if other {
		keys = slices.Sorted(maps.Keys(records))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records, m.keys = records, keys
	return nil
}

type memoryWriter struct {
	m     *memory
	name  string
	b     []byte
	ended bool
}

func (m *memory) Create(name string) (store.Writer, error) {
	return &memoryWriter{m: m, name: name}, nil
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	w.b = append(w.b, b...)
	return len(b), nil
}

func (w *memoryWriter) Commit() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.ended {
		return errors.New("memory: the writer has ended")
	}
	w.ended = true
	if _, ok := w.m.blobs[w.name]; ok {
		return store.ErrExists
	}
	w.m.blobs[w.name] = w.b
	return nil
}

func (w *memoryWriter) Abort() { w.ended = true }

type memoryBlob struct {
	m    *memory
	name string
}

func (m *memory) Open(name string) (store.Blob, error) {
	b := &memoryBlob{m, name}
	_, err := b.content()
	return b, err
}

func (b *memoryBlob) content() ([]byte, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	c, ok := b.m.blobs[b.name]
	if !ok {
		return nil, store.ErrNotFound
	}
	return c, nil
}

func (b *memoryBlob) ReadAt(p []byte, off int64) (int, error) {
	c, err := b.content()
	if err != nil {
		return 0, err
	}
	n := copy(p, c[min(off, int64(len(c))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b *memoryBlob) WriteAt(p []byte, off int64) (int, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	c, ok := b.m.blobs[b.name]
	if !ok {
		return 0, store.ErrNotFound
	}
	if off > int64(len(c)) {
		return 0, store.ErrInvalid
	}
	c = append(slices.Clone(c), make([]byte, max(0, int(off)+len(p)-len(c)))...)
	copy(c[off:], p)
	b.m.blobs[b.name] = c
	return len(p), nil
}

func (b *memoryBlob) Size() (int64, error) {
	c, err := b.content()
	return int64(len(c)), err
}

func (b *memoryBlob) Close() error { return nil }

func (m *memory) Erase(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.blobs, name)
	return nil
}

func (m *memory) Blobs() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.blobs)), nil
}

func (m *memory) Lineage() string { return "" }
func (m *memory) Healthy() error  { return nil }

func (m *memory) Size() (int64, error) { return 0, nil }
func (m *memory) Close() error         { return nil }
