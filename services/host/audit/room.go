package audit

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/lodge-mpc/lodge/services/store/disk"
)

// An entry about a delivery must be durable before the first byte is sent, and is written after the
// delivery was recorded, which consumes tuples. Hold makes sure beforehand that the disk has space
// for the entry: the file system allocates blocks after the end of the file, which later writes
// use.

const (
	roomStep  = 256 << 10 // bytes to allocate at once, if the disk has that much space
	roomSpare = 1 << 20   // bytes that must be free where blocks cannot be allocated beforehand
)

// room tracks how much of the last file is allocated.
type room struct{ until int64 } // offset in bytes

// noteEscape is the largest number of bytes that one byte of a note takes in JSON.
const noteEscape = 6

// Hold reserves disk space for an entry like e; the event may differ, and so may the note if e has
// one. The space stays reserved until the caller calls release. If the log cannot be written now,
// Hold returns the same error as Append.
func (l *Log) Hold(e Entry) (release func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	e.Version, e.Party, e.Seq, e.Time = version, l.opts.Party, math.MaxUint64, time.Unix(1<<33, 999_999_999).UTC()
	if err := e.validate(); err != nil {
		return func() {}, err
	}
	line, err := seal(&e)
	if err != nil {
		return func() {}, err
	}
	n := int64(len(line)+1) + int64(maxName) // the event may differ
	if e.Note != "" {
		n += noteEscape * maxNote
	}
	l.mu.Lock()
	if err := l.appendable(); err != nil {
		l.mu.Unlock()
		return func() {}, err
	}
	l.held += n
	b := l.filling
	b.asks = true
	l.rouse()
	l.mu.Unlock()
	<-b.done
	release = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held -= n
	}
	if b.full != nil {
		release()
		return func() {}, b.full
	}
	return release, nil
}

// appendable returns nil, or the reason why the log cannot be written. The caller holds the lock.
func (l *Log) appendable() error {
	if l.failed != nil {
		return l.failed
	}
	if l.closed {
		return ErrClosed
	}
	return nil
}

// reserve makes sure that n bytes can be written after the end of the last file. The writer calls
// it.
func (l *Log) reserve(n int64) error {
	end := l.segments[len(l.segments)-1].size // only the writer changes it
	if end+n <= l.room.until {
		return nil
	}
	err := allocate(l.file, end, n+roomStep)
	if err == nil {
		l.room.until = end + n + roomStep
		return nil
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return free(l.dir, uint64(n)+roomSpare)
	}
	if err = allocate(l.file, end, n); err != nil {
		return fmt.Errorf("audit: no space for the next entries: %w", err)
	}
	l.room.until = end + n
	return nil
}

// free returns an error unless the file system has at least n free bytes.
func free(dir string, n uint64) error {
	s, err := disk.SpaceOf(dir)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if s.Free < n {
		return fmt.Errorf("audit: no space for the next entries in %s: %w", dir, syscall.ENOSPC)
	}
	return nil
}
