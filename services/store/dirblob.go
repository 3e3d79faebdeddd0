package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A blob of the embedded store is a file. It is written under a temporary name, synced, renamed,
// and the directory synced. Erasing gives it a temporary name first, so that a crash leaves all of
// it or nothing; then it is overwritten and synced before it is removed. (File systems that never
// overwrite in place defeat the overwriting; then destroying the key that sealed the blob is what
// erases.)
const (
	headBytes  = 4096     // overwritten of any blob: the vault has the key of a blob there
	eraseBytes = 16 << 20 // a blob of at most this size is overwritten whole
)

// name is the open file of a blob's name while it is in use.
type name struct {
	use    sync.RWMutex // exclusive: to commit or erase
	write  sync.Mutex   // one WriteAt at a time
	erased bool
	users  int // under directory.mu
}

// acquire gives the name's state, which release gives back.
func (d *directory) acquire(s string) *name {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[s]
	if n == nil {
		n = &name{}
		d.names[s] = n
	}
	n.users++
	return n
}

func (d *directory) release(s string, n *name) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.users--; n.users == 0 && d.names[s] == n {
		delete(d.names, s)
	}
}

// forget makes that whoever comes next finds a new state; readers that hold this one see it erased.
func (d *directory) forget(s string, n *name) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[s] == n {
		delete(d.names, s)
	}
}

type dirWriter struct {
	d    *directory
	name string
	f    *os.File // nil: committed or aborted
	err  error
}

func (d *directory) Create(name string) (Writer, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	d.life.RLock()
	defer d.life.RUnlock()
	if err := d.healthy(); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(d.objects, tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &dirWriter{d: d, name: name, f: f}, nil
}

var errWriterEnded = errors.New("store: the blob's writer has ended")

func (w *dirWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.f == nil {
		return 0, errWriterEnded
	}
	n, err := w.f.Write(b)
	if err != nil {
		w.err = fmt.Errorf("store: %w", err)
	}
	return n, w.err
}

func (w *dirWriter) Commit() error {
	if w.f == nil {
		return errWriterEnded
	}
	d := w.d
	d.life.RLock()
	defer d.life.RUnlock()
	if w.err == nil {
		w.err = d.healthy()
	}
	if w.err == nil {
		if err := w.f.Sync(); err != nil {
			w.err = d.fail(err)
		}
	}
	if w.err != nil {
		w.Abort()
		return w.err
	}
	n := d.acquire(w.name)
	n.use.Lock()
	for n.erased { // by an Erase that was first
		n.use.Unlock()
		d.release(w.name, n)
		n = d.acquire(w.name)
		n.use.Lock()
	}
	defer d.release(w.name, n)
	defer n.use.Unlock()
	return w.rename(filepath.Join(d.objects, w.name))
}

// rename is the last step of Commit.
func (w *dirWriter) rename(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		w.err = ErrExists
	case !errors.Is(err, fs.ErrNotExist):
		w.err = fmt.Errorf("store: %w", err)
	default:
		if err := os.Rename(w.f.Name(), path); err != nil {
			w.err = fmt.Errorf("store: %w", err)
		}
	}
	if w.err != nil {
		w.Abort()
		return w.err
	}
	err = w.f.Close()
	w.f = nil
	if err := errors.Join(syncDir(w.d.objects), err); err != nil {
		return fmt.Errorf("%w: %w", ErrUncertain, w.d.fail(err))
	}
	return nil
}

// The next OpenDir erases files that Abort cannot erase.
func (w *dirWriter) Abort() {
	if w.f == nil {
		return
	}
	_ = w.f.Close()
	_ = eraseFile(w.f.Name())
	w.f = nil
}

type dirBlob struct {
	d    *directory
	name string
	n    *name
	f    *os.File
	once sync.Once
}

func (d *directory) Open(name string) (Blob, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed {
		return nil, ErrClosed
	}
	n := d.acquire(name)
	n.use.RLock()
	defer n.use.RUnlock()
	f, err := os.OpenFile(filepath.Join(d.objects, name), os.O_RDWR, 0)
	if err == nil && !n.erased {
		return &dirBlob{d: d, name: name, n: n, f: f}, nil
	}
	d.release(name, n)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err == nil {
		_ = f.Close()
	}
	return nil, ErrNotFound
}

// begin makes that the blob is not erased until end.
func (b *dirBlob) begin() error {
	b.d.life.RLock()
	b.n.use.RLock()
	var err error
	switch {
	case b.d.closed:
		err = ErrClosed
	case b.n.erased:
		err = ErrNotFound
	}
	if err != nil {
		b.end()
	}
	return err
}

func (b *dirBlob) end() {
	b.n.use.RUnlock()
	b.d.life.RUnlock()
}

func (b *dirBlob) ReadAt(p []byte, off int64) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	defer b.end()
	n, err := b.f.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("store: %w", err)
	}
	return n, err
}

func (b *dirBlob) WriteAt(p []byte, off int64) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	defer b.end()
	b.n.write.Lock()
	defer b.n.write.Unlock()
	if err := b.d.healthy(); err != nil {
		return 0, err
	}
	info, err := b.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	if err := checkWrite(off, info.Size()); err != nil {
		return 0, err
	}
	n, err := b.f.WriteAt(p, off)
	if err != nil {
		return n, fmt.Errorf("store: %w", err)
	}
	if err := b.f.Sync(); err != nil {
		return n, b.d.fail(err)
	}
	return n, nil
}

// checkWrite keeps holes out of blobs.
func checkWrite(off, size int64) error {
	if off < 0 || off > size {
		return fmt.Errorf("%w: write at %d in a blob of %d bytes", ErrInvalid, off, size)
	}
	return nil
}

func (b *dirBlob) Size() (int64, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	defer b.end()
	info, err := b.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return info.Size(), nil
}

func (b *dirBlob) Close() error {
	var err error
	b.once.Do(func() {
		b.d.release(b.name, b.n)
		err = b.f.Close()
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (d *directory) Erase(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	d.life.RLock()
	defer d.life.RUnlock()
	if err := d.healthy(); err != nil {
		return err
	}
	n := d.acquire(name)
	defer d.release(name, n)
	n.use.Lock()
	defer n.use.Unlock()
	if n.erased { // by another Erase; the name may be of a new blob by now
		return nil
	}
	n.erased = true
	defer d.forget(name, n)
	return d.eraseBlob(name)
}

func (d *directory) eraseBlob(name string) error {
	temp := filepath.Join(d.objects, tempPrefix+"erased-"+name)
	err := os.Rename(filepath.Join(d.objects, name), temp)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: %w", err)
	}
	if err := syncDir(d.objects); err != nil { // also for a name that is removed, but not durably
		return d.fail(err)
	}
	if err := eraseFile(temp); err != nil { // the next OpenDir tries again
		return fmt.Errorf("store: %w", err)
	}
	if err := syncDir(d.objects); err != nil {
		return d.fail(err)
	}
	return nil
}

// eraseFile overwrites and removes a file. One that is not there is erased.
func eraseFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = overwrite(f)
	return errors.Join(err, f.Close(), os.Remove(path))
}

func overwrite(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := int64(headBytes)
	if info.Size() <= eraseBytes {
		size = max(size, info.Size())
	}
	zeros := make([]byte, min(size, 1<<20))
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-off)], off); err != nil {
			return err
		}
	}
	return f.Sync()
}

func (d *directory) Blobs() ([]string, error) {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed {
		return nil, ErrClosed
	}
	entries, err := os.ReadDir(d.objects) // in order
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	var names []string
	for _, e := range entries {
		if checkName(e.Name()) == nil && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *directory) Size() (int64, error) {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed {
		return 0, ErrClosed
	}
	info, err := os.Stat(d.records)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	entries, err := os.ReadDir(d.objects)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	size := info.Size()
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // it may be erased meanwhile
			size += info.Size()
		}
	}
	return size, nil
}

// sweep erases blobs that were never committed.
func (d *directory) sweep() error {
	entries, err := os.ReadDir(d.objects)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	for _, e := range entries {
		if !isTemp(e.Name()) {
			continue
		}
		if err := eraseFile(filepath.Join(d.objects, e.Name())); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return syncDir(d.objects)
}
