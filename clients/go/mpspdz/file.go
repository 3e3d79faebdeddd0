package mpspdz

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	bufferBytes = 1 << 18
	// pollPipe is the interval of attempts to open a pipe without a reader.
	pollPipe = 10 * time.Millisecond
)

var (
	// ErrRange reports an element that is not below the prime.
	ErrRange = errors.New("mpspdz: share is not below the prime")
	// ErrPartial reports that a file was closed in the middle of a record.
	ErrPartial = errors.New("mpspdz: the last record is not whole")
	// ErrReaderGone reports that the reader of a pipe closed it before everything was written.
	ErrReaderGone = errors.New("mpspdz: the reader has closed the pipe")
	errClosed     = errors.New("mpspdz: file is closed")
)

// File accepts records of one [Target] in Lodge's encoding, split at any point, and writes them in
// MP-SPDZ's. It is an [io.WriteCloser].
type File struct {
	tree   *Tree
	target Target
	path   string
	pipe   bool
	made   bool // the tree created the pipe and must remove it

	file    *os.File // nil while a pipe waits for its reader
	stop    func() bool
	out     []byte
	half    []byte // the values of the record, in Montgomery form, until their MACs arrive
	cut     []byte // the incomplete element at the end of the data
	at      int    // elements of the record received so far
	per     int    // elements per record
	taken   int64  // complete records
	err     error
	written atomic.Int64 // bytes, including the header
	reading atomic.Bool  // the pipe has a reader
}

// File creates the file of a target under a temporary name; Close renames it. If the target is a
// named pipe, or will be one (see Options.Pipes), the first Write that fills the buffer opens it
// and waits for a reader. File returns [ErrExists] if the name is in use, and [ErrKind] if MP-SPDZ
// has no file for the target.
func (t *Tree) File(target Target) (*File, error) {
	pipe, err := t.Check(target)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &File{tree: t, target: target, path: t.Path(target), pipe: pipe, per: target.elements(t.o.Party)}
	if t.open[f.path] {
		return nil, fmt.Errorf("%w %s, which is being written", ErrExists, f.path)
	}
	if err := t.make(); err != nil {
		return nil, err
	}
	if pipe {
		err = f.makePipe()
	} else {
		f.file, err = os.CreateTemp(t.dir, ".export-*") // mode 0600
	}
	if err != nil {
		return nil, err
	}
	f.out = append(make([]byte, 0, bufferBytes), t.header...)
	f.half = make([]byte, target.values()*t.m.bytes())
	f.cut = make([]byte, 0, t.m.size)
	t.open[f.path] = true
	return f, nil
}

// makePipe creates the named pipe, unless it exists.
func (f *File) makePipe() error {
	info, err := os.Lstat(f.path)
	if err == nil && info.Mode().IsRegular() && f.tree.o.Force {
		if err := os.Remove(f.path); err != nil {
			return err
		}
	} else if err == nil {
		return nil
	}
	if err := mkfifo(f.path); err != nil {
		return err
	}
	f.made = true
	return nil
}

// Path returns the file's final name, which it has after Close.
func (f *File) Path() string { return f.path }

// Pipe reports whether the file is a named pipe.
func (f *File) Pipe() bool { return f.pipe }

// Records returns the number of complete records written to the disk or the pipe. It may be called
// at any time.
func (f *File) Records() int64 {
	return max(0, f.written.Load()-int64(len(f.tree.header))) / int64(f.per*f.tree.m.bytes())
}

// Usable returns how many of Records MP-SPDZ can use, see [Target.Usable].
func (f *File) Usable() int64 { return f.target.Usable(f.Records()) }

// Bytes returns the number of bytes written to the disk or the pipe. It may be called at any time.
func (f *File) Bytes() int64 { return f.written.Load() }

// Write accepts shares: for each record the values, then their MACs, then the plaintext value if
// this party owns the input. Errors are permanent: [ErrRange] for an element that is not below p,
// [ErrReaderGone], the context's, or the file system's.
func (f *File) Write(p []byte) (n int, err error) {
	if f.err != nil {
		return 0, f.err
	}
	size := f.tree.m.size
	for len(p) > 0 {
		element, took := p, size
		if len(f.cut) > 0 || len(p) < size {
			took = min(len(p), size-len(f.cut))
			f.cut = append(f.cut, p[:took]...)
			if len(f.cut) < size {
				return n + took, nil
			}
			element, f.cut = f.cut, f.cut[:0]
		}
		if err := f.take(element[:size]); err != nil {
			f.err = err
			return n, err
		}
		p, n = p[took:], n+took
	}
	return n, nil
}

// take converts one element. A value is held until its MAC arrives.
func (f *File) take(element []byte) error {
	var x [8 * maxLimbs]byte
	width, values := f.tree.m.bytes(), len(f.half)/f.tree.m.bytes()
	if !f.tree.m.convert(x[:], element) {
		return fmt.Errorf("%w: in record %d", ErrRange, f.taken)
	}
	switch {
	case f.at < values:
		copy(f.half[f.at*width:], x[:width])
	case f.at < 2*values:
		f.out = append(f.out, f.half[(f.at-values)*width:(f.at-values+1)*width]...)
		fallthrough
	default:
		f.out = append(f.out, x[:width]...)
	}
	if f.at++; f.at == f.per {
		f.at, f.taken = 0, f.taken+1
	}
	if len(f.out)+2*width > cap(f.out) {
		return f.flush()
	}
	return nil
}

// flush writes the buffer, to a pipe once it has a reader.
func (f *File) flush() error {
	if f.file == nil {
		if err := f.openPipe(); err != nil {
			return err
		}
	}
	n, err := f.file.Write(f.out)
	f.written.Add(int64(n))
	f.out = f.out[:0]
	switch {
	case errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w %s", ErrReaderGone, f.path)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.Cause(f.tree.ctx)
	}
	return err
}

// openPipe waits until a pipe has a reader. It opens the pipe without blocking, so that the end of
// the context ends a Write.
func (f *File) openPipe() error {
	for {
		file, err := os.OpenFile(f.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			if info, err := file.Stat(); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
				return errors.Join(fmt.Errorf("%w %s, which was a pipe", ErrExists, f.path), err, file.Close())
			}
			f.file = file
			f.reading.Store(true)
			f.stop = context.AfterFunc(f.tree.ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) })
			return nil
		}
		if !errors.Is(err, syscall.ENXIO) { // ENXIO: there is no reader yet
			return err
		}
		select {
		case <-f.tree.ctx.Done():
			return context.Cause(f.tree.ctx)
		case <-time.After(pollPipe):
		}
	}
}

// Close completes the file: it writes the buffer and gives a regular file its final name. After an
// error of Write, or in the middle of a record ([ErrPartial]), it acts like Abort and returns the
// error.
func (f *File) Close() error {
	if f.err == nil && (f.at != 0 || len(f.cut) > 0) {
		f.err = fmt.Errorf("%w: %s", ErrPartial, f.path)
	}
	if f.err == nil {
		f.err = f.flush()
	}
	if failed := f.err; failed != nil {
		return errors.Join(failed, f.Abort())
	}
	err := f.release(!f.pipe)
	if f.pipe {
		return errors.Join(err, f.removePipe())
	}
	if err == nil {
		err = publish(f.file.Name(), f.path, f.tree.o.Force)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	return nil
}

// Abort discards the file; data written to a pipe cannot be recalled. After Close it does nothing.
func (f *File) Abort() error {
	if errors.Is(f.err, errClosed) {
		return nil
	}
	err := f.release(false)
	if f.pipe {
		return errors.Join(err, f.removePipe())
	}
	return errors.Join(err, os.Remove(f.file.Name()))
}

// release closes the descriptor and wipes the buffers.
func (f *File) release(sync bool) (err error) {
	f.err = errClosed
	f.reading.Store(false)
	if f.stop != nil {
		f.stop()
	}
	clear(f.half)
	clear(f.cut[:cap(f.cut)])
	clear(f.out[:cap(f.out)])
	if f.file != nil {
		if sync {
			err = f.file.Sync()
		}
		err = errors.Join(err, f.file.Close())
	}
	f.tree.mu.Lock()
	delete(f.tree.open, f.path)
	f.tree.mu.Unlock()
	return err
}

func (f *File) removePipe() error {
	if !f.made {
		return nil
	}
	return os.Remove(f.path)
}
