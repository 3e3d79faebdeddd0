package histories

import (
	"errors"
	"sync"

	"github.com/lodge-mpc/lodge/services/store"
)

// fault is the fate of a write.
type fault int

const (
	works     fault = iota
	fails           // is not executed, and the process continues
	doubtful        // is executed, but returns ErrUncertain
	unwritten       // is not executed, and returns ErrUncertain
	before          // the process ends before the write
	after           // the process ends after the write
	half            // the process ends during the write if the store supports that, otherwise before it
	faults
)

func (f fault) String() string {
	return [...]string{"works", "fails", "doubtful", "unwritten", "crash before", "crash after", "crash within"}[f]
}

var (
	errCrash = errors.New("the process has ended")
	errFull  = errors.New("disk full")
)

// sector is the minimum size of an atomic disk write in bytes.
const sector = 512

// faulty wraps a process's store and injects a fault into its nth write. After the end of the
// process all operations fail.
type faulty struct {
	inner store.Store
	died  func() // called once

	mu    sync.Mutex
	armed fault
	left  int // writes before the armed one
	dead  bool
	odd   bool // a write failed, or its outcome is unknown, and the process continued
}

// arm injects the fault into the write after n others.
func (s *faulty) arm(f fault, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.left = f, n
}

func (s *faulty) kill() {
	s.mu.Lock()
	dead := s.dead
	s.dead = true
	s.mu.Unlock()
	if !dead && s.died != nil {
		s.died()
	}
}

func (s *faulty) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errCrash
	}
	return nil
}

func (s *faulty) write(whole func() error, part func()) error {
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return errCrash
	}
	f := s.armed
	if f != works {
		if s.left--; s.left >= 0 {
			f = works
		} else {
			s.armed = works
		}
	}
	s.odd = s.odd || f == fails || f == doubtful || f == unwritten
	s.mu.Unlock()
	switch f {
	case fails:
		return errFull
	case unwritten:
		return store.ErrUncertain
	case doubtful:
		return errors.Join(whole(), store.ErrUncertain)
	case before, half:
		if f == half && part != nil {
			part()
		}
		s.kill()
		return errCrash
	case after:
		err := whole()
		s.kill()
		return errors.Join(err, errCrash)
	}
	if err := whole(); err != nil {
		return err
	}
	return s.alive()
}

func (s *faulty) View(f func(store.Tx) error) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.inner.View(f)
}

// noting is a transaction that records whether it writes: only writing transactions can fail.
type noting struct {
	store.Tx
	wrote bool
}

func (t *noting) Put(key string, value []byte) error {
	t.wrote = true
	return t.Tx.Put(key, value)
}

func (t *noting) Delete(key string) error {
	t.wrote = true
	return t.Tx.Delete(key)
}

var errDry = errors.New("do not commit")

func (s *faulty) Update(f func(store.Tx) error) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	armed := s.armed != works
	s.mu.Unlock()
	if !armed {
		return s.write(func() error { return s.inner.Update(f) }, nil)
	}
	// A trial run shows whether the function writes, and whether it fails by itself.
	var own error
	err := s.inner.Update(func(tx store.Tx) error {
		t := &noting{Tx: tx}
		if own = f(t); own == nil && t.wrote {
			return errDry
		}
		return own
	})
	if !errors.Is(err, errDry) {
		return err
	}
	return s.write(func() error { return s.inner.Update(f) }, nil)
}

type faultyWriter struct {
	store.Writer
	s *faulty
}

func (s *faulty) Create(name string) (store.Writer, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	w, err := s.inner.Create(name)
	return &faultyWriter{w, s}, err
}

func (w *faultyWriter) Commit() error {
	err := w.s.write(w.Writer.Commit, nil)
	if err != nil && !errors.Is(err, store.ErrUncertain) {
		w.Writer.Abort() // aborting does not change committed data
	}
	return err
}

type faultyBlob struct {
	store.Blob
	s *faulty
}

func (s *faulty) Open(name string) (store.Blob, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	b, err := s.inner.Open(name)
	if err != nil {
		return nil, err
	}
	return &faultyBlob{b, s}, nil
}

func (b *faultyBlob) ReadAt(p []byte, off int64) (int, error) {
	if err := b.s.alive(); err != nil {
		return 0, err
	}
	return b.Blob.ReadAt(p, off)
}

func (b *faultyBlob) WriteAt(p []byte, off int64) (n int, err error) {
	err = b.s.write(func() error {
		n, err = b.Blob.WriteAt(p, off)
		return err
	}, func() {
		b.Blob.WriteAt(p[:len(p)/2/sector*sector], off)
	})
	return n, err
}

func (s *faulty) Erase(name string) error {
	return s.write(func() error { return s.inner.Erase(name) }, nil)
}

func (s *faulty) Blobs() ([]string, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return s.inner.Blobs()
}

func (s *faulty) Lineage() string      { return s.inner.Lineage() }
func (s *faulty) Size() (int64, error) { return s.inner.Size() }

func (s *faulty) Healthy() error { return errors.Join(s.alive(), s.inner.Healthy()) }
func (s *faulty) Close() error   { return s.inner.Close() }
