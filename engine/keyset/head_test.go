package keyset

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

func TestHead(t *testing.T) {
	h := Head{[]byte("header"), digests()}
	var b bytes.Buffer
	if err := h.Write(&b, func(dst []byte, i int) []byte { return append(dst, chunks[i]...) }); err != nil {
		t.Fatal(err)
	}
	got, err := ReadHead(&b, len(h.Header), len(h.Digests))
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("read %v: %v", got, err)
	}
	if rest := b.Bytes(); !bytes.Equal(rest, bytes.Join(chunks, nil)) {
		t.Errorf("%x follows the head", rest)
	}
	if got, err := HeadOf(h.Header, h.Slices()); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("from a message: %v, %v", got, err)
	}
	if _, err := HeadOf(nil, [][]byte{make([]byte, 31)}); err == nil {
		t.Error("a short digest is accepted")
	}
	if _, err := ReadHead(bytes.NewReader(h.Append(nil)[:50]), len(h.Header), len(h.Digests)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncated: %v", err)
	}
}

func TestHeadChecksChunks(t *testing.T) {
	h := Head{nil, digests()}
	for i, c := range chunks {
		if err := h.Check(i, c); err != nil {
			t.Error(err)
		}
		for _, other := range []int{-1, (i + 1) % len(chunks), len(chunks)} {
			if h.Check(other, c) == nil {
				t.Errorf("chunk %d passes for chunk %d", i, other)
			}
		}
	}
}
