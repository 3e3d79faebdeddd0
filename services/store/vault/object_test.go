package vault

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func TestObjectSizesAndTampering(t *testing.T) {
	v, dir := newVaultIn(t)
	for _, n := range []int{0, 1, seal.ChunkSize - 1, seal.ChunkSize, seal.ChunkSize + 1, 3 * seal.ChunkSize} {
		must(t, v.EraseObject("o"))
		data := bytes.Repeat([]byte{7}, n)
		w, err := v.CreateObject("o")
		must(t, err)
		for rest := data; len(rest) > 0; { // in uneven pieces
			k := min(len(rest), 40_000)
			_, err = w.Write(rest[:k])
			must(t, err)
			rest = rest[k:]
		}
		must(t, w.Commit())
		r, err := v.OpenObject("o")
		if got := content(t, r, err); got != string(data) || w.Size != uint64(n) {
			t.Fatalf("%d bytes: read %d", n, len(got))
		}
	}
	path := filepath.Join(dir, "o")
	good, err := os.ReadFile(path)
	must(t, err)
	sealed := seal.ChunkSize + 16
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	for name, bad := range map[string][]byte{
		"magic":        flip(0),
		"wrapped key":  flip(seal.WrappedStart + 30),
		"first chunk":  flip(seal.HeaderBlock),
		"last chunk":   flip(len(good) - 1),
		"last removed": good[:seal.HeaderBlock+2*sealed],
		"all removed":  good[:seal.HeaderBlock],
		"cut short":    good[:len(good)-1],
		"appended":     append(bytes.Clone(good), 0),
		"swapped": append(append(append(bytes.Clone(good[:seal.HeaderBlock]),
			good[seal.HeaderBlock+sealed:seal.HeaderBlock+2*sealed]...), good[seal.HeaderBlock:seal.HeaderBlock+sealed]...), good[seal.HeaderBlock+2*sealed:]...),
		"empty": {},
	} {
		must(t, os.WriteFile(path, bad, 0o600))
		r, err := v.OpenObject("o")
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
	_, err = v.OpenObject("p")
	refused(t, err, vaulterr.ErrCorrupt)
}

// An object that is erased while it is read counts as erased, not as corrupt.
func TestObjectErasedWhileRead(t *testing.T) {
	v := inMemory(t)
	w, err := v.CreateObject("o")
	must(t, err)
	_, err = w.Write(make([]byte, 3*seal.ChunkSize))
	must(t, err)
	must(t, w.Commit())
	r, err := v.OpenObject("o")
	must(t, err)
	defer r.Close()
	_, err = r.Read(make([]byte, 10))
	must(t, err)
	must(t, v.EraseObject("o"))
	_, err = io.ReadAll(r)
	refused(t, err, vaulterr.ErrErased)
}

func TestEraseOverwrites(t *testing.T) {
	v, dir := newVaultIn(t)
	w, err := v.CreateObject("o")
	must(t, err)
	must(t, w.Commit())
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Link(filepath.Join(dir, "o"), link))
	must(t, v.EraseObject("o"))
	b, err := os.ReadFile(link)
	must(t, err)
	if !bytes.Equal(b[:seal.HeaderBlock], make([]byte, seal.HeaderBlock)) {
		t.Error("the header is still there")
	}
	must(t, v.EraseObject("o"))
}
