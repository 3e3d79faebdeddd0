package vault

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A file is a key when it is 64 hexadecimal digits, with space around them.
func FuzzKeyFile(f *testing.F) {
	digits := bytes.Repeat([]byte("0aF9"), 16)
	f.Add(digits)
	f.Add(append([]byte(" \t"), append(digits, '\n')...))
	f.Add(digits[1:])
	f.Add(append(bytes.Clone(digits), '0'))
	f.Add(bytes.Repeat([]byte("g"), 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, ok := seal.ParseKey(b); ok != (len(bytes.TrimSpace(b)) == 64 && len(bytes.Trim(bytes.TrimSpace(b), "0123456789abcdefABCDEF")) == 0) {
			t.Errorf("%q is a key: %v", b, ok)
		}
	})
}

// A record is read from its place or is damaged: bytes of a disk, or data that was encrypted under
// the right key.
func FuzzRecord(f *testing.F) {
	v := inMemory(f)
	const key = stock.BatchPrefix + "1"
	f.Add([]byte(`{"id":"1","epoch":3,"state":"active"}`), true)
	f.Add([]byte(`{"id":1}`), true)
	f.Add([]byte(`{}{}`), true)
	f.Add(v.SealAt(key, []byte(`{"id":"1"}`)), false)
	f.Add(v.SealAt("elsewhere", []byte(`{"id":"1"}`)), false)
	f.Add([]byte(nil), false)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = v.SealAt(key, b)
		}
		r, err := seal.Decode[stock.Batch](v.Store, key, b)
		if err != nil {
			if !errors.Is(err, vaulterr.ErrCorrupt) {
				t.Errorf("got %v", err)
			}
			return
		}
		if !sealed && r.ID != "1" {
			t.Error("a record that nobody sealed was read")
		}
		text, err := json.Marshal(r)
		must(t, err)
		again, err := seal.Decode[stock.Batch](v.Store, key, v.SealAt(key, text))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v changes to %+v: %v", r, again, err)
		}
	})
}

// The file of an object returns the written data, or nothing after the first wrong byte.
func FuzzObject(f *testing.F) {
	v, dir := newVaultIn(f)
	name := seal.ObjectName("batch", "fuzz")
	content := bytes.Repeat([]byte("0123456789abcdef"), seal.ChunkSize/16+3) // two chunks
	w, err := v.CreateObject(name)
	must(f, err)
	_, err = w.Write(content)
	must(f, err)
	must(f, w.Commit())
	path := filepath.Join(dir, name)
	file, err := os.ReadFile(path)
	must(f, err)
	// The fuzzer cuts the file and changes a run of bytes in it, or gives another file.
	f.Add(len(file), 0, []byte(nil))
	f.Add(len(file)-1, 0, []byte(nil))
	f.Add(len(file), len(seal.ObjectMagic), []byte{1})
	f.Add(len(file), seal.HeaderBlock+5, []byte{1})
	f.Add(seal.HeaderBlock, 0, []byte(nil))
	f.Add(0, 0, []byte(seal.ObjectMagic))
	f.Fuzz(func(t *testing.T, keep, at int, change []byte) {
		if keep < 0 || keep > len(file) || at < 0 || at > keep {
			return
		}
		b := append(bytes.Clone(file[:at]), change...)
		if at+len(change) < keep {
			b = append(b, file[at+len(change):keep]...)
		}
		must(t, os.WriteFile(path, b, 0o600))
		in, err := v.OpenObject(name)
		if err != nil {
			if !errors.Is(err, vaulterr.ErrCorrupt) {
				t.Errorf("got %v", err)
			}
			return
		}
		defer in.Close()
		got, err := io.ReadAll(in)
		if !bytes.HasPrefix(content, got) || err == nil && len(got) != len(content) || err != nil && !errors.Is(err, vaulterr.ErrCorrupt) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
