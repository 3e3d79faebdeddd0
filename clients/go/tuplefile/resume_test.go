package tuplefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A partial file, kept or left by a killed process, is continued after its last complete record.
// The result equals the output of a single writer.
func TestResume(t *testing.T) {
	data := make([]byte, 5*exampleRecord)
	for i := range data {
		data[i] = byte(3 * i)
	}
	m := example()
	m.Tuples = 5
	for name, end := range map[string]func(w *Writer, dir string) error{
		"kept":   func(w *Writer, _ string) error { return w.Keep() },
		"killed": func(w *Writer, _ string) error { return w.file.Close() }, // no data was flushed since the beginning
		"torn": func(w *Writer, dir string) error { // garbage after the checkpoint
			err := w.Keep()
			f, _ := os.OpenFile(filepath.Join(dir, DataName), os.O_WRONLY|os.O_APPEND, 0)
			_, werr := f.WriteString("garbage")
			return errors.Join(err, werr, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x")
			w, n, err := Resume(dir, m, 8)
			if err != nil || n != 0 {
				t.Fatal(n, err)
			}
			if _, err := w.Write(data[:3*exampleRecord-1]); err != nil {
				t.Fatal(err)
			}
			if err := end(w, dir); err != nil {
				t.Fatal(err)
			}
			other := m
			other.Batch = "c"
			if _, _, err := Resume(dir, other, 8); !errors.Is(err, ErrManifest) || strings.Contains(err.Error(), m.MACKeyShare) {
				t.Errorf("part of other data: %v", err)
			}
			w, n, err = Resume(dir, m, 8)
			if err != nil || n != map[string]int64{"killed": 0, "kept": 2, "torn": 2}[name] {
				t.Fatal(n, err)
			}
			if _, err := w.Write(data[n*exampleRecord:]); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Open(dir, got, 8)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			read := make([]byte, len(data))
			if _, err := io.ReadFull(r, read); err != nil || string(read) != string(data) {
				t.Errorf("%v, or different bytes", err)
			}
			if err := r.Finish(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, PartialName)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", PartialName, err)
			}
			if _, _, err := Resume(dir, m, 8); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a complete directory: %v", err)
			}
		})
	}
}

// Long data is flushed regularly, so that a killed process loses little.
func TestCheckpoints(t *testing.T) {
	dir, m := t.TempDir(), example()
	m.Kind, m.Dims, m.Tuples = Random, Dims{1, 1, 1}, 5<<20 // 16 bytes each
	w, _, err := Resume(dir, m, 8)
	if err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 1<<20)
	for range 70 {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, n, err := Resume(dir, m, 8); err != nil || n != checkpointEvery/16 {
		t.Errorf("%d tuples: %v", n, err)
	}
}

func TestResumeRefusesAStrangeCheckpoint(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, PartialName), []byte(`{"bytes": -1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Resume(dir, example(), 8); !errors.Is(err, ErrManifest) {
		t.Error(err)
	}
}

// Tuples may be drawn without the MAC key.
func TestManifestWithoutKey(t *testing.T) {
	dir, m := t.TempDir(), example()
	m.MACKeyShare = ""
	w, err := Create(dir, m, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 2*exampleRecord)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadManifest(dir); err != nil || got.MACKeyShare != "" {
		t.Errorf("%v, %v", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, ManifestName)); err != nil || strings.Contains(string(text), "mac_key") {
		t.Errorf("%v: %s", err, text)
	}
}
