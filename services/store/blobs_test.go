package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
)

func writeBlob(t testing.TB, s store.Store, name string, content []byte) {
	t.Helper()
	w, err := s.Create(name)
	noError(t, err)
	_, err = w.Write(content)
	noError(t, err)
	noError(t, w.Commit())
}

func readBlob(t testing.TB, s store.Store, name string) []byte {
	t.Helper()
	b, err := s.Open(name)
	noError(t, err)
	size, err := b.Size()
	noError(t, err)
	content, err := io.ReadAll(io.NewSectionReader(b, 0, size))
	noError(t, err)
	if int64(len(content)) != size {
		t.Fatalf("%s: %d bytes of %d", name, len(content), size)
	}
	noError(t, b.Close())
	return content
}

func wantBlobs(t testing.TB, s store.Store, names ...string) {
	t.Helper()
	got, err := s.Blobs()
	noError(t, err)
	if !slices.Equal(got, names) {
		t.Fatalf("blobs %q, want %q", got, names)
	}
}

// random is a stream that its seed gives.
func random(seed uint64) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
}

func randomBytes(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = random(seed).Read(b) // never fails
	return b
}

// blobs writes in pieces of odd lengths, around the lengths of chunks.
func blobs(t *testing.T, k kind) {
	address := k(t)
	s := opened(t, address)
	lengths := []int{0, 1, 4095, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 3<<20 + 17}
	var names []string
	for i, n := range lengths {
		name := fmt.Sprintf("blob-%d", i)
		names = append(names, name)
		content := randomBytes(uint64(i), n)
		w, err := s.Create(name)
		noError(t, err)
		for rest := content; len(rest) > 0; {
			m := min(len(rest), 1+rand.IntN(100_000))
			got, err := w.Write(rest[:m])
			if err != nil || got != m {
				t.Fatalf("%s: wrote %d of %d: %v", name, got, m, err)
			}
			rest = rest[m:]
		}
		if _, err := s.Open(name); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("%s is seen before Commit: %v", name, err)
		}
		wantBlobs(t, s, names[:i]...)
		noError(t, w.Commit())
		w.Abort() // does nothing
		if !bytes.Equal(readBlob(t, s, name), content) {
			t.Fatalf("%s reads back otherwise", name)
		}
		edges(t, s, name, content)
	}
	wantBlobs(t, s, names...)
	w, err := s.Create(names[0])
	noError(t, err)
	wantError(t, w.Commit(), store.ErrExists)
	w, err = s.Create("aborted")
	noError(t, err)
	_, err = w.Write(randomBytes(99, 3<<20))
	noError(t, err)
	w.Abort()
	if w.Commit() == nil {
		t.Fatal("an aborted blob was committed")
	}
	_, err = s.Open("absent")
	wantError(t, err, store.ErrNotFound)
	noError(t, s.Close())
	s = opened(t, address)
	wantBlobs(t, s, names...)
	for i, n := range lengths {
		if !bytes.Equal(readBlob(t, s, names[i]), randomBytes(uint64(i), n)) {
			t.Fatalf("%s reads back otherwise after Close", names[i])
		}
	}
}

// edges reads at the borders of chunks and of the blob, as io.ReaderAt says.
func edges(t *testing.T, s store.Store, name string, content []byte) {
	t.Helper()
	b, err := s.Open(name)
	noError(t, err)
	size := len(content)
	for _, off := range []int{0, 1, 64<<10 - 1, 64 << 10, 128<<10 - 5, size - 1, size, size + 1, size + 1<<20} {
		for _, n := range []int{0, 1, 7, 64 << 10, 64<<10 + 16} {
			if off < 0 {
				continue
			}
			p := make([]byte, n)
			got, err := b.ReadAt(p, int64(off))
			wanted := content[min(off, size):min(off+n, size)]
			if !bytes.Equal(p[:got], wanted) || got < n && err != io.EOF || got == n && err != nil && err != io.EOF {
				t.Fatalf("%s: %d bytes at %d of %d: got %d, %v", name, n, off, size, got, err)
			}
		}
	}
	if _, err := b.ReadAt(make([]byte, 1), -1); err == nil {
		t.Fatal("read before the beginning")
	}
	noError(t, b.Close())
}

func blobWriteAt(t *testing.T, k kind) {
	address := k(t)
	s := opened(t, address)
	content := randomBytes(1, 200_000)
	writeBlob(t, s, "b", content)
	b, err := s.Open("b")
	noError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 25 {
		off := rng.IntN(len(content) + 1)
		if i%5 == 0 {
			off = len(content)
		}
		piece := randomBytes(uint64(100+i), rng.IntN(150_000)*(i%4)/3)
		n, err := b.WriteAt(piece, int64(off))
		if err != nil || n != len(piece) {
			t.Fatalf("wrote %d of %d: %v", n, len(piece), err)
		}
		content = append(content[:off:off], append(piece, content[min(len(content), off+len(piece)):]...)...)
	}
	for _, off := range []int64{-1, int64(len(content)) + 1} {
		_, err = b.WriteAt([]byte("x"), off)
		wantError(t, err, store.ErrInvalid)
	}
	if size, err := b.Size(); err != nil || size != int64(len(content)) {
		t.Fatalf("size %d, want %d: %v", size, len(content), err)
	}
	noError(t, b.Close())
	noError(t, s.Close())
	if !bytes.Equal(readBlob(t, opened(t, address), "b"), content) {
		t.Fatal("the writes read back otherwise")
	}
}

// blobConcurrent: readers of two pages see them while writers change others.
func blobConcurrent(t *testing.T, k kind) {
	s := k.fresh(t)
	const page = 10_000
	writeBlob(t, s, "b", bytes.Repeat([]byte{1}, 16*page))
	b, err := s.Open("b")
	noError(t, err)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 8 {
				if _, err := b.WriteAt(bytes.Repeat([]byte{byte(2 + i)}, page), int64(4*w*page)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			p := make([]byte, 2*page)
			for range 30 {
				if _, err := b.ReadAt(p, int64((4*w+1)*page)); err != nil || !bytes.Equal(p, bytes.Repeat([]byte{1}, 2*page)) {
					t.Errorf("pages that nobody writes changed: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := readBlob(t, s, "b")
	for i := range 16 {
		wanted := byte(1)
		if i%4 == 0 {
			wanted = 9
		}
		if !bytes.Equal(got[i*page:(i+1)*page], bytes.Repeat([]byte{wanted}, page)) {
			t.Errorf("page %d is not of %d", i, wanted)
		}
	}
	noError(t, b.Close())
}

func blobErased(t *testing.T, k kind) {
	address := k(t)
	s := opened(t, address)
	for _, size := range []int{0, 100, 1 << 20} {
		writeBlob(t, s, "b", randomBytes(1, size))
		b, err := s.Open("b")
		noError(t, err)
		noError(t, s.Erase("b"))
		noError(t, s.Erase("b"))
		_, err = s.Open("b")
		wantError(t, err, store.ErrNotFound)
		_, err = b.ReadAt(make([]byte, 10), 0)
		wantError(t, err, store.ErrNotFound)
		_, err = b.WriteAt([]byte("x"), 0)
		wantError(t, err, store.ErrNotFound)
		_, err = b.Size()
		wantError(t, err, store.ErrNotFound)
		wantBlobs(t, s)
		writeBlob(t, s, "b", []byte("another")) // the name is free, and the old handle does not see it
		_, err = b.ReadAt(make([]byte, 1), 0)
		wantError(t, err, store.ErrNotFound)
		if got := readBlob(t, s, "b"); string(got) != "another" {
			t.Fatalf("the new blob reads %q", got)
		}
		noError(t, b.Close())
		noError(t, s.Erase("b"))
	}
	noError(t, s.Erase("never"))
	noError(t, s.Close())
	wantBlobs(t, opened(t, address))
}

func blobUnfinished(t *testing.T, k kind) {
	address := k(t)
	s := opened(t, address)
	putAll(t, s, "a", "1")
	writeBlob(t, s, "kept", []byte("v"))
	w, err := s.Create("unfinished")
	noError(t, err)
	_, err = w.Write(randomBytes(1, 5<<20))
	noError(t, err)
	noError(t, s.Close())
	s = opened(t, address)
	wantBlobs(t, s, "kept")
	_, err = s.Open("unfinished")
	wantError(t, err, store.ErrNotFound)
	wantError(t, w.Commit(), store.ErrClosed)
	wantBlobs(t, s, "kept")
}

// streamed is a blob that does not fit the memory that streaming may take.
const streamed = 100 << 20

// blobStream writes and reads it while the heap stays below 32 MiB more than it was.
func blobStream(t *testing.T, k kind) {
	s := k.fresh(t)
	before, peak := heap(), uint64(0)
	w, err := s.Create("large")
	noError(t, err)
	piece, rng, sum := make([]byte, 1<<20), random(5), sha256.New()
	for i := range streamed / len(piece) {
		_, _ = rng.Read(piece) // never fails
		sum.Write(piece)
		_, err := w.Write(piece)
		noError(t, err)
		if i%10 == 0 {
			peak = max(peak, heap())
		}
	}
	noError(t, w.Commit())
	b, err := s.Open("large")
	noError(t, err)
	got := readAll(t, b, len(piece), func() { peak = max(peak, heap()) })
	if !bytes.Equal(got.Sum(nil), sum.Sum(nil)) {
		t.Error("the blob reads back otherwise")
	}
	noError(t, b.Close())
	if peak > before+32<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before>>20, peak>>20)
	}
	noError(t, s.Erase("large"))
}

func readAll(t testing.TB, b store.Blob, step int, each func()) hash.Hash {
	sum, p := sha256.New(), make([]byte, step)
	for off := int64(0); ; off += int64(step) {
		n, err := b.ReadAt(p, off)
		sum.Write(p[:n])
		if err == io.EOF {
			return sum
		}
		noError(t, err)
		if off%(10<<20) == 0 {
			each()
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
