//go:build unix

package mpspdz

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// aTree returns the tree of one of two parties over 128 bits, for writing bits.
func aTree(t *testing.T, ctx context.Context, dir string, o Options) *Tree {
	t.Helper()
	o.Prime, o.Parties = testPrimes[128], 2
	if o.KeyShare == nil {
		o.KeyShare = little(o.Prime, 5)
	}
	tree, err := NewTree(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func aFile(t *testing.T, tree *Tree) *File {
	t.Helper()
	f, err := tree.File(Target{Kind: Bit})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const bitRecord = 32

// A pipe receives the same data as a file, waits for its reader, runs at the reader's speed, and is
// removed if the tree created it.
func TestPipes(t *testing.T) {
	shares := bytes.Repeat(little(testPrimes[128], 77), 2*100000) // several buffers
	file := filepath.Join(t.TempDir(), "Player-Data")
	f := aFile(t, aTree(t, t.Context(), filepath.Dir(file), Options{}))
	if _, err := f.Write(shares); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, ours := range []bool{true, false} {
		dir := t.TempDir()
		tree := aTree(t, t.Context(), dir, Options{Pipes: ours})
		if !ours {
			if err := os.MkdirAll(filepath.Dir(tree.Path(Target{Kind: Bit})), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := mkfifo(tree.Path(Target{Kind: Bit})); err != nil {
				t.Fatal(err)
			}
		}
		if pipe, err := tree.Check(Target{Kind: Bit}); err != nil || !pipe {
			t.Fatal(pipe, err)
		}
		f := aFile(t, tree)
		done := make(chan error)
		go func() {
			_, err := f.Write(shares)
			done <- errors.Join(err, f.Close())
		}()
		r, err := os.Open(f.Path())
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(tree.header)+10)
		if _, err := io.ReadFull(r, got); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			t.Fatalf("everything was written although the reader read %d bytes: %v", len(got), err)
		case <-time.After(20 * time.Millisecond):
		}
		rest, err := io.ReadAll(r)
		if err := errors.Join(err, <-done, r.Close()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(append(got, rest...), want) || f.Records() != 100000 || !f.Pipe() {
			t.Errorf("the pipe gave %d bytes and %d records", len(got)+len(rest), f.Records())
		}
		if _, err := os.Lstat(f.Path()); ours != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("afterwards, ours %v: %v", ours, err)
		}
	}
}

// If a reader goes away, or an interrupt occurs while there is no reader or the reader does not
// read, Write ends. Records states how much was written.
func TestPipesEndEarly(t *testing.T) {
	shares := bytes.Repeat(little(testPrimes[128], 77), 2*100000)
	t.Run("reader", func(t *testing.T) {
		f := aFile(t, aTree(t, t.Context(), t.TempDir(), Options{Pipes: true}))
		read := make(chan error)
		go func() {
			r, err := os.Open(f.Path())
			if err == nil {
				_, err = io.ReadFull(r, make([]byte, 1000))
			}
			read <- errors.Join(err, r.Close())
		}()
		_, err := f.Write(shares)
		if !errors.Is(err, ErrReaderGone) || f.Records() == 0 || f.Records() >= 100000 {
			t.Errorf("%v after %d records", err, f.Records())
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); !errors.Is(err, ErrReaderGone) {
			t.Error(err)
		}
		if _, err := os.Lstat(f.Path()); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	for _, reads := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		f := aFile(t, aTree(t, ctx, t.TempDir(), Options{Pipes: true}))
		time.AfterFunc(30*time.Millisecond, cancel)
		if reads {
			r, err := os.OpenFile(f.Path(), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
		}
		if _, err := f.Write(shares); !errors.Is(err, context.Canceled) || (f.Records() > 0) != reads {
			t.Errorf("reader %v: %v after %d records", reads, err, f.Records())
		}
		if err := f.Abort(); err != nil {
			t.Error(err)
		}
	}
}

// Files are overwritten only with Force; identical text files may stay.
func TestOverwriting(t *testing.T) {
	dir := t.TempDir()
	write := func(tree *Tree, value int64) {
		t.Helper()
		f := aFile(t, tree)
		_, err := f.Write(bytes.Repeat(little(testPrimes[128], value), 2))
		if _, again := tree.File(Target{Kind: Bit}); !errors.Is(again, ErrExists) {
			t.Errorf("two files of one target at a time: %v", again)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(aTree(t, t.Context(), dir, Options{}), 1)
	tree := aTree(t, t.Context(), dir, Options{})
	if _, err := tree.File(Target{Kind: Bit}); !errors.Is(err, ErrExists) {
		t.Errorf("a second time: %v", err)
	}
	first, err := os.ReadFile(tree.Path(Target{Kind: Bit}))
	if err != nil {
		t.Fatal(err)
	}
	write(aTree(t, t.Context(), dir, Options{Suffix: "-T1"}), 1)
	write(aTree(t, t.Context(), dir, Options{Force: true}), 2)
	second, err := os.ReadFile(tree.Path(Target{Kind: Bit}))
	if err != nil || bytes.Equal(first, second) || len(first) != len(second) {
		t.Errorf("with force: %v, or the content is unchanged", err)
	}
	o := Options{Prime: testPrimes[128], Parties: 2, KeyShare: little(testPrimes[128], 6)}
	if _, err := NewTree(t.Context(), dir, o); !errors.Is(err, ErrExists) {
		t.Errorf("another key: %v", err)
	}
	write(aTree(t, t.Context(), dir, Options{Force: true, KeyShare: o.KeyShare}), 3)
	if _, err := NewTree(t.Context(), dir, o); err != nil {
		t.Errorf("the present key: %v", err)
	}
	// A file that appears while another is being written is not overwritten either.
	f := aFile(t, aTree(t, t.Context(), dir, Options{KeyShare: o.KeyShare, Suffix: "-T2"}))
	if err := os.WriteFile(f.Path(), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); !errors.Is(err, ErrExists) {
		t.Errorf("closing over a file: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path()), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Shares that are not below the prime, and incomplete records, leave no file.
func TestBadShares(t *testing.T) {
	good := bytes.Repeat(little(testPrimes[128], 3), 7)
	for name, c := range map[string]struct {
		shares []byte
		want   error
	}{
		"range":        {append(bytes.Clone(good[:3*bitRecord]), bytes.Repeat([]byte{0xff}, bitRecord)...), ErrRange},
		"half record":  {good, ErrPartial},
		"half element": {good[:2*bitRecord+1], ErrPartial},
	} {
		dir := t.TempDir()
		f := aFile(t, aTree(t, t.Context(), dir, Options{}))
		_, err := f.Write(c.shares)
		if (c.want == ErrRange) != errors.Is(err, ErrRange) {
			t.Errorf("%s: writing gives %v", name, err)
		}
		if err := f.Close(); !errors.Is(err, c.want) {
			t.Errorf("%s: closing gives %v", name, err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path()), "*[Bb.]*-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
		if _, err := f.Write(good); err == nil {
			t.Errorf("%s: writing continues", name)
		}
	}
}
