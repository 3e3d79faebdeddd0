package registry

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/multikey"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

// A registry is a directory with a file of records, each preceded by its length in two bytes, and a
// file for each owner's keys, which contains the header, the digests of the chunks, and the chunks.
// All of it is public, is checked when it is read, and can be fetched again from the other parties.
// A lost revocation stays unknown until a party sends it again.

const (
	recordsFile = "records.2"
	// weakRecordsFile was written by an older version: weak records, without their lengths.
	weakRecordsFile = "records"
	keysSuffix      = ".keys"
	partSuffix      = ".part" // incomplete keys: a prefix of their chunks
	filesMode       = 0o600
)

// checkHead returns an error unless h is the head of the record's keys. It runs before memory is
// allocated for the keys. The error wraps ErrDigests, or is that of CheckHeader.
func checkHead(c *service.Context, r *service.Record, h keyset.Head) error {
	switch {
	case len(h.Digests) != c.Chunks():
		return fmt.Errorf("%w: %d chunks, want %d", ErrDigests, len(h.Digests), c.Chunks())
	case multikey.IDOf(h.Header, h.Digests) != r.Key:
		return fmt.Errorf("%w: their identifier differs", ErrDigests)
	}
	return r.CheckHeader(c, h.Header)
}

// reader reads stored keys.
type reader struct {
	keyset.Head
	context *service.Context
	in      *bufio.Reader
	next    int
}

// newReader reads the head of the record's keys, and checks it.
func newReader(c *service.Context, r *service.Record, in io.Reader) (_ *reader, err error) {
	x := &reader{context: c, in: bufio.NewReaderSize(in, 1<<20)}
	if x.Head, err = keyset.ReadHead(x.in, multikey.HeaderSize, c.Chunks()); err != nil {
		return nil, err
	}
	return x, checkHead(c, r, x.Head)
}

// chunk returns the next chunk in new memory.
func (x *reader) chunk() ([]byte, error) {
	if x.next == len(x.Digests) {
		return nil, io.EOF
	}
	b := make([]byte, x.context.ChunkSize(x.next))
	if _, err := io.ReadFull(x.in, b); err != nil {
		return nil, err
	}
	if err := checkChunk(x.context, x.Head, x.next, b); err != nil {
		return nil, err
	}
	x.next++
	return b, nil
}

// checkChunk returns an error unless chunk is chunk i. The error wraps ErrChunk.
func checkChunk(c *service.Context, h keyset.Head, i int, chunk []byte) error {
	if i < 0 || i >= len(h.Digests) || len(chunk) != c.ChunkSize(i) {
		return fmt.Errorf("%w: chunk %d of %d bytes", ErrChunk, i, len(chunk))
	}
	if err := h.Check(i, chunk); err != nil {
		return fmt.Errorf("%w: %w", ErrChunk, err)
	}
	return nil
}

// disk is the directory of a registry.
type disk struct {
	dir     string
	context *service.Context
}

// name returns the name of a file. It contains the owner, because another party may have signed
// that the same keys are its own.
func name(r *service.Record, suffix string) string {
	return fmt.Sprintf("%x-%x%s", r.Signer[:8], r.Key[:], suffix)
}

// named matches the names that name returns; other files in the directory are kept.
var named = regexp.MustCompile("^[0-9a-f]{16}-[0-9a-f]{64}(" + regexp.QuoteMeta(keysSuffix) + "|" + regexp.QuoteMeta(partSuffix) + ")$")

func (d disk) path(r *service.Record, suffix string) string {
	return filepath.Join(d.dir, name(r, suffix))
}

// records reads the records; the file may not exist yet.
func (d disk) records() (list [][]byte, err error) {
	file := recordsFile
	b, err := os.ReadFile(filepath.Join(d.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		file = weakRecordsFile
		b, err = os.ReadFile(filepath.Join(d.dir, file))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	damaged := fmt.Errorf("registry: %s in %s is damaged; remove it, and the other parties will send its records again", file, d.dir)
	for len(b) > 0 {
		n := service.WeakRecordSize
		if file == recordsFile {
			if len(b) < 2 {
				return nil, damaged
			}
			n, b = int(binary.LittleEndian.Uint16(b)), b[2:]
		}
		if n > len(b) || n != service.RecordSize && n != service.WeakRecordSize {
			return nil, damaged
		}
		list, b = append(list, b[:n]), b[n:]
	}
	return list, nil
}

// keep makes the records durable.
func (d disk) keep(records [][]byte) error {
	path := filepath.Join(d.dir, recordsFile)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, filesMode)
	if err != nil {
		return err
	}
	for _, r := range records {
		if _, err = f.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(r))), r...)); err != nil {
			break
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	in, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	err = errors.Join(in.Sync(), in.Close())
	if old := os.Remove(filepath.Join(d.dir, weakRecordsFile)); old != nil && !errors.Is(old, fs.ErrNotExist) {
		err = errors.Join(err, old)
	}
	return err
}

// whole reports whether the keys of a record are stored completely and match their digests.
func (d disk) whole(r *service.Record) bool {
	f, err := os.Open(d.path(r, keysSuffix))
	if err != nil {
		return false
	}
	defer f.Close()
	x, err := d.good(r, f)
	return err == nil && x.next == len(x.Digests)
}

// good reads the head of a file and counts the correct chunks from the beginning.
func (d disk) good(r *service.Record, f io.Reader) (*reader, error) {
	x, err := newReader(d.context, r, f)
	for more := err; more == nil; {
		_, more = x.chunk()
	}
	return x, err
}

// tidy removes files of keys except those of wanted records, and returns the bytes of these. Files
// that are being fetched are kept and not counted.
func (d disk) tidy(wanted, fetching []*Entry) (used int64, err error) {
	counts := map[string]bool{}
	for i, e := range slices.Concat(wanted, fetching) {
		for _, suffix := range []string{keysSuffix, partSuffix} {
			counts[name(e.Record, suffix)] = i < len(wanted)
		}
	}
	list, err := os.ReadDir(d.dir)
	if err != nil {
		return 0, err
	}
	for _, f := range list {
		if !named.MatchString(f.Name()) {
			continue
		}
		count, keep := counts[f.Name()]
		if !keep {
			if err := os.Remove(filepath.Join(d.dir, f.Name())); err != nil {
				return used, err
			}
			continue
		}
		if i, err := f.Info(); err == nil && count {
			used += i.Size()
		}
	}
	return used, nil
}

// part is a file of keys that is being written.
type part struct {
	disk
	record *service.Record
	file   *os.File
	head   *keyset.Head // nil until it is known
	next   int          // the first missing chunk
}

// taken returns the size of the stored part of keys, in bytes.
func (d disk) taken(r *service.Record) (n int64) {
	for _, suffix := range []string{keysSuffix, partSuffix} {
		if i, err := os.Stat(d.path(r, suffix)); err == nil {
			n += i.Size()
		}
	}
	return n
}

// open opens the incomplete file of keys, to continue it.
func (d disk) open(r *service.Record) (*part, error) {
	if err := os.Remove(d.path(r, keysSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) { // damaged
		return nil, err
	}
	f, err := os.OpenFile(d.path(r, partSuffix), os.O_CREATE|os.O_RDWR, filesMode)
	if err != nil {
		return nil, err
	}
	p := &part{disk: d, record: r, file: f}
	if x, err := d.good(r, f); err == nil {
		p.head, p.next = &x.Head, x.next
	}
	return p, p.cut()
}

// cut truncates the file to its correct part.
func (p *part) cut() error {
	size := int64(0)
	if p.head != nil {
		size = int64(len(p.head.Append(nil)))
		for i := range p.next {
			size += int64(p.context.ChunkSize(i))
		}
	}
	if err := p.file.Truncate(size); err != nil {
		return err
	}
	_, err := p.file.Seek(size, io.SeekStart)
	return err
}

// begin accepts the head that a party has sent.
func (p *part) begin(h keyset.Head) error {
	if err := checkHead(p.context, p.record, h); err != nil || p.head != nil {
		return err
	}
	if _, err := p.file.Write(h.Append(nil)); err != nil {
		return errors.Join(err, p.cut())
	}
	p.head = &h
	return nil
}

// put appends the next chunk.
func (p *part) put(i int, chunk []byte) error {
	if i != p.next {
		return fmt.Errorf("%w: received chunk %d instead of %d", ErrChunk, i, p.next)
	}
	if err := checkChunk(p.context, *p.head, i, chunk); err != nil {
		return err
	}
	if _, err := p.file.Write(chunk); err != nil {
		return errors.Join(err, p.cut())
	}
	p.next++
	return nil
}

func (p *part) done() bool { return p.head != nil && p.next == len(p.head.Digests) }

// close makes complete keys durable; incomplete keys are kept for the next attempt.
func (p *part) close() error {
	err := errors.Join(p.file.Sync(), p.file.Close())
	if err == nil && p.done() {
		err = os.Rename(p.path(p.record, partSuffix), p.path(p.record, keysSuffix))
	}
	return err
}
