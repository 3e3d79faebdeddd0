package keyset

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
)

type toy struct {
	name    string
	current bool
}

var toys = Registry[toy]{
	Scheme: "toy",
	Sets:   func() []*toy { return []*toy{{"A", true}, {"B", true}, {"old", false}, {InsecurePrefix + "A", false}} },
	Label:  func(s *toy) (string, bool) { return s.name, s.current },
}

func TestRegistry(t *testing.T) {
	if got := toys.Names(); !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("names for new keys: %v", got)
	}
	for _, s := range toys.Sets() {
		if got, err := toys.Lookup(s.name); err != nil || *got != *s {
			t.Errorf("%s: %v, %v", s.name, got, err)
		}
	}
	var unknown *UnknownError
	_, err := toys.Lookup("C")
	if !errors.As(err, &unknown) || unknown.Name != "C" || err.Error() != `toy: unknown set "C" (known: A, B)` {
		t.Errorf("unknown set: %v", err)
	}
}

// The expected digest is written with the layout that Hash documents.
func TestHash(t *testing.T) {
	want := sha256.Sum256([]byte("\x00\x00\x00\x00\x00\x00\x00\x03tag" + "\x00\x00\x00\x00\x00\x00\x00\x01A" +
		"\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x01\x02" + "\x00\x00\x00\x00\x00\x00\x00\x04more"))
	if got := Hash("tag", "A", []uint64{0x102}, "more"); got != want {
		t.Errorf("hash %x, want %x", got, want)
	}
	if Flag(false) != 0 || Flag(true) != 1 {
		t.Error("flags are not 0 and 1")
	}
}

var (
	errToy = errors.New("toy: malformed keys")
	format = Format{Tag: "toy keys", Err: errToy}
)

var errDecode = errors.New("not of length 2")

// receiver returns a receiver of keys of three chunks of two bytes.
func receiver(header []byte) *Receiver[*[3][]byte] {
	keys := new([3][]byte)
	return NewReceiver(format, header, keys, 3, func(i int, chunk []byte) error {
		if len(chunk) != 2 {
			return errDecode
		}
		keys[i] = bytes.Clone(chunk)
		return nil
	})
}

var chunks = [][]byte{{0, 1}, {2, 3}, {4, 5}}

func digests() [][32]byte {
	return ChunkDigests(len(chunks), func(dst []byte, i int) []byte { return append(dst, chunks[i]...) })
}

func TestReceiver(t *testing.T) {
	header := []byte("header")
	digest := format.Digest(header, digests())
	sums := digests()
	if want := sha256.Sum256(slices.Concat([]byte("toy keysheader"), sums[0][:], sums[1][:], sums[2][:])); digest != want {
		t.Errorf("digest %x, want %x", digest, want)
	}
	r := receiver(header)
	clear(header) // the receiver keeps a copy
	for n, i := range []int{2, 0, 1} {
		if got, err := r.Finish(digest); !errors.Is(err, errToy) || got != nil {
			t.Errorf("keys with %d of 3 chunks: %v", n, err)
		}
		if got := len(r.Missing()); got != 3-n {
			t.Errorf("%d chunks are missing, want %d", got, 3-n)
		}
		for range 2 {
			if err := r.Put(i, chunks[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		i     int
		chunk []byte
	}{
		"negative":      {-1, chunks[0]},
		"beyond":        {3, chunks[0]},
		"another chunk": {0, chunks[1]},
	} {
		if err := r.Put(c.i, c.chunk); !errors.Is(err, errToy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := r.Finish([32]byte{1}); !errors.Is(err, errToy) || got != nil {
		t.Errorf("keys with another digest: %v", err)
	}
	got, err := r.Finish(digest)
	if err != nil || !slices.EqualFunc(got[:], chunks, bytes.Equal) {
		t.Errorf("keys %v: %v", got, err)
	}
}

func TestMalformedChunkIsMissing(t *testing.T) {
	r := receiver(nil)
	if err := r.Put(1, []byte{1}); !errors.Is(err, errToy) || !errors.Is(err, errDecode) {
		t.Errorf("malformed chunk: %v", err)
	}
	if got := fmt.Sprint(r.Missing()); got != "[0 1 2]" {
		t.Errorf("missing %s", got)
	}
	if err := r.Put(1, chunks[1]); err != nil {
		t.Errorf("the chunk after a malformed one: %v", err)
	}
}

func TestCheckFirst(t *testing.T) {
	header, sums := []byte("header"), digests()
	digest := format.Digest(header, sums)
	if err := format.CheckFirst(digest, header, sums, chunks[0]); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"digest": format.CheckFirst([32]byte{1}, header, sums, chunks[0]),
		"header": format.CheckFirst(digest, []byte("Header"), sums, chunks[0]),
		"fewer":  format.CheckFirst(digest, header, sums[:2], chunks[0]),
		"chunk":  format.CheckFirst(digest, header, sums, chunks[1]),
	} {
		if !errors.Is(err, errToy) {
			t.Errorf("another %s: %v", name, err)
		}
	}
}
