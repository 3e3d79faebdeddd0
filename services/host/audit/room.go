package audit

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"
)

// An entry about a delivery must be durable before the first byte leaves, and is written after the delivery was recorded,
// which consumes tuples. Hold makes sure beforehand that the disk has space for the entry: it has the file system allocate
// blocks behind the end of the file, which later writes use.

const (
	roomStep  = 256 << 10 // that is allocated at once, in bytes, if there is so much
	roomSpare = 1 << 20   // that must be free where blocks cannot be allocated beforehand
)

// room is what the file system has allocated of the last file.
type room struct{ until int64 } // offset in bytes

// noteEscape is how many bytes a byte of a note takes at most in JSON.
const noteEscape = 6

// Hold reserves disk space for an entry like e, whose event may differ, and whose note may be any if e has one. The space
// stays reserved until the caller calls release. Hold returns the error that Append would if nothing can be appended now.
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
	n := int64(len(line)+1) + int64(maxName) // the event may be another
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

// appendable is nil, or why nothing can be appended. The caller holds the lock.
func (l *Log) appendable() error {
	if l.failed != nil {
		return l.failed
	}
	if l.closed {
		return ErrClosed
	}
	return nil
}

// reserve makes sure that so many bytes can be written behind the end of the last file. The writer calls it.
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

// noSpace is the error of a file system without space.
func noSpace(dir string) error {
	return fmt.Errorf("audit: no space for the next entries in %s: %w", dir, syscall.ENOSPC)
}
