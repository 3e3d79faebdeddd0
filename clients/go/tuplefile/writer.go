package tuplefile

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
)

// Writer writes one party's share directory. The data is streamed; the manifest appears last, and
// only when all of the data is on disk, so that a directory with a manifest is complete.
type Writer struct {
	dir      string
	manifest Manifest
	want     int64
	n        int64
	file     *os.File
	buf      *bufio.Writer
	sum      hash.Hash
	kept     int64 // the part of n that the last checkpoint covers
	resumes  bool  // there are checkpoints
}

// Create makes dir (it must not hold an export already) and its data file. The manifest's Files are
// filled in by Close; elementBytes is the length of one canonical element, ceil(bits/8).
func Create(dir string, m Manifest, elementBytes int) (*Writer, error) {
	m.Files = nil
	if err := m.check(false); err != nil {
		return nil, err
	}
	if elementBytes < 1 {
		return nil, fmt.Errorf("%w: elements of %d bytes", ErrManifest, elementBytes)
	}
	want, err := m.dataBytes(elementBytes)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, DataName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{
		dir: dir, manifest: m, want: want, file: f, buf: bufio.NewWriterSize(f, 1<<18), sum: sha256.New(),
	}, nil
}

// Write appends data: whole records in order, cut anywhere. More than the manifest promises is
// [ErrCount].
func (w *Writer) Write(p []byte) (int, error) {
	if int64(len(p)) > w.want-w.n {
		return 0, fmt.Errorf("%w: more than %d", ErrCount, w.want)
	}
	n, err := w.buf.Write(p)
	w.sum.Write(p[:n])
	w.n += int64(n)
	if err == nil && w.resumes && w.n-w.kept >= checkpointEvery {
		err = w.checkpoint()
	}
	return n, err
}

// Close finishes the directory: flushes and syncs the data, then writes the manifest. Less data
// than the manifest promises is [ErrCount], and the directory stays without a manifest.
func (w *Writer) Close() error {
	if w.n != w.want {
		return errors.Join(fmt.Errorf("%w: %d of %d", ErrCount, w.n, w.want), w.Abort())
	}
	if err := errors.Join(w.buf.Flush(), w.file.Sync(), w.file.Close()); err != nil {
		return err
	}
	w.manifest.Files = []File{{Name: DataName, SHA256: hex.EncodeToString(w.sum.Sum(nil)), Bytes: w.n}}
	if err := WriteManifest(w.dir, w.manifest); err != nil {
		return err
	}
	return w.removeCheckpoint()
}

// Abort removes the written files.
func (w *Writer) Abort() error {
	return errors.Join(w.file.Close(), os.Remove(filepath.Join(w.dir, DataName)), w.removeCheckpoint())
}

// WriteManifest writes DIR/manifest.json atomically.
func WriteManifest(dir string, m Manifest) error {
	if err := m.check(true); err != nil {
		return err
	}
	return writeJSON(dir, ManifestName, m)
}

// writeJSON atomically writes a file of dir, readable by its owner only.
func writeJSON(dir, name string, v any) error {
	f, err := os.CreateTemp(dir, ".manifest-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = jsonfile.Write(f, v)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}
