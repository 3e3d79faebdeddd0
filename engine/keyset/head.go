package keyset

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
)

// A Head is the part of keys before the chunks: the scheme's header and the SHA-256 of each chunk.
// The digest of the keys follows from it ([Format.Digest]), so a reader that knows the digest can
// check each chunk alone.
type Head struct {
	Header  []byte
	Digests [][sha256.Size]byte
}

// HeadOf returns a head whose digests are not in arrays, as in messages.
func HeadOf(header []byte, digests [][]byte) (Head, error) {
	h := Head{header, make([][sha256.Size]byte, len(digests))}
	for i, d := range digests {
		if len(d) != sha256.Size {
			return Head{}, fmt.Errorf("keyset: a digest of %d bytes", len(d))
		}
		h.Digests[i] = [sha256.Size]byte(d)
	}
	return h, nil
}

// ReadHead reads what Append wrote, with a header of the given size and the digests of n chunks.
func ReadHead(in io.Reader, size, n int) (Head, error) {
	b := make([]byte, size+n*sha256.Size)
	if _, err := io.ReadFull(in, b); err != nil {
		return Head{}, err
	}
	h := Head{b[:size:size], make([][sha256.Size]byte, n)}
	for i := range h.Digests {
		h.Digests[i] = [sha256.Size]byte(b[size+i*sha256.Size:])
	}
	return h, nil
}

// Append appends the header and the digests to b.
func (h Head) Append(b []byte) []byte {
	b = append(b, h.Header...)
	for _, d := range h.Digests {
		b = append(b, d[:]...)
	}
	return b
}

// Slices returns the digests as slices, for messages.
func (h Head) Slices() [][]byte {
	list := make([][]byte, len(h.Digests))
	for i := range list {
		list[i] = h.Digests[i][:]
	}
	return list
}

// Check returns an error unless chunk is chunk i.
func (h Head) Check(i int, chunk []byte) error {
	//lodge:check keyset/head-chunk [drop=sha256.Sum256(chunk) != h.Digests[i]] a chunk of stored or downloaded keys need not match its digest
	if i < 0 || i >= len(h.Digests) || sha256.Sum256(chunk) != h.Digests[i] {
		return fmt.Errorf("keyset: chunk %d does not match its digest", i)
	}
	return nil
}

// Write writes the head and all chunks. The function appends chunk i to its argument.
func (h Head) Write(w io.Writer, appendChunk func(dst []byte, i int) []byte) error {
	out := bufio.NewWriterSize(w, 1<<20)
	out.Write(h.Append(nil)) // a bufio.Writer keeps its first error until Flush
	var chunk []byte
	for i := range h.Digests {
		chunk = appendChunk(chunk[:0], i)
		out.Write(chunk)
	}
	return out.Flush()
}
