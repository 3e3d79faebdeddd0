package vault

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// memory is a store in memory whose storage can fail. Its disk outlives it: open it again on the
// same disk.
type memory struct {
	*disk
	mu   sync.Mutex
	dead error // the process has ended
}

// disk is what lasts.
type disk struct {
	records map[string][]byte
	blobs   map[string][]byte
	lineage string
	writes  int                                 // that were tried, from the start or a reset
	fault   func(write int, where string) fault // nil: never
}

// fault is the outcome of a write.
type fault int

const (
	works     fault = iota
	fails           // does not take place, and the process goes on
	doubtful        // takes place, and is answered with ErrUncertain
	unwritten       // does not take place, and is answered with ErrUncertain
	before          // the process ends before it takes place
	after           // the process ends when it has taken place
	half            // the process ends in the middle of the write if possible, otherwise before
)

var (
	errCrash = errors.New("the process has ended")
	errFull  = errors.New("disk full")
)

func newDisk() *disk { return &disk{records: map[string][]byte{}, blobs: map[string][]byte{}} }

func (d *disk) open(t testing.TB, key *seal.Key) *Vault {
	t.Helper()
	v, err := OpenIn(&memory{disk: d}, key)
	must(t, err)
	return v
}

// inMemory is a vault that needs no disk.
func inMemory(t testing.TB) *Vault {
	t.Helper()
	return newDisk().open(t, &seal.Key{})
}

// write does a write, or fails with a fault.
func (m *memory) write(where string, whole, part func()) error {
	f := works
	if m.fault != nil {
		f = m.fault(m.writes, where)
	}
	m.writes++
	switch f {
	case fails:
		return errFull
	case unwritten:
		return store.ErrUncertain
	case before:
		m.dead = errCrash
		return errCrash
	case half:
		part()
		m.dead = errCrash
		return errCrash
	}
	whole()
	if f == doubtful {
		return store.ErrUncertain
	}
	if f == after {
		m.dead = errCrash
	}
	return m.dead
}

func nothing() {}

type memoryTx struct {
	records map[string][]byte
	write   bool
}

func (t *memoryTx) Get(key string) ([]byte, error) { return t.records[key], nil }

func (t *memoryTx) GetAll(keys []string) (values [][]byte, err error) {
	for _, key := range keys {
		value, err := t.Get(key)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func (t *memoryTx) Put(key string, value []byte) error {
	if !t.write {
		return store.ErrReadOnly
	}
	t.records[key] = append([]byte{}, value...)
	return nil
}

func (t *memoryTx) Delete(key string) error {
	if !t.write {
		return store.ErrReadOnly
	}
	delete(t.records, key)
	return nil
}

func (t *memoryTx) Scan(prefix string, f func(string, []byte) error) error {
	return t.ScanAfter(prefix, "", func(k string, v []byte) (bool, error) { return true, f(k, v) })
}

func (t *memoryTx) ScanAfter(prefix, after string, f func(string, []byte) (bool, error)) error {
	for _, k := range slices.Sorted(maps.Keys(t.records)) {
		if strings.HasPrefix(k, prefix) && k > after {
			if more, err := f(k, t.records[k]); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

func (m *memory) View(f func(store.Tx) error) error {
	m.mu.Lock()
	records, dead := m.records, m.dead // an update makes another map
	m.mu.Unlock()
	if dead != nil {
		return dead
	}
	return f(&memoryTx{records: records})
}

func (m *memory) Update(f func(store.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != nil {
		return m.dead
	}
	t := &memoryTx{records: maps.Clone(m.records), write: true}
	if err := f(t); err != nil {
		return err
	}
	if maps.EqualFunc(t.records, m.records, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	return m.write("update", func() { m.records = t.records }, nothing)
}

type memoryWriter struct {
	m     *memory
	name  string
	b     []byte
	ended bool
}

func (m *memory) Create(name string) (store.Writer, error) {
	return &memoryWriter{m: m, name: name}, m.dead
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	w.b = append(w.b, b...)
	return len(b), nil
}

func (w *memoryWriter) Commit() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if _, ok := w.m.blobs[w.name]; ok {
		return store.ErrExists
	}
	if w.m.dead != nil || w.ended {
		return errCrash
	}
	w.ended = true
	return w.m.write("commit", func() { w.m.blobs[w.name] = w.b }, nothing)
}

func (w *memoryWriter) Abort() { w.ended = true }

type memoryBlob struct {
	m    *memory
	name string
}

func (m *memory) Open(name string) (store.Blob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blobs[name]; !ok && m.dead == nil {
		return nil, store.ErrNotFound
	}
	return &memoryBlob{m, name}, m.dead
}

// The caller of content holds mu.
func (b *memoryBlob) content() ([]byte, error) {
	if b.m.dead != nil {
		return nil, b.m.dead
	}
	c, ok := b.m.blobs[b.name]
	if !ok {
		return nil, store.ErrNotFound
	}
	return c, nil
}

func (b *memoryBlob) ReadAt(p []byte, off int64) (int, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
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
	c, err := b.content()
	if err != nil {
		return 0, err
	}
	put := func(n int) func() {
		return func() {
			c = append(c, make([]byte, max(0, int(off)+n-len(c)))...)
			copy(c[off:], p[:n])
			b.m.blobs[b.name] = c
		}
	}
	return len(p), b.m.write("write", put(len(p)), put(len(p)/2/stock.SlotBytes*stock.SlotBytes)) // a sector is written or not
}

func (b *memoryBlob) Size() (int64, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	c, err := b.content()
	return int64(len(c)), err
}

func (b *memoryBlob) Close() error { return nil }

func (m *memory) Erase(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blobs[name]; !ok || m.dead != nil {
		return m.dead
	}
	return m.write("erase", func() { delete(m.blobs, name) }, nothing)
}

func (m *memory) Blobs() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.blobs)), m.dead
}

func (m *memory) Lineage() string { return m.lineage }

func (m *memory) Healthy() error { return m.dead }

func (m *memory) Size() (int64, error) { return 0, nil }

func (m *memory) Close() error { return nil }
