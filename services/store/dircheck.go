package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"syscall"
	"time"
)

// bbolt trusts its file: a damaged page makes it panic, in goroutines of its own too, where nobody
// can recover. So the file is verified before bbolt opens it. The walk below follows the format of
// bbolt 1.x (internal/common) from the newest meta page to every record, and accepts only pages
// exactly as bbolt writes them: elements and data without gaps, keys in order and between those of
// the parent, and every page in use once.

// Sizes and flags of bbolt's format, in bytes.
const (
	pageHeader  = 16 // id uint64, flags uint16, count uint16, overflow uint32
	element     = 16 // of a leaf: flags, pos, ksize, vsize uint32; of a branch: pos, ksize uint32, child uint64
	metaSize    = 64 // magic, version, page size, flags uint32; root, sequence, freelist, high water, transaction, sum uint64
	bucketSize  = 16 // root page, or 0 for a bucket within the value; sequence
	branchPage  = 1
	leafPage    = 2
	metaPage    = 4
	freePage    = 16
	bucketEntry = 1
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	maxDepth    = 64
	noFreelist  = 1<<64 - 1
	manyFree    = 0xffff // count of a list of free pages that begins with its number of entries, uint64
)

// damagedf is an error that wraps ErrDamaged.
func damagedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// checkFile verifies a database that no process has open. It returns nil for a file that is missing
// or empty, which bbolt makes anew, ErrInUse, or an error that wraps ErrDamaged.
func checkFile(path string, patience time.Duration) error {
	return VerifyFile(path, patience, string(bucket))
}

// VerifyFile verifies a bbolt database that has no other than the named buckets. See checkFile.
func VerifyFile(path string, patience time.Duration, buckets ...string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer f.Close() // which gives up the lock
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("store: locking %s: %w", path, err)
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w: %s", ErrInUse, path)
		}
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if info.Size() == 0 {
		return nil
	}
	w := &walk{file: f, size: info.Size(), path: path, buckets: buckets}
	return w.all()
}

// meta holds the contents of a meta page.
type meta struct{ pageSize, root, freelist, high, tx uint64 }

// walk verifies one file.
type walk struct {
	file    io.ReaderAt
	path    string
	buckets []string // that there may be
	size    int64
	meta    meta
	used    []byte // a bit a page
}

func (w *walk) fail(page uint64, format string, args ...any) error {
	return damagedf("%s, page %d: %s", w.path, page, fmt.Sprintf(format, args...))
}

// read reads n bytes at an offset. An end before that is damage; an error of the disk is itself.
func (w *walk) read(at int64, n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := w.file.ReadAt(b, at); errors.Is(err, io.EOF) {
		return nil, damagedf("%s is cut off at %d bytes; there is more to read at %d", w.path, w.size, at)
	} else if err != nil {
		return nil, damagedf("%s cannot be read at %d: %v", w.path, at, err)
	}
	return b, nil
}

func (w *walk) all() error {
	if err := w.metas(); err != nil {
		return err
	}
	w.used = make([]byte, w.meta.high/8+1)
	for page := range uint64(2) {
		w.used[0] |= 1 << page
	}
	free, err := w.freelist()
	if err != nil {
		return err
	}
	if err := w.tree(w.meta.root, nil, nil, true, 0); err != nil {
		return err
	}
	return w.unused(free)
}

// freelist returns the encoded numbers of the free pages, if the file lists them.
func (w *walk) freelist() ([]byte, error) {
	if w.meta.freelist == noFreelist {
		return nil, nil
	}
	p, err := w.page(w.meta.freelist)
	if err != nil {
		return nil, err
	}
	if p.flags != freePage {
		return nil, w.fail(p.id, "is no list of free pages")
	}
	count, data := uint64(p.count), p.data
	if count == manyFree {
		count, data = binary.LittleEndian.Uint64(data), data[8:]
	}
	if count > uint64(len(data)/8) {
		return nil, w.fail(p.id, "lists %d free pages, for which there is no room", count)
	}
	return data[:8*count], nil
}

// unused verifies that the free pages are in order, in the file and not in use. bbolt would
// overwrite a page in use.
func (w *walk) unused(free []byte) error {
	for last := uint64(1); len(free) > 0; free = free[8:] {
		id := binary.LittleEndian.Uint64(free)
		//lodge:check store/free-pages [tests=./services/coordinator] [run=TestDamagedJobs] a damaged list of free pages makes bbolt overwrite records
		if id <= last || id >= w.meta.high || w.used[id/8]&(1<<(id%8)) != 0 {
			return w.fail(w.meta.freelist, "lists page %d as free, which is in use, listed twice or outside the file", id)
		}
		last = id
	}
	return nil
}

// metas reads both meta pages. bbolt writes one in a transaction and the other in the next, and a
// meta page lies within one sector of a disk. So even after a crash both are whole, and belong to
// consecutive transactions. If one is damaged, the other may be older than acknowledged
// transactions, and metas returns an error.
func (w *walk) metas() error {
	size := uint64(0)
	for at := uint64(0); size == 0 && at <= 16<<20; at = max(1024, at*2) { // the first page, or where the second may be
		if b := make([]byte, pageHeader+metaSize); int64(at) < w.size {
			if _, err := w.file.ReadAt(b, int64(at)); err == nil && sound(b) {
				size = uint64(binary.LittleEndian.Uint32(b[pageHeader+8:]))
			}
		}
	}
	if size < 1024 || size > 16<<20 || size&(size-1) != 0 {
		return damagedf("%s: neither of its two meta pages is whole", w.path)
	}
	var both [2]meta
	for page := range uint64(2) {
		b, err := w.read(int64(page*size), pageHeader+metaSize)
		if err != nil {
			return err
		}
		if !sound(b) || binary.LittleEndian.Uint64(b) != page || binary.LittleEndian.Uint16(b[8:]) != metaPage {
			return w.fail(page, "the meta page is damaged")
		}
		m, word := &both[page], func(i int) uint64 { return binary.LittleEndian.Uint64(b[pageHeader+8*i:]) }
		m.pageSize = uint64(binary.LittleEndian.Uint32(b[pageHeader+8:]))
		m.root, m.freelist, m.high, m.tx = word(2), word(4), word(5), word(6)
		if m.pageSize != size || m.tx%2 != page {
			return w.fail(page, "the meta page is not of this place")
		}
	}
	w.meta = both[0]
	if both[1].tx > both[0].tx {
		w.meta = both[1]
	}
	older := min(both[0].tx, both[1].tx)
	switch {
	case w.meta.tx != older+1:
		return w.fail(w.meta.tx%2, "the meta pages are of transactions %d and %d", older, w.meta.tx)
	case w.meta.high < 3 || w.meta.high > uint64(w.size)/size:
		return damagedf("%s has %d bytes, fewer than its %d pages of %d", w.path, w.size, w.meta.high, size)
	}
	return nil
}

// sound says whether a page holds meta data with its checksum.
func sound(b []byte) bool {
	m := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(m[:metaSize-8])
	return binary.LittleEndian.Uint32(m) == boltMagic && binary.LittleEndian.Uint32(m[4:]) == boltVersion &&
		binary.LittleEndian.Uint64(m[metaSize-8:]) == sum.Sum64()
}

// page is one page with those that belong to it.
type page struct {
	id    uint64
	flags uint16
	count int
	data  []byte // after the header
	limit int    // bytes of data that bbolt may have used, for the least number of pages; 0 if it is not known
}

// page reads a page, and marks it as used.
func (w *walk) page(id uint64) (*page, error) {
	if id < 2 || id >= w.meta.high {
		return nil, w.fail(id, "is not one of the file's %d pages", w.meta.high)
	}
	size := w.meta.pageSize
	h, err := w.read(int64(id*size), pageHeader)
	if err != nil {
		return nil, err
	}
	p := &page{id: binary.LittleEndian.Uint64(h), flags: binary.LittleEndian.Uint16(h[8:]), count: int(binary.LittleEndian.Uint16(h[10:]))}
	more := uint64(binary.LittleEndian.Uint32(h[12:]))
	if p.id != id || more >= w.meta.high-id {
		return nil, w.fail(id, "its header says page %d with %d more", p.id, more)
	}
	for n := id; n <= id+more; n++ {
		if w.used[n/8]&(1<<(n%8)) != 0 {
			return nil, w.fail(n, "is in use twice")
		}
		w.used[n/8] |= 1 << (n % 8)
	}
	p.data, err = w.read(int64(id*size)+pageHeader, int((more+1)*size)-pageHeader)
	p.limit = int(more*size) - pageHeader
	return p, err
}

// tree verifies a page and all below it. Keys are at least `from`, and below `to`; a nil to is no
// bound. top marks the tree of buckets.
func (w *walk) tree(id uint64, from, to []byte, top bool, depth int) error {
	if depth > maxDepth {
		return w.fail(id, "lies deeper than %d pages", maxDepth)
	}
	p, err := w.page(id)
	if err != nil {
		return err
	}
	switch p.flags {
	case leafPage:
		return w.leaf(p, from, to, top, depth)
	case branchPage:
		return w.branch(p, from, to, top, depth)
	}
	return w.fail(id, "is neither a leaf nor a branch, but %#x", p.flags)
}

// entry gives what element i of a page says, and checks that its data lies right behind that of the
// one before.
func (w *walk) entry(p *page, i int, next *int, keyAt, sizeAt, valueAt int) (key, value []byte, err error) {
	e := p.data[element*i : element*(i+1)]
	at := element*i + int(binary.LittleEndian.Uint32(e[keyAt:]))
	n, v := int(binary.LittleEndian.Uint32(e[sizeAt:])), 0
	if valueAt > 0 {
		v = int(binary.LittleEndian.Uint32(e[valueAt:]))
	}
	if at != *next || n == 0 || n > len(p.data)-at || v > len(p.data)-at-n {
		return nil, nil, w.fail(p.id, "entry %d is out of place", i)
	}
	*next = at + n + v
	return p.data[at : at+n], p.data[at+n : at+n+v], nil
}

// begin checks the number of entries, and gives where their data begins.
func (w *walk) begin(p *page) (int, error) {
	if p.count*element > len(p.data) {
		return 0, w.fail(p.id, "has %d entries, for which there is no room", p.count)
	}
	return p.count * element, nil
}

// ordered checks a key against the one before and the bounds of its page.
func (w *walk) ordered(p *page, key, last, from, to []byte) error {
	if last != nil && bytes.Compare(last, key) >= 0 || bytes.Compare(key, from) < 0 || to != nil && bytes.Compare(key, to) >= 0 {
		return w.fail(p.id, "its keys are not in order")
	}
	return nil
}

func (w *walk) leaf(p *page, from, to []byte, top bool, depth int) error {
	next, err := w.begin(p)
	if err != nil {
		return err
	}
	if p.count == 0 && len(bytes.TrimLeft(p.data, "\x00")) > 0 { // bbolt writes pages into zeroed memory
		return w.fail(p.id, "is a leaf without entries, with data")
	}
	var last []byte
	for i := range p.count {
		key, value, err := w.entry(p, i, &next, 4, 8, 12)
		if err != nil {
			return err
		}
		if err := w.ordered(p, key, last, from, to); err != nil {
			return err
		}
		last = key
		flags := binary.LittleEndian.Uint32(p.data[element*i:])
		switch {
		case !top && flags != 0, top && flags != bucketEntry:
			return w.fail(p.id, "entry %d has the flags %#x", i, flags)
		case top:
			if !slices.Contains(w.buckets, string(key)) {
				return w.fail(p.id, "holds the bucket %q; expected %q", key, w.buckets)
			}
			if err := w.bucket(p, value, depth); err != nil {
				return err
			}
		}
	}
	return w.end(p, next)
}

// end checks that a page has as many others as its data needs.
func (w *walk) end(p *page, next int) error {
	if next <= p.limit {
		return w.fail(p.id, "has more pages than its %d bytes need", next)
	}
	return nil
}

// bucket verifies the records of a bucket. A bucket with few records contains them in its entry;
// otherwise they are in separate pages.
func (w *walk) bucket(p *page, value []byte, depth int) error {
	if len(value) < bucketSize {
		return w.fail(p.id, "the bucket's entry is cut off")
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		if len(value) != bucketSize {
			return w.fail(p.id, "the bucket's entry has %d bytes", len(value))
		}
		return w.tree(root, nil, nil, false, depth+1)
	}
	in := value[bucketSize:]
	if len(in) < pageHeader || binary.LittleEndian.Uint16(in[8:]) != leafPage || binary.LittleEndian.Uint64(in) != 0 || binary.LittleEndian.Uint32(in[12:]) != 0 {
		return w.fail(p.id, "the bucket within the entry is damaged")
	}
	return w.leaf(&page{id: p.id, flags: leafPage, count: int(binary.LittleEndian.Uint16(in[10:])), data: in[pageHeader:], limit: -1}, nil, nil, false, depth)
}

func (w *walk) branch(p *page, from, to []byte, top bool, depth int) error {
	next, err := w.begin(p)
	if err != nil {
		return err
	}
	if p.count == 0 {
		return w.fail(p.id, "is a branch without entries")
	}
	keys, children := make([][]byte, p.count), make([]uint64, p.count)
	var last []byte
	for i := range p.count {
		if keys[i], _, err = w.entry(p, i, &next, 0, 4, 0); err != nil {
			return err
		}
		if err := w.ordered(p, keys[i], last, from, to); err != nil {
			return err
		}
		last, children[i] = keys[i], binary.LittleEndian.Uint64(p.data[element*i+8:])
	}
	if err := w.end(p, next); err != nil {
		return err
	}
	p.data = nil
	for i, child := range children {
		end := to
		if i+1 < len(keys) {
			end = keys[i+1]
		}
		if err := w.tree(child, keys[i], end, top, depth+1); err != nil {
			return err
		}
	}
	return nil
}
