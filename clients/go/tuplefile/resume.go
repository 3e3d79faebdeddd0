package tuplefile

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/lodge-mpc/lodge/clients/go/internal/jsonfile"
)

// PartialName is a file in a directory with incomplete data: it holds the manifest, and how much
// data is on disk.
const PartialName = "partial.json"

// checkpointEvery is the maximal number of bytes to download again after a crash.
const checkpointEvery = 64 << 20

// partial is the content of the file [PartialName].
type partial struct {
	Manifest Manifest `json:"manifest"`
	Bytes    int64    `json:"bytes"` // size of the data file on disk
}

// Resume is Create for a directory that may hold part of the same data, from a Writer of Resume
// that ended with Keep or with its process. It returns the number of complete tuples: the next
// Write continues after them. It returns an error if the directory holds part of other data, or is
// complete.
func Resume(dir string, m Manifest, elementBytes int) (w *Writer, tuples int64, err error) {
	m.Files = nil
	if err := m.check(false); err != nil {
		return nil, 0, err
	}
	if _, err := os.Lstat(filepath.Join(dir, ManifestName)); err == nil {
		return nil, 0, fmt.Errorf("%w: %s is complete already", fs.ErrExist, dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	p, err := readPartial(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if w, err = Create(dir, m, elementBytes); err != nil {
			return nil, 0, err
		}
		w.resumes = true
		return w, 0, w.checkpoint()
	}
	if err != nil {
		return nil, 0, err
	}
	if p.Manifest.Files = nil; !reflect.DeepEqual(p.Manifest, m) {
		return nil, 0, fmt.Errorf("%w: %s holds part of other data: %v", ErrManifest, dir, p.Manifest)
	}
	if w, err = reopen(dir, m, elementBytes, p.Bytes); err != nil {
		return nil, 0, err
	}
	return w, w.n / m.RecordBytes(elementBytes), nil
}

func readPartial(dir string) (p partial, err error) {
	data, err := os.ReadFile(filepath.Join(dir, PartialName))
	if err != nil {
		return p, err
	}
	if len(data) > maxManifestBytes || jsonfile.Decode(data, &p) != nil || p.Bytes < 0 { // the decoder's error can quote a key share
		return p, fmt.Errorf("%w: %s is damaged; remove the directory", ErrManifest, filepath.Join(dir, PartialName))
	}
	return p, nil
}

// reopen continues after the complete records among the first bytes of the data file.
func reopen(dir string, m Manifest, elementBytes int, bytes int64) (_ *Writer, err error) {
	want, err := m.dataBytes(elementBytes)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, DataName), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	keep := min(bytes, want)
	keep -= keep % m.RecordBytes(elementBytes)
	w := &Writer{dir: dir, manifest: m, want: want, n: keep, kept: keep, file: f, sum: sha256.New(), resumes: true}
	if _, err := io.CopyN(w.sum, f, keep); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	if err := f.Truncate(keep); err != nil {
		return nil, err
	}
	w.buf = bufio.NewWriterSize(f, 1<<18) // the file is positioned at keep
	return w, nil
}

// checkpoint flushes the data to disk, and records its size.
func (w *Writer) checkpoint() error {
	if err := errors.Join(w.buf.Flush(), w.file.Sync()); err != nil {
		return err
	}
	w.kept = w.n
	return writeJSON(w.dir, PartialName, partial{w.manifest, w.n})
}

// Keep closes the writer and keeps the data for Resume.
func (w *Writer) Keep() error {
	if !w.resumes {
		return w.Abort()
	}
	return errors.Join(w.checkpoint(), w.file.Close())
}

func (w *Writer) removeCheckpoint() error {
	if !w.resumes {
		return nil
	}
	return os.Remove(filepath.Join(w.dir, PartialName))
}
