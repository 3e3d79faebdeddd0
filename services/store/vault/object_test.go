package vault

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func TestObjectSizesAndTampering(t *testing.T) {
	v, dir := newVaultIn(t)
	for _, n := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize} {
		must(t, v.erase("o"))
		data := bytes.Repeat([]byte{7}, n)
		w, err := v.create("o")
		must(t, err)
		for rest := data; len(rest) > 0; { // in uneven pieces
			k := min(len(rest), 40_000)
			_, err = w.Write(rest[:k])
			must(t, err)
			rest = rest[k:]
		}
		must(t, w.commit())
		r, err := v.open("o")
		if got := content(t, r, err); got != string(data) || w.size != uint64(n) {
			t.Fatalf("%d bytes: read %d", n, len(got))
		}
	}
	path := filepath.Join(dir, "o")
	good, err := os.ReadFile(path)
	must(t, err)
	sealed := chunkSize + 16
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	for name, bad := range map[string][]byte{
		"magic":        flip(0),
		"wrapped key":  flip(wrappedStart + 30),
		"first chunk":  flip(headerBlock),
		"last chunk":   flip(len(good) - 1),
		"last removed": good[:headerBlock+2*sealed],
		"all removed":  good[:headerBlock],
		"cut short":    good[:len(good)-1],
		"appended":     append(bytes.Clone(good), 0),
		"swapped": append(append(append(bytes.Clone(good[:headerBlock]),
			good[headerBlock+sealed:headerBlock+2*sealed]...), good[headerBlock:headerBlock+sealed]...), good[headerBlock+2*sealed:]...),
		"empty": {},
	} {
		must(t, os.WriteFile(path, bad, 0o600))
		r, err := v.open("o")
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if !errors.Is(err, vaulterr.ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// An object does not open under another's name.
	must(t, os.WriteFile(filepath.Join(dir, "p"), good, 0o600))
	_, err = v.open("p")
	refused(t, err, vaulterr.ErrCorrupt)
}

// What is erased while it is read is erased, not corrupt.
func TestObjectErasedWhileRead(t *testing.T) {
	v := inMemory(t)
	w, err := v.create("o")
	must(t, err)
	_, err = w.Write(make([]byte, 3*chunkSize))
	must(t, err)
	must(t, w.commit())
	r, err := v.open("o")
	must(t, err)
	defer r.Close()
	_, err = r.Read(make([]byte, 10))
	must(t, err)
	must(t, v.erase("o"))
	_, err = io.ReadAll(r)
	refused(t, err, vaulterr.ErrErased)
}

func TestEraseOverwrites(t *testing.T) {
	v, dir := newVaultIn(t)
	w, err := v.create("o")
	must(t, err)
	must(t, w.commit())
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Link(filepath.Join(dir, "o"), link))
	must(t, v.erase("o"))
	b, err := os.ReadFile(link)
	must(t, err)
	if !bytes.Equal(b[:headerBlock], make([]byte, headerBlock)) {
		t.Error("the header is still there")
	}
	must(t, v.erase("o"))
}
