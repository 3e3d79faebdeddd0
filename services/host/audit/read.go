package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// maxPage limits the result of Entries.
const maxPage = 1000

// Entries returns durable entries in order, starting at a sequence number: at most limit, and at
// most 1000. An empty result means the end of the log.
func (l *Log) Entries(from uint64, limit int) ([]Entry, error) {
	if l == nil {
		return nil, nil
	}
	from, limit = max(from, 1), min(limit, maxPage)
	l.mu.Lock()
	parts := make([]segment, 0, len(l.segments))
	for _, s := range l.segments {
		if s.entries > 0 && s.first+s.entries > from {
			parts = append(parts, *s) // a copy of the durable state; marks are only appended to
		}
	}
	l.mu.Unlock()
	var page []Entry
	for i := range parts {
		if len(page) >= limit {
			break
		}
		got, err := parts[i].read(max(from, parts[i].first), limit-len(page))
		if err != nil {
			return nil, err
		}
		page = append(page, got...)
	}
	return page, nil
}

// read returns at most limit entries from seq on, which must lie in the segment.
func (s *segment) read(seq uint64, limit int) ([]Entry, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	defer f.Close()
	mark := (seq - s.first) / markEvery
	n := s.first + mark*markEvery
	var page []Entry
	err = scan(io.NewSectionReader(f, s.marks[mark], s.size-s.marks[mark]), func(_ int, line []byte, whole bool) error {
		if len(page) == limit {
			return errEnough
		}
		if n++; n <= seq {
			return nil
		}
		e, err := decode(line)
		if err != nil || !whole || e.Seq != n-1 {
			return &BrokenError{s.name(), int(n - s.first), "was changed while the log was open"}
		}
		page = append(page, e)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return page, nil
}

// errEnough stops a scan.
var errEnough = errors.New("audit: enough")

// Summary describes the contents of a log.
type Summary struct {
	Entries uint64 `json:"entries"`
	Files   int    `json:"files"`
	First   uint64 `json:"first"` // sequence number; 1 unless the path is a single file of many
	Head    Head   `json:"head"`
}

// Verify reads a log, a directory or one of its files, and verifies its chain with each entry
// decoded. All known hashes must occur in it. A fault is a BrokenError with the first bad line; the
// summary then covers the lines before it. Verify accepts a log that is being written: it reads an
// unfinished last line again before it reports it.
func Verify(path string, known ...Hash) (Summary, error) {
	sum, err := verify(path, known)
	if errors.Is(err, ErrUnfinished) {
		sum, err = verify(path, known)
	}
	return sum, err
}

// ErrUnfinished is wrapped by the error about a last line without an end, which the next Open
// removes.
var ErrUnfinished = errors.New("is unfinished: the process was killed while it wrote, or the line was cut")

func (e *BrokenError) Unwrap() error {
	if e.Reason == ErrUnfinished.Error() {
		return ErrUnfinished
	}
	return nil
}

func verify(path string, known []Hash) (Summary, error) {
	var sum Summary
	parts, loose, err := files(path)
	if err != nil {
		return sum, err
	}
	c := newChain(known)
	c.strict, c.loose = true, loose
	for _, s := range parts {
		err := c.file(s)
		if s.entries > 0 {
			sum.Entries, sum.Head = sum.Entries+s.entries, c.head
			if sum.First == 0 {
				sum.First = s.first
			}
		}
		if err != nil {
			return sum, err
		}
		sum.Files++
		if len(s.torn) > 0 {
			return sum, &BrokenError{s.name(), int(s.entries) + 1, ErrUnfinished.Error()}
		}
	}
	return sum, c.complete()
}

// ErrNoLog reports a directory without an audit log.
var ErrNoLog = errors.New("audit")

// files returns the segments under a path. loose reports that the path is a single file.
func files(path string) (parts []*segment, loose bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, fmt.Errorf("audit: %w", err)
	}
	if !info.IsDir() {
		return []*segment{{path: path}}, filepath.Base(path) != fileName(1), nil
	}
	parts, err = segments(path)
	if err == nil && len(parts) == 0 {
		err = fmt.Errorf("%w: %s holds no log; a log would have a file %s", ErrNoLog, path, fileName(1))
	}
	return parts, false, err
}

// Tail returns the last n entries under a path, a directory or a file, without verifying the chain
// before them.
func Tail(path string, n int) ([]Entry, error) {
	parts, _, err := files(path)
	if err != nil {
		return nil, err
	}
	var tail []Entry // newest first
	for _, s := range slices.Backward(parts) {
		if len(tail) >= n {
			break
		}
		lines, err := lastLines(s, n-len(tail))
		if err != nil {
			return nil, err
		}
		for _, l := range slices.Backward(lines) {
			e, err := decode(l.text)
			if err != nil {
				return nil, &BrokenError{s.name(), l.n, err.Error()}
			}
			tail = append(tail, e)
		}
	}
	slices.Reverse(tail)
	return tail, nil
}

type line struct {
	n    int
	text []byte
}

// lastLines returns the last whole lines of a file.
func lastLines(s *segment, most int) ([]line, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	defer f.Close()
	var ring []line
	err = scan(f, func(n int, text []byte, whole bool) error {
		switch {
		case !whole && len(text) > maxLine:
			return &BrokenError{s.name(), n, "is too long"}
		case !whole:
			return nil
		case len(ring) == 2*most:
			ring = slices.Delete(ring, 0, most)
		}
		ring = append(ring, line{n, bytes.Clone(text)})
		return nil
	})
	return ring[max(0, len(ring)-most):], err
}
