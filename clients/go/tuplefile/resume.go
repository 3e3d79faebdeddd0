package tuplefile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// PartialName is the file that a directory has while its data is not complete: the manifest, and how much is on disk.
const PartialName = "partial.json"

// checkpointEvery is how many bytes may have to be fetched again after a crash.
const checkpointEvery = 64 << 20

// partial is the content of PartialName.
type partial struct {
	Manifest Manifest `json:"manifest"`
	Bytes    int64    `json:"bytes"` // of the data file that are on disk
}

// Resume is Create for a directory that may hold a part of the same data, from a Writer of Resume that ended with Keep or
// with its process. It returns how many tuples are there already: the next Write goes on after them. A part of other data,
// or a complete directory, is an error.
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
		return nil, 0, fmt.Errorf("%w: %s holds a part of something else: %v", ErrManifest, dir, p.Manifest)
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
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if len(data) > maxManifestBytes || d.Decode(&p) != nil || p.Bytes < 0 { // the decoder's error can quote a key share
		return p, fmt.Errorf("%w: %s is not what a writer leaves; remove the directory", ErrManifest, filepath.Join(dir, PartialName))
	}
	return p, nil
}

// reopen goes on after the whole records among the first bytes of the data file.
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
	w.buf = bufio.NewWriterSize(f, 1<<18) // the file stands at keep
	return w, nil
}

// checkpoint puts what was written on disk, and notes how much that is.
func (w *Writer) checkpoint() error {
	if err := errors.Join(w.buf.Flush(), w.file.Sync()); err != nil {
		return err
	}
	w.kept = w.n
	return writeJSON(w.dir, PartialName, partial{w.manifest, w.n})
}

// Keep ends the writer and leaves what was written for Resume.
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
