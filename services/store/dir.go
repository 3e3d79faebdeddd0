package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	recordsFile = "records.db"
	objectsDir  = "objects"
	mapped      = 1 << 30 // bytes of address space; a View that lasts holds up updates only when the records outgrow it
)

var bucket = []byte("lodge")

// errNoRecords keeps a lost database from looking like a new store, in which every blob would be
// nobody's.
var errNoRecords = errors.New(
	"store: there are objects but no records.db that names them; put the file back, or empty the directory")

// directory is the embedded store: a bbolt database, and one file a blob.
type directory struct {
	records string // path
	objects string // path
	db      *bbolt.DB
	file    fs.FileInfo // of the database
	raw     *os.File    // the database, for intact
	group   *group

	pageSize int  // of the database, in bytes
	stuck    bool // a lock of bbolt is held for ever

	life   sync.RWMutex // held shared by what writes, so that Close waits
	closed bool

	mu    sync.Mutex
	fault error // after it no writes are allowed: the disk may have lost accepted writes; after damage, nothing is read
	names map[string]*name
}

// OpenDir opens or makes the embedded store in a directory: records.db and objects/. Only one
// process may have it open. Deleted records stay in free pages of records.db until the pages are
// used again.
func OpenDir(dir string) (Store, error) {
	d := &directory{
		records: filepath.Join(dir, recordsFile),
		objects: filepath.Join(dir, objectsDir),
		names:   map[string]*name{},
	}
	if err := os.MkdirAll(d.objects, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if _, err := os.Stat(d.records); errors.Is(err, fs.ErrNotExist) { // refuse before an empty one is made
		if err := d.checkFresh(); err != nil {
			return nil, err
		}
	}
	//lodge:check store/verify-file run=TestDamage a damaged page makes bbolt panic when the store
	//  is opened
	if err := checkFile(d.records, openTime); err != nil {
		return nil, err
	}
	// The list of free pages is rebuilt when the store is opened (0.2 s for a million records)
	// instead of being written with every update. After large updates the list would dominate the
	// bytes that a small update writes.
	err := d.guarded(func() (err error) {
		d.db, err = bbolt.Open(d.records, 0o600, &bbolt.Options{
			Timeout: openTime, FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, InitialMmapSize: mapped,
		})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, d.records)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := d.prepare(dir); err != nil {
		return nil, errors.Join(err, d.closeDB(), closeFile(d.raw))
	}
	d.group = newGroup(d.begin)
	d.group.damage = func(err error) { _ = d.damage(err) }
	return d, nil
}

// openTime is how long OpenDir waits for another process to close the store.
const openTime = time.Second

func closeFile(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// prepare creates the files of a new store, and erases the blobs that were not committed.
func (d *directory) prepare(dir string) error {
	err := d.guarded(func() error {
		return d.db.Update(func(tx *bbolt.Tx) error {
			if tx.Bucket(bucket) != nil {
				return nil
			}
			if err := d.checkFresh(); err != nil {
				return err
			}
			_, err := tx.CreateBucket(bucket)
			return err
		})
	})
	if errors.Is(err, errNoRecords) {
		return err
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if d.raw, err = os.Open(d.records); err == nil {
		d.file, err = d.raw.Stat()
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	d.pageSize = d.db.Info().PageSize
	for _, path := range []string{filepath.Dir(filepath.Clean(dir)), dir} {
		if err := syncDir(path); err != nil {
			return err
		}
	}
	return d.sweep()
}

// checkFresh returns an error if a new store would begin with the objects of an earlier one.
func (d *directory) checkFresh() error {
	entries, err := os.ReadDir(d.objects)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if len(entries) > 0 {
		return errNoRecords
	}
	return nil
}

func (d *directory) Lineage() string { return "" }

// Healthy also finds that the database was removed, or another put in its place, under the running
// process.
func (d *directory) Healthy() error {
	d.life.RLock()
	defer d.life.RUnlock()
	return d.healthy()
}

// The caller of healthy holds life.
func (d *directory) healthy() error {
	if d.closed {
		return ErrClosed
	}
	d.mu.Lock()
	fault := d.fault
	d.mu.Unlock()
	if fault != nil {
		return fault
	}
	now, err := os.Stat(d.records)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, d.file) {
		return fmt.Errorf("%w: %s is another file", ErrLineage, d.records)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// fail records that a write or a sync failed. Afterwards a successful sync does not prove that
// earlier writes are durable, so the directory must be opened again.
func (d *directory) fail(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault == nil {
		d.fault = fmt.Errorf("%w: open the store again: %w", ErrUnsafe, err)
	}
	return d.fault
}

func (d *directory) View(f func(Tx) error) error {
	r, err := d.transaction(false)
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	if err != nil {
		return err
	}
	t := &transaction{reads: r}
	defer func() {
		t.ended = true
		_ = d.guarded(r.tx.Rollback) // of a read-only transaction: its end
	}()
	return d.damage(readable(func() error { return f(t) }))
}

// transaction begins one of bbolt, to write or to read.
func (d *directory) transaction(write bool) (*dirTx, error) {
	if err := d.intact(); err != nil {
		return nil, err
	}
	t := &dirTx{d: d}
	err := d.guarded(func() (err error) {
		if t.tx, err = d.db.Begin(write); err != nil {
			return err
		}
		if t.records = t.tx.Bucket(bucket); t.records == nil {
			err = d.damage(damagedf("%s: its bucket of records is missing", d.records))
		}
		return err
	})
	switch {
	case err == nil:
		return t, nil
	case t.tx == nil && errors.Is(err, ErrDamaged): // Begin panicked
		d.stuck = true
	case t.tx != nil:
		t.rollback()
	}
	return nil, fmt.Errorf("store: %w", err)
}

func (d *directory) Update(f func(Tx) error) error { return d.group.update(f) }

func (d *directory) Close() error {
	d.group.close()
	d.life.Lock()
	defer d.life.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	return errors.Join(d.closeDB(), d.raw.Close())
}

// dirTx is a transaction of the database.
type dirTx struct {
	d       *directory
	tx      *bbolt.Tx
	records *bbolt.Bucket
}

func (d *directory) begin() (writing, error) {
	d.life.RLock()
	defer d.life.RUnlock() // Close ends the group first, so that the database stays
	if err := d.healthy(); err != nil {
		return nil, err
	}
	t, err := d.transaction(true)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *dirTx) get(key string) (value []byte, err error) {
	err = t.d.guarded(func() error {
		value = t.records.Get([]byte(key))
		return nil
	})
	return value, err
}

// getAll goes through the keys in their order, so that pages of one and the next are near each
// other.
func (t *dirTx) getAll(keys []string, values [][]byte) error {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	if !slices.IsSorted(keys) {
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	}
	return t.d.guarded(func() error {
		for _, i := range order {
			values[i] = t.records.Get([]byte(keys[i]))
		}
		return nil
	})
}

func (t *dirTx) scan(prefix, after string, f func(string, []byte) (bool, error)) error {
	c, last := t.records.Cursor(), ""
	var k, v []byte
	move := func() error { // to the next record; the key is copied where a fault is damage
		if c == nil {
			return nil
		}
		if last == "" {
			k, v = c.Seek([]byte(max(prefix, after)))
			if k != nil && string(k) == after {
				k, v = c.Next()
			}
		} else {
			k, v = c.Next()
		}
		if k == nil || !bytes.HasPrefix(k, []byte(prefix)) {
			c = nil
			return nil
		}
		if key := string(k); key > last {
			last = key
			return nil
		}
		return damagedf("%s: the records are not in order after %q", t.d.records, last)
	}
	for {
		if err := t.d.damage(t.d.guarded(move)); err != nil || c == nil {
			return err
		}
		if more, err := f(last, v); err != nil || !more {
			return err
		}
	}
}

func (t *dirTx) broken() error { return nil }

func (t *dirTx) rollback() {
	if t.d.guarded(t.tx.Rollback) != nil { // the transaction is open, so only damage can make it fail
		t.d.stuck = true
	}
}

func (t *dirTx) commit(writes *layer) error {
	err := t.d.guarded(func() error { return t.write(writes) })
	if err != nil {
		t.rollback()
		return fmt.Errorf("store: %w", err)
	}
	before := t.tx.ID() - 1
	err = t.d.guarded(t.tx.Commit)
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrDamaged) { // it panics before it writes anything
		t.rollback()
		return fmt.Errorf("store: %w", err)
	}
	// Once the root that names the new pages may be on the disk, the outcome is in doubt. Before
	// that, the update did not take place; a full disk shows then, and the store is as it was.
	// After an error of the disk itself nothing is sure.
	took := true
	if r, beginErr := t.d.transaction(false); beginErr == nil {
		took = r.tx.ID() != before
		r.rollback()
	}
	if !took && !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("store: %w", err)
	}
	err = t.d.fail(err)
	if took {
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}

// write puts writes into the transaction.
func (t *dirTx) write(writes *layer) error {
	for _, key := range writes.ordered() {
		var err error
		if value := writes.own[key]; value == nil {
			err = t.records.Delete([]byte(key))
		} else {
			err = t.records.Put([]byte(key), value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// isTemp tells the file of an unfinished blob.
func isTemp(file string) bool { return strings.HasPrefix(file, tempPrefix) }
