package tuplefile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// Reader streams the elements of one party's share directory; [Open] opens one.
type Reader struct {
	Manifest Manifest

	file *os.File
	buf  *bufio.Reader
	sum  hash.Hash
	left int64
}

// Open opens dir for reading. The data file must have the length stated in the manifest, which must
// match its tuples with elements of elementBytes bytes. Otherwise Open returns [ErrTruncated] or
// [ErrTrailing] before it reads any data.
func Open(dir string, m Manifest, elementBytes int) (*Reader, error) {
	if err := m.check(true); err != nil {
		return nil, err
	}
	want, err := m.dataBytes(elementBytes)
	if err != nil {
		return nil, err
	}
	if m.Files[0].Bytes != want {
		return nil, fmt.Errorf("%w: %s has %d bytes according to the manifest, but its tuples need %d", ErrManifest, DataName,
			m.Files[0].Bytes, want)
	}
	f, err := os.Open(filepath.Join(dir, DataName))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Size() < want:
		err = fmt.Errorf("%w: %d of %d bytes", ErrTruncated, info.Size(), want)
	case info.Size() > want:
		err = fmt.Errorf("%w: %d bytes instead of %d", ErrTrailing, info.Size(), want)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Reader{Manifest: m, file: f, buf: bufio.NewReaderSize(f, 1<<18), sum: sha256.New(), left: want}, nil
}

// Read fills p completely, or returns [ErrTruncated].
func (r *Reader) Read(p []byte) (int, error) {
	if int64(len(p)) > r.left {
		return 0, ErrTruncated
	}
	n, err := io.ReadFull(r.buf, p)
	r.left -= int64(n)
	r.sum.Write(p[:n])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrTruncated
	}
	return n, err
}

// Finish checks, after the last element, that no data is left and that the digest matches the
// manifest.
func (r *Reader) Finish() error {
	if r.left != 0 {
		return fmt.Errorf("%w: %d bytes were not read", ErrTrailing, r.left)
	}
	if _, err := r.buf.ReadByte(); !errors.Is(err, io.EOF) {
		return ErrTrailing
	}
	want, err := hex.DecodeString(r.Manifest.Files[0].SHA256)
	if err != nil || !bytes.Equal(want, r.sum.Sum(nil)) {
		return ErrDigest
	}
	return nil
}

// Close closes the data file.
func (r *Reader) Close() error { return r.file.Close() }
