package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Head identifies the last entry of a chain; it is zero for an empty chain.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash Hash   `json:"hash"`
}

// BrokenError reports the first place where a log was changed.
type BrokenError struct {
	File   string
	Line   int // from 1; 0: the file as a whole
	Reason string
}

func (e *BrokenError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("audit: %s %s", e.File, e.Reason)
	}
	return fmt.Sprintf("audit: %s, line %d %s", e.File, e.Line, e.Reason)
}

// markEvery is the number of entries between the offsets that a segment remembers.
const markEvery = 256

// segment is one file of a log.
type segment struct {
	path    string
	number  int
	first   uint64 // sequence number of its first entry, if it has any
	entries uint64
	size    int64   // bytes of whole lines
	marks   []int64 // where every markEvery-th entry begins
	torn    []byte  // bytes after the last whole line
}

func (s *segment) name() string { return filepath.Base(s.path) }

// add counts an entry whose line, including its end, has the given length.
func (s *segment) add(seq uint64, bytes int) {
	if s.entries == 0 {
		s.first = seq
	}
	if s.entries%markEvery == 0 {
		s.marks = append(s.marks, s.size)
	}
	s.entries++
	s.size += int64(bytes)
}

// Names of the files.
const filePrefix, fileSuffix = "audit-", ".jsonl"

func fileName(number int) string { return fmt.Sprintf("%s%06d%s", filePrefix, number, fileSuffix) }

// segments lists the files of a log in order without reading them.
func segments(dir string) ([]*segment, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	var all []*segment
	for _, f := range list {
		if !strings.HasPrefix(f.Name(), filePrefix) || !strings.HasSuffix(f.Name(), fileSuffix) {
			continue
		}
		n, err := strconv.Atoi(f.Name()[len(filePrefix) : len(f.Name())-len(fileSuffix)])
		if err != nil || n < 1 || fileName(n) != f.Name() {
			return nil, &BrokenError{f.Name(), 0, "is not the name of a file of a log"}
		}
		all = append(all, &segment{path: filepath.Join(dir, f.Name()), number: n})
	}
	slices.SortFunc(all, func(a, b *segment) int { return a.number - b.number })
	for i, s := range all {
		if s.number != i+1 {
			return nil, &BrokenError{fileName(i + 1), 0, "is missing"}
		}
	}
	return all, nil
}

// chain verifies a log line by line.
type chain struct {
	head   Head
	known  map[Hash]bool // heads that must be in the chain; removed when found
	strict bool          // decode each line in full, not only its links
	loose  bool          // the chain may begin at any entry
}

func newChain(known []Hash) chain {
	c := chain{known: map[Hash]bool{}}
	for _, h := range known {
		c.known[h] = true
	}
	return c
}

// file verifies one file to the end of its last whole line.
func (c *chain) file(s *segment) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer f.Close()
	return scan(f, func(n int, line []byte, whole bool) error {
		if len(line) > maxLine {
			return &BrokenError{s.name(), n, "is too long"}
		}
		if !whole {
			s.torn = bytes.Clone(line)
			return nil
		}
		if reason := c.line(line); reason != "" {
			return &BrokenError{s.name(), n, reason}
		}
		s.add(c.head.Seq, len(line)+1)
		return nil
	})
}

// complete returns an error unless all known heads were found.
func (c *chain) complete() error {
	for h := range c.known {
		return fmt.Errorf("audit: the hash %s is not in the log: the end of the log was cut off, or the log was rewritten", h)
	}
	return nil
}

// line verifies the next line. It returns the problem, or "".
func (c *chain) line(line []byte) string {
	l, ok := parse(line)
	if !ok {
		return "is not an entry"
	}
	if sha256.Sum256(l.body) != l.hash {
		return "was changed: its hash is not that of its content"
	}
	begins := c.loose && c.head.Seq == 0
	switch {
	case !begins && l.prev != c.head.Hash:
		return "does not follow the entry before it: lines were removed, added or swapped"
	case !begins && l.seq != c.head.Seq+1:
		return fmt.Sprintf("has the sequence number %d after %d", l.seq, c.head.Seq)
	}
	if c.strict {
		if _, err := decode(line); err != nil {
			return err.Error()
		}
	}
	c.head = Head{l.seq, l.hash}
	delete(c.known, l.hash)
	if begins {
		delete(c.known, l.prev)
	}
	return ""
}

// links holds the fields of a line that form the chain.
type links struct {
	seq        uint64
	prev, hash Hash
	body       []byte // the bytes that are hashed
}

var lineStart = fmt.Appendf(nil, `{"v":%d,"seq":`, version)

// parse finds the links, which have fixed places in every line.
func parse(line []byte) (l links, ok bool) {
	rest, ok := bytes.CutPrefix(line, lineStart)
	end := bytes.IndexByte(rest, ',')
	if !ok || end < 1 || len(rest) < suffix {
		return l, false
	}
	seq, err := strconv.ParseUint(string(rest[:end]), 10, 64)
	if err != nil || seq == 0 || strconv.FormatUint(seq, 10) != string(rest[:end]) {
		return l, false
	}
	tail := rest[len(rest)-suffix:]
	take := func(text string) {
		var found bool
		tail, found = bytes.CutPrefix(tail, []byte(text))
		ok = ok && found
	}
	hash := func(h *Hash) {
		ok = ok && h.UnmarshalText(tail[:digits]) == nil
		tail = tail[digits:]
	}
	take(prevKey)
	if !ok {
		return l, false
	}
	hash(&l.prev)
	take(hashKey)
	if !ok {
		return l, false
	}
	hash(&l.hash)
	take(lineEnd)
	l.seq, l.body = seq, line[:len(line)-len(hashKey)+1-digits-len(lineEnd)]
	return l, ok
}

// scan calls each for every line, without its end; whole is false for an unfinished last line. A
// line that is longer than maxLine ends the scan. The line is valid only during the call.
func scan(r io.Reader, each func(n int, line []byte, whole bool) error) error {
	b := bufio.NewReaderSize(r, maxLine+2)
	for n := 1; ; n++ {
		line, err := b.ReadSlice('\n')
		switch {
		case err == nil:
			if err := each(n, line[:len(line)-1], true); err != nil {
				return err
			}
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull):
			return each(n, line, false)
		default:
			return fmt.Errorf("audit: %w", err)
		}
	}
}
